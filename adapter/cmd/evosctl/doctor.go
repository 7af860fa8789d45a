package main

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/show/display"
)

const doctorHelp = `Check the installation and the cluster, and print which drive mode jobs get and why.
Run it as the sidecar's user on its host. Run by a user on a compute node, it checks
whether jobs can reach the sidecar from there.

With --trial, it runs a ten-second evolving job instead, as the calling user, through a
growth and a shrink. It reports changes of the job's comment by the site, the drive mode,
and how long each change takes. Users may run it, too: give the options that jobs need
(-p, -A, -q). For each problem it prints the remedy, and it leaves nothing behind.

Exit status: 1 if a check failed, else 0.`

// startingFlag makes doctor check what a sidecar needs that is about to start: evoslurmd --check uses it.
const startingFlag = "starting"

func newDoctor() *cobra.Command {
	var asJSON bool
	t := &trial{progress: os.Stderr}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and the cluster",
		Long:  doctorHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if err := t.check(cmd.Flags()); err != nil {
				return err
			}
			var r *report
			if t.on {
				r = t.run(ctx, cmd.Flags())
			} else {
				r = examine(ctx, cmd.Flags())
			}
			if asJSON {
				if err := printJSON(os.Stdout, r); err != nil {
					return err
				}
			} else {
				var text bytes.Buffer
				r.print(&text, display.Look(os.Stdout, os.Getenv).Color)
				if _, err := text.WriteTo(os.Stdout); err != nil {
					return err
				}
			}
			if r.failed() {
				return exitStatus(1)
			}
			return nil
		},
	}
	t.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the results as JSON")
	cmd.Flags().Bool(startingFlag, false, "check what the sidecar needs to start as this user")
	if err := cmd.Flags().MarkHidden(startingFlag); err != nil {
		panic(err) // the flag is named wrongly
	}
	return cmd
}
