package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// injected is the prefix of injected jobs' names; the number in the trace follows.
const injected = "evotrace-"

// slurm returns a client of the user's own Slurm.
func slurm() *slurmctl.Client { return &slurmctl.Client{Env: os.Environ()} }

// extractCommand is evosim trace extract.
func extractCommand() *cobra.Command {
	var q slurmctl.AccountingQuery
	own := false
	cmd := evosim.ExtractCommand(func(cmd *cobra.Command) (io.Reader, error) {
		text, err := slurm().Accounting(cmd.Context(), q)
		if err != nil {
			return nil, err
		}
		return strings.NewReader(text), nil
	}, func() trace.Format { return accounting(own) })
	cmd.Use = "extract [--from=TIME] [--until=TIME] [--users=NAME,…] [--injected] [--to=swf|json|batsim] [--output=FILE]"
	cmd.Short = "Write Slurm's accounting of jobs as a trace"
	cmd.Long = `Write Slurm's accounting (sacct) of jobs as a trace: their submission, start, end, and number of nodes.
Times are sacct's: 2026-11-22, 2026-11-22T15:00, now-7days; without --from, sacct takes today's jobs.
--injected takes only jobs of evosim trace inject, with their numbers in the trace, so that evosim trace
diff compares them with a simulation, job by job.`
	flags := cmd.Flags()
	flags.StringVar(&q.From, "from", "", "jobs from this time on")
	flags.StringVar(&q.Until, "until", "", "jobs up to this time")
	flags.StringSliceVar(&q.Users, "users", nil, "only these users' jobs (default: all that you may see)")
	flags.BoolVar(&own, "injected", false, "only jobs that were injected, numbered as in their trace")
	return cmd
}

