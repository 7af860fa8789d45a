package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// leaveNodes signals the srun steps on nodes that go, and waits until they have ended.
func leaveNodes(ctx context.Context, client *api.Client, job uint32, leaving []string, signal string, deadline time.Time) error {
	has, err := injob.Present(ctx, client, job)
	if err != nil {
		return err
	}
	slurm := &slurmctl.Client{}
	own := injob.SeeOwnTask(slurm, os.Getenv) + "." + os.Getenv("SLURM_STEP_ID")
	left, err := injob.Leave(ctx, slurm, has, leaving, signal, own, deadline)
	if err == nil && len(left) > 0 && ctx.Err() == nil {
		say("%s: still there after SIG%s; they are killed with their nodes", strings.Join(left, ", "), signal)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// addSignal adds --signal.
func addSignal(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "signal", "", "signal for srun steps on nodes that leave, before they leave: "+strings.Join(injob.LeaveSignals, ", "))
}
