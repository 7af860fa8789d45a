package main

import (
	"context"
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
that wait for its nodes.`

func newProfile() *cobra.Command {
	var quiet bool
	margin := ran.Margin
	cmd := &cobra.Command{
		Use:   "profile JOB...",
		Short: "Print the profile that would have fitted jobs that ran",
		Long:  profileHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if margin < 0 || margin > 1000 {
				return fmt.Errorf("--margin=%d: want a percentage from 0 to 1000", margin)
			}
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
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the profile")
	cmd.Flags().IntVar(&margin, "margin", margin, "percent to add to each step's length")
	return cmd
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