// injectCommand is evosim trace inject.
func injectCommand() *cobra.Command {
	in := injection{factor: 1, cpus: 1}
	lenient := false
	cmd := &cobra.Command{
		Use:   "inject [--time=F] [--cpus-per-node=N] [--rigid] [--partition=NAME] [--dry-run] FILE",
		Short: "Submit a trace's jobs to a real Slurm, as jobs that sleep",
		Long: `Submit the jobs of a trace to the Slurm that sbatch finds: each at its time after the first, on whole nodes, with
its size and time limit. Each job sleeps for its run time. --time=60 makes an hour a minute. Jobs that never ran are
left out. The jobs are named ` + injected + `NUMBER, and evosim trace extract --injected finds them by this name. The
command ends when the last job is submitted; after an interruption, submitted jobs stay.

Evolving jobs go through the sidecar: evosbatch submits them with their profile, and they sleep for the length of a
step before they call evosctl next. Steps have whole seconds: if --time makes them much shorter, first scale the trace
(evosim trace scale --time) and then make its jobs evolve. With --rigid, evolving jobs are stock jobs of their largest
size; moldable and malleable jobs are refused without it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !(in.factor > 0 && in.factor <= 1e6):
				return fmt.Errorf("--time=%v: must be above 0", in.factor)
			case in.cpus < 1 || in.cpus > 1<<16:
				return fmt.Errorf("--cpus-per-node=%d: must be within 1 … 65536", in.cpus)
			}
			file, label := cmd.InOrStdin(), "standard input"
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				file, label = f, args[0]
			}
			r, err := trace.NewReader(file, trace.Options{AnyOrder: true, Lenient: lenient}, sacct)
			if err != nil {
				return fmt.Errorf("%s: %w", label, err)
			}
			t, err := r.ReadAll()
			if err != nil {
				return fmt.Errorf("%s: %w", label, err)
			}
			evosim.Tell(cmd.ErrOrStderr(), label, t.Report)
			jobs, left := t.Runnable()
			if len(jobs) == 0 {
				return fmt.Errorf("%s: there is no job that ran", label)
			}
			if left > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %s: %d jobs that never ran are left out\n", label, left)
			}
			all, err := in.submissions(jobs)
			if err != nil {
				return fmt.Errorf("%s: %w", label, err)
			}
			if err := in.run(cmd.Context(), cmd.OutOrStdout(), all); err != nil && !errors.Is(err, context.Canceled) {
				return evosim.Failure{Err: err}
			} else if err != nil {
				return err
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&in.factor, "time", in.factor, "divide all times by this")
	flags.IntVar(&in.cpus, "cpus-per-node", in.cpus, "processors of the trace per node")
	flags.BoolVar(&in.rigid, "rigid", false, "submit jobs that change size rigid, at their largest size")
	flags.StringVar(&in.partition, "partition", "", "partition to submit to (default: Slurm's)")
	flags.BoolVar(&in.dry, "dry-run", false, "print what would be submitted and when, without submitting")
	flags.BoolVar(&lenient, "lenient", false, "skip invalid jobs")
	return cmd
}

// injection is how jobs are injected.
type injection struct {
	factor     float64
	cpus       int
	rigid, dry bool
	partition  string
}

// sleeper is a job to submit.
type sleeper struct {
	after   time.Duration
	command string
	args    []string
	script  string
}

// submissions returns the jobs in order of submission.
func (in *injection) submissions(jobs []trace.Job) ([]sleeper, error) {
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return int(math.Copysign(1, a.Submit-b.Submit)) })
	all := make([]sleeper, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		s := &all[i]
		switch kind := j.Kind(); {
		case kind == trace.Rigid || in.rigid:
			*s = in.stock(j)
		case kind == trace.Evolving:
			*s = in.evolving(j)
		default:
			return nil, fmt.Errorf("job %d is %s; --rigid submits it at its largest size", j.Number, kind)
		}
		s.after = time.Duration(j.Submit / in.factor * float64(time.Second))
		s.args = append(s.args, "--parsable", "--job-name="+injected+strconv.FormatInt(j.Number, 10), "--exclusive", "--chdir=/", "--output=/dev/null")
		if in.partition != "" {
			s.args = append(s.args, "--partition="+in.partition)
		}
	}
	return all, nil
}

// nodes returns the nodes for that many of the trace's processors.
func (in *injection) nodes(processors int) int { return (processors + in.cpus - 1) / in.cpus }

// stock returns a job of one size.
func (in *injection) stock(j *trace.Job) sleeper {
	size := j.Size()
	if s := j.Shape; s != nil {
		for _, p := range append([]planner.Profile{s.Profile}, s.Alternatives...) {
			size = max(size, p.Peak())
		}
	}
	seconds := j.Run / in.factor
	limit := seconds + 60
	if j.Limit > 0 {
		limit = max(j.Limit/in.factor, limit)
	}
	return sleeper{
		command: "sbatch",
		args:    []string{"--nodes=" + strconv.Itoa(in.nodes(size)), "--time=" + strconv.Itoa(int(math.Ceil(limit/60)))},
		script:  "#!/bin/sh\nexec sleep " + strconv.FormatFloat(seconds, 'f', 3, 64) + "\n",
	}
}

// evolving returns a job that the sidecar runs.
func (in *injection) evolving(j *trace.Job) sleeper {
	profile := slices.Clone(j.Shape.Profile)
	script := "#!/bin/bash\n"
	for i := range profile {
		s := &profile[i]
		s.Nodes, s.Duration = in.nodes(s.Nodes), max(int64(math.Round(float64(s.Duration)/in.factor)), 1)
		script += fmt.Sprintf("sleep %d; eval \"$(evosctl next)\"\n", s.Duration)
	}
	args := []string{"--profile=" + profile.String()}
	if l := j.Shape.ExpandLimit; l != 0 {
		args = append(args, "--expand-limit="+l.String())
	}
	return sleeper{command: "evosbatch", args: args, script: script}
}

// run submits jobs when their times come.
func (in *injection) run(ctx context.Context, out io.Writer, all []sleeper) error {
	if in.dry {
		for _, s := range all {
			_, script, _ := strings.Cut(strings.TrimSpace(s.script), "\n")
			if _, err := fmt.Fprintf(out, "%.1f s: %s %s: %s\n", s.after.Seconds(), s.command, strings.Join(s.args, " "), strings.ReplaceAll(script, "\n", "; ")); err != nil {
				return err
			}
		}
		return nil
	}
	client, began, late := slurm(), time.Now(), time.Duration(0)
	for i, s := range all {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(s.after))):
		}
		late = max(late, time.Since(began.Add(s.after)))
		if err := s.submit(ctx, client); err != nil {
			return fmt.Errorf("%d of %d jobs are submitted: %w", i, len(all), err)
		}
	}
	_, err := fmt.Fprintf(out, "%d jobs submitted in %.1f s, at most %.1f s late\n", len(all), time.Since(began).Seconds(), late.Seconds())
	return err
}

// submit submits a job, an evolving one by the evosbatch that the user would call.
func (s *sleeper) submit(ctx context.Context, client *slurmctl.Client) error {
	if s.command == "sbatch" {
		_, err := client.Submit(ctx, nil, s.args, strings.NewReader(s.script))
		return err
	}
	cmd := exec.CommandContext(ctx, s.command, s.args...)
	cmd.Stdin = strings.NewReader(s.script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", s.command, strings.Join(s.args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
