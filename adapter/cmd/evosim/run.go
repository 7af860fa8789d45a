package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// runFlags are the flags of evosim run.
type runFlags struct {
	nodes, cpus int
	slurmConf   string
	leaveOut    []string
	scheduler   string
	config      string
	strategy    string
	evolving    float64
	seed        uint64
	format      string
	all         bool
	everyPoll   bool
	lenient     bool
	beside      []string
	report      string
	until       int64
	checkpoint  string
	resume      string
	left        *simulate.Checkpoint
	power       simulate.Power
	fill        []string
	lengths     []int64 // of fill
}

func runCommand() *cobra.Command {
	f := runFlags{cpus: 1, seed: 1, format: "table"}
	cmd := &cobra.Command{
		Use:   "run [--nodes=N | --slurm-conf=FILE] [--config=FILE] [--strategy=NAME] [--evolving=PART] [--format=json|table] [--report=FILE.html] FILE",
		Short: "Run a workload with the sidecar on a model of Slurm, in virtual time",
		Long: `Run a workload in virtual time: a model of slurmctld schedules it, together with the
sidecar's own decision core and its configuration.

FILE is a workload file (JSON), Batsim's or ElastiSim's, or a trace in the Standard Workload
Format, gzipped or not; "-" is standard input. Jobs with several steps evolve, and jobs
with alternatives are moldable. Jobs with "malleable" bounds take every offer within these and end when their work is
done: the node-seconds of their profile, or by their speed-up. All others are stock jobs. evosim trace evolve makes
evolving jobs. For a trace, --evolving=0.1 gives one job in ten, drawn by --seed, a profile of three steps with the
job's area.

The cluster has the workload's nodes, --nodes, or those of a site's slurm.conf. The
command refuses parameters that the model does not know, and names them;
--leave-out=NAME,… (or "all") runs without them.

--beside=slurm,easy (or "all") runs the same work with a scheduler that a site would use instead. Evolving jobs
are then rigid at their largest size (moldable ones as their first alternative, malleable ones as their profile).
The schedulers are stock Slurm as modelled, FCFS, EASY, and conservative backfilling (the last three on one machine
of all nodes, without partitions). "neighbour" is a scheduler that also places stock jobs: jobs evolve, and no job
starts later than with EASY and rigid jobs. All figures are shown side by side, also how many stock jobs start
later than beside rigid jobs, and how much later.

--checkpoint=FILE writes the state of the run to FILE when it is interrupted, or at --until=SECOND. It first runs until
no command of the sidecar is under way. --resume=FILE with the same options and workload continues from there at once,
with the result of an uninterrupted run. With another --strategy, the rest runs as if the strategy had been changed then
(as evosctl strategy use does). Only the version that wrote a checkpoint reads it.

--watts=busy=350,idle=200 shows the energy in kWh: in all, of jobs, of users, and of idle and held nodes, and what it
would be if a plan that knows all jobs switched idle nodes off. With
--suspend=SECONDS, Slurm switches nodes off that were idle for that long (SuspendTime), and boots them for jobs; of
--beside, only "slurm" does so. Watts of these states are boot=, shutdown=, and off=.
--watts=config takes power.watts and power.types of --config, and shows kWh by type of node too. Nodes of a machine without
a slurm.conf are n1, n2, …; where a scheduler of --beside has no nodes, jobs are placed on the lowest that are free.

--fill=10m,45m shows how many best-effort tasks of these durations would fit between the jobs, and how much of the idle
time they would use, and of that on held nodes: a bound for tasks that nothing interrupts, on one node each.

--report=FILE.html writes one HTML report with text, tables and charts (see evosim report).

Times are seconds from the first submission; waste is in percent of the node-seconds
that jobs asked for, utilisation (allocated) and effective utilisation (asked for) in
percent of nodes × makespan.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := f.experiment(args[0], cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			// The run's garbage is many times what it keeps: collect it less often.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			result, err := withProgress(cmd.Context(), e, cmd.ErrOrStderr())
			if saved := f.save(); saved != nil {
				return evosim.Failure{Err: saved}
			}
			if foreign := new(simulate.NotTheSame); errors.As(err, foreign) {
				return evosim.Failure{Err: fmt.Errorf("--resume=%s: %w", f.resume, foreign)}
			} else if errors.Is(err, context.Canceled) {
				return err
			} else if err != nil {
				return evosim.Failure{Err: err}
			}
			others, err := f.others(cmd.Context(), e, result)
			if errors.Is(err, context.Canceled) {
				return err
			} else if err != nil {
				return evosim.Failure{Err: err}
			}
			f.account(result, others)
			result.Fill(f.lengths)
			result.Made = evosim.Made(cmd, args, strconv.FormatUint(f.seed, 10))
			if f.report != "" {
				all, err := outcomes(result, others)
				if err != nil {
					return evosim.Failure{Err: err}
				}
				if err := evosim.WriteReport(cmd, f.report, "", "", all); err != nil {
					return err
				}
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			if f.format == "json" {
				err = json.NewEncoder(out).Encode(struct {
					*simulate.Result
					Beside []other `json:"beside,omitempty"`
				}{result, others})
			} else {
				err = errors.Join(result.Table(out, f.all), besideTable(out, result, others))
			}
			if err = errors.Join(err, out.Flush()); err != nil {
				return evosim.Failure{Err: err}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.nodes, "nodes", 0, "number of nodes, overriding the workload's")
	flags.IntVar(&f.cpus, "cpus-per-node", f.cpus, "CPUs per node, which are a trace's processors")
	flags.StringVar(&f.slurmConf, "slurm-conf", "", "a site's slurm.conf, for nodes, partitions and scheduler")
	flags.StringSliceVar(&f.leaveOut, "leave-out", nil, `parameters of slurm.conf to ignore, as the error names them, or "all"`)
	flags.StringVar(&f.scheduler, "scheduler-parameters", "", "Slurm's SchedulerParameters, such as bf_interval=60")
	flags.StringVar(&f.config, "config", "", "the sidecar's configuration, evoslurm.yaml (default: its defaults)")
	flags.StringVar(&f.strategy, "strategy", "", "planning strategy (default: the configuration's)")
	flags.Float64Var(&f.evolving, "evolving", 0, "share of a trace's jobs that evolve, 0 to 1")
	flags.Uint64Var(&f.seed, "seed", f.seed, "random seed")
	flags.StringVar(&f.format, "format", f.format, "output format, json or table")
	flags.BoolVar(&f.all, "all", false, "list all jobs in the table, not only those that did not complete")
	flags.BoolVar(&f.lenient, "lenient", false, "skip invalid jobs of a trace, with a message")
	flags.StringSliceVar(&f.beside, "beside", nil, `also show the same work under: `+strings.Join(simulate.Besides, ", ")+`, or "all"`)
	flags.StringVar(&f.report, "report", "", "HTML report to write about the outcomes (see evosim report)")
	flags.Int64Var(&f.until, "until", 0, "stop the run at its first step from this virtual second on")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "checkpoint to write when interrupted or stopped by --until")
	flags.StringVar(&f.resume, "resume", "", "checkpoint to resume from, optionally with another --strategy")
	powerFlags(&f.power, flags)
	flags.StringSliceVar(&f.fill, "fill", nil, "durations of best-effort tasks, to show how much of the idle time they could use, such as 10m,45m")
	flags.BoolVar(&f.everyPoll, "every-poll", false, "simulate every poll of Slurm (same result, far slower)")
	return cmd
}

// readBeside reads what runs beside the workload.
func (f *runFlags) readBeside() error {
	if slices.Equal(f.beside, []string{"all"}) {
		f.beside = simulate.Besides
	}
	for _, name := range f.beside {
		if !slices.Contains(simulate.Besides, name) {
			return fmt.Errorf("--beside=%s: must be %s, or all", name, strings.Join(simulate.Besides, ", "))
		}
	}
	return nil
}

// experiment makes the experiment from the flags and a workload, or returns what is wrong with
// them.
func (f *runFlags) experiment(name string, stdin io.Reader, stderr io.Writer) (e simulate.Experiment, err error) {
	switch {
	case f.format != "json" && f.format != "table":
		return e, fmt.Errorf(`--format=%s: must be "json" or "table"`, f.format)
	case f.nodes < 0 || f.nodes > simulate.MostNodes:
		return e, fmt.Errorf("--nodes=%d: must be within 1 … %d", f.nodes, simulate.MostNodes)
	case f.cpus < 1 || f.cpus > 1<<16:
		return e, fmt.Errorf("--cpus-per-node=%d: must be within 1 … 65536", f.cpus)
	case f.nodes > 0 && f.slurmConf != "":
		return e, errors.New("--nodes: the nodes are those of --slurm-conf")
	case len(f.leaveOut) > 0 && f.slurmConf == "":
		return e, errors.New("--leave-out: there is no --slurm-conf")
	case f.until < 0:
		return e, fmt.Errorf("--until=%d: must be a second from 1 on", f.until)
	case len(f.beside) > 0 && (f.until > 0 || f.resume != ""):
		return e, errors.New("--beside: what runs beside it is neither left nor resumed; it does not go with --until and --resume")
	case !(f.evolving >= 0 && f.evolving <= 1):
		return e, fmt.Errorf("--evolving=%v: must be within 0 … 1", f.evolving)
	}
	if err := f.readBeside(); err != nil {
		return e, err
	}
	e.EveryPoll, e.Config = f.everyPoll, config.Default()
	if f.config != "" {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		config.AddFlag(own)
		if err := own.Set("config", f.config); err != nil {
			return e, err
		}
		if e.Config, _, err = config.Load(own); err != nil {
			return e, err
		}
	}
	if f.strategy != "" {
		e.Config.Strategy = f.strategy
	}
	if e.Strategy, err = planner.StrategyByName(e.Config.Strategy); err != nil {
		return e, fmt.Errorf("%w (strategies that are plugins do not run in virtual time)", err)
	}
	if err := f.leave(&e); err != nil {
		return e, err
	}
	e.Cluster = slurmsim.Options{CPUs: f.cpus, Accounting: true, PermitJobExpansion: true, Seed: f.seed}
	if f.slurmConf != "" {
		if e.Cluster, err = readConf(f.slurmConf, f.leaveOut); err != nil {
			return e, err
		}
		f.nodes, e.Cluster.Seed = len(e.Cluster.NodeList), f.seed
	}
	if f.scheduler != "" {
		if err := e.Cluster.SetScheduler(f.scheduler); err != nil {
			return e, fmt.Errorf("--scheduler-parameters: %w", err)
		}
	}
	if err := f.readJobs(&e, name, stdin, stderr); err != nil {
		return e, err
	}
	if f.nodes > simulate.MostNodes {
		return e, fmt.Errorf("%s: a machine of %d nodes; at most %d can be run: give --nodes or --cpus-per-node", name, f.nodes, simulate.MostNodes)
	}
	if e.Cluster.NodeList == nil {
		e.Cluster.Nodes = f.nodes
	}
	if err := f.power.Validate("--", e.Config.Power); err != nil {
		return e, err
	}
	f.power.Apply(&e)
	return e, f.readFill()
}

// readFill reads --fill.
func (f *runFlags) readFill() error {
	for _, text := range f.fill {
		length, err := planner.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("--fill: %w", err)
		}
		f.lengths = append(f.lengths, length)
	}
	return nil
}

func readConf(name string, leaveOut []string) (slurmsim.Options, error) {
	file, err := os.Open(name)
	if err != nil {
		return slurmsim.Options{}, err
	}
	defer file.Close()
	o, err := slurmsim.ReadConf(file, leaveOut...)
	if unknown := new(slurmsim.NotModelled); errors.As(err, &unknown) {
		return o, fmt.Errorf("%s: %w; --leave-out=NAME,… runs without", name, err)
	} else if err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

var errNoneRan = errors.New("there is no job that ran")

// readJobs reads a workload file or a trace.
func (f *runFlags) readJobs(e *simulate.Experiment, name string, stdin io.Reader, stderr io.Writer) error {
	in, label := stdin, "standard input"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in, label = file, name
	}
	wrong := func(err error) error { return fmt.Errorf("%s: %w", label, err) }
	o := trace.Options{Lenient: f.lenient, AnyOrder: true}
	if f.nodes > 0 {
		o.Machine = planner.MaxNodes // the cluster is not the header's, and rejects what is too large itself
	}
	r, err := trace.NewReader(in, o, sacct)
	if err != nil {
		return wrong(err)
	}
	t, err := r.ReadAll()
	if err != nil {
		return wrong(err)
	}
	evosim.Tell(stderr, label, t.Report)
	for _, far := range simulate.LeaveFar(&t, r.Format == "json") {
		if !f.lenient {
			return wrong(far)
		}
		fmt.Fprintf(stderr, "evosim: %s: left out: %s\n", label, far)
	}
	machine := t.Header.Machine()
	if r.Format == "json" {
		if f.evolving > 0 {
			return errors.New("--evolving: a workload file says itself how its jobs evolve")
		}
		if f.nodes == 0 {
			f.nodes = machine
		}
		p := t.Problem()
		if o.Machine > 0 {
			if err := workload.Check(planner.Problem{Nodes: f.nodes, Busy: p.Busy}); err != nil {
				return wrong(err)
			}
			p.Nodes = o.Machine
		}
		if err := workload.Check(p); err != nil {
			return wrong(err)
		}
		if e.Jobs, err = simulate.FromWorkload(t); err != nil {
			return wrong(err)
		}
		if len(e.Jobs) == 0 && t.Report.Jobs > 0 {
			return wrong(errNoneRan)
		}
		return nil
	}
	if f.nodes == 0 {
		if f.nodes = (max(t.Header.Processors, t.Header.Nodes) + f.cpus - 1) / f.cpus; t.Header.Nodes > 0 && f.cpus > 1 {
			f.nodes = min(f.nodes, t.Header.Nodes)
		}
	}
	if e.Jobs = simulate.FromTrace(t, f.cpus, max(f.nodes, 1), f.evolving, f.seed); len(e.Jobs) == 0 {
		return wrong(errNoneRan)
	}
	if f.nodes == 0 {
		return wrong(errors.New("it does not tell of how many nodes or processors the cluster is (MaxNodes, MaxProcs); give --nodes"))
	}
	return nil
}

// withProgress runs an experiment and shows its progress if stderr is a terminal.
func withProgress(ctx context.Context, e simulate.Experiment, stderr io.Writer) (*simulate.Result, error) {
	progress := evosim.NewProgress(stderr, len(e.Jobs), "running")
	defer progress.Finish()
	e.Progress = progress.Set
	return e.Run(ctx)
}
