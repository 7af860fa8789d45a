package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
)

const cancelHoldsHelp = `Cancel the holds for the coming growths of a running job: other jobs may have these nodes at once. The job
keeps what it has, but its promise lapses. When it ends its current step, the coming steps are replanned, and
nodes are held again. The event log names the operator. Only operators may do this.

Do not delete the reservations with scontrol: the sidecar creates them again. To keep a job that has not begun
from starting, use scontrol hold.`

func newCancelHolds() *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cancel-holds JOB",
		Short: "Cancel the holds for a running job's coming steps (operators)",
		Long:  cancelHoldsHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := api.ParseJobName(args[0])
			if err != nil {
				return err
			}
			client, err := connect(cmd)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			id, err := client.Find(ctx, name)
			if err != nil {
				return err
			}
			a, err := client.CancelHolds(ctx, id)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(os.Stdout, a)
			}
			for _, h := range a.Holds {
				fmt.Printf("cancelled: %s for step %d of job %d, from %s\n", h.NodeList, h.Step, a.Job, h.Start.Local().Format(time.DateTime))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "longest time to wait for the sidecar")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the cancelled holds as JSON")
	return cmd
}
