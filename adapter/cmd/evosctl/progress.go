package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
)

const progressHelp = `Report how much of its work the application has done: a fraction from 0 to 1, or a percentage.

  evosctl progress 0.37
  evosctl progress 37%

From reports on two sizes, the sidecar computes the application's speed on any number of nodes (Amdahl's law).
This overrides evosbatch --speedup: the malleability policy gain gives nodes to the jobs that they speed up
most. The time between two reports counts only if the nodes stayed the same. So report before a step ends,
before you accept an offer, and every minute or so.

Progress never falls, unless Slurm has requeued the job. evosqueue --long shows it.

Exit status: 0; 1 if the report was refused; 124 without an answer within --timeout: go on, the next report is
enough.`

func newProgress() *cobra.Command {
	var job jobFlag
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "progress FRACTION",
		Short: "Report how much of its work the application has done",
		Long:  progressHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			fraction, err := parseFraction(args[0])
			if err != nil {
				return err
			}
			client, id, err := job.connect(cmd)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			a, err := client.Progress(ctx, id, api.ProgressReport{Fraction: fraction})
			switch {
			case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
				say("the sidecar has not answered in %v", timeout)
				return exitStatus(124)
			case err != nil || !asJSON:
				return err
			}
			a.Ready = false // of no interest here
			return printJSON(os.Stdout, a)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	job.add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest time to wait for the sidecar")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the measurements so far as JSON")
	return cmd
}

// parseFraction reads 0.37, or 37%.
func parseFraction(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("invalid progress %q: want 0 to 1, e.g. 0.37, or 37%%", text)
	}
	return f, nil
}
