package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
	"github.com/evoslurm/evoslurm/planner"
)

const profileHelp = `Print the profile that would have fitted jobs that ran. For each step, it shows the requested
time, the time until the application ended it, and the time that it then kept its nodes while
waiting for the next step's. For several jobs (runs of the same application), the longest time
of each step counts. The last line is the profile, for evosbatch --profile=@NAME:

  evosctl profile 4711 4712 -q >~/.config/evoslurm/profiles/amr
  evosbatch --profile=@amr amr.sh

--margin (default 5 %) lengthens each step: a step that exceeds its time delays the jobs
that wait for its nodes.

With --from=FILE, the profile comes from the code's own output: a first short run that printed
its size over time, such as the cells of its mesh. This needs no sidecar:

  evosctl profile --from=trial.out --per-node=200000 --scale=50

FILE (- for standard input) has lines SECONDS SIZE, or the lines that contrib/examples/amr prints
among others. Nodes are the size / --per-node, rounded up. The model: a cell takes the same time on
any number of nodes, so a step lasts its work / its nodes, and its work is what was measured.
The command joins changes into few steps of --shortest or more, with the least node time beyond the need.`

func newProfile() *cobra.Command {
	var quiet bool
	margin := ran.Margin
	var from fromFlags
	cmd := &cobra.Command{
		Use:   "profile {JOB... | --from=FILE --per-node=N}",
		Short: "Print the profile that would have fitted jobs that ran, or a measured run",
		Long:  profileHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if margin < 0 || margin > 1000 {
				return fmt.Errorf("--margin=%d: want a percentage from 0 to 1000", margin)
			}
			if cmd.Flags().Changed("from") {
				return from.show(cmd, args, margin, quiet)
			}
			if used := from.used(cmd); used != "" {
				return fmt.Errorf("--%s goes with --from=FILE", used)
			}
			if len(args) == 0 {
				return errors.New("want a job, or --from=FILE with what a run measured")
			}
			return profileOfJobs(cmd, args, margin, quiet)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the profile")
	cmd.Flags().IntVar(&margin, "margin", margin, "percent to add to each step's length")
	from.add(cmd)
	return cmd
}

func profileOfJobs(cmd *cobra.Command, args []string, margin int, quiet bool) error {
	client, err := connect(cmd)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	var all [][]ran.Step
	for _, arg := range args {
		name, err := api.ParseJobName(arg)
		if err != nil {
			return err
		}
		j, err := atOnce(ctx, client, func(ctx context.Context) (j api.Job, err error) {
			id, err := client.Find(ctx, name)
			if err != nil {
				return j, err
			}
			return client.Job(ctx, id)
		})
		if err != nil {
			return err
		}
		events, err := client.Events(ctx, api.EventQuery{Job: j.ID, Limit: api.MaxEvents})
		if err != nil {
			return err
		}
		steps, err := ran.Steps(j, events)
		if err != nil {
			return fmt.Errorf("job %d: %w", j.ID, err)
		}
		all = append(all, steps)
		if !quiet {
			showRan(os.Stdout, j, steps)
		}
	}
	fits, err := ran.Fitting(all, margin)
	if err != nil {
		return err
	}
	fmt.Println(fits)
	return nil
}

func showRan(out io.Writer, j api.Job, steps []ran.Step) {
	fmt.Fprintf(out, "# job %d\n# %4s %5s %10s %10s %10s\n", j.ID, "STEP", "NODES", "ASKED", "LASTED", "IDLE AFTER")
	for i, s := range steps {
		note := ""
		if !s.ByApplication {
			note = "  (until the job's end)"
		}
		fmt.Fprintf(out, "# %4d %5d %10s %10s %10s%s\n", i+1, s.Nodes, planner.FormatDuration(s.Asked), planner.FormatDuration(s.Lasted), planner.FormatDuration(s.Idled), note)
	}
}
