// Evosdemo shows Evoslurm at work on a private, real Slurm, and measures it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/adapter/trials/demo"
	"github.com/evoslurm/evoslurm/adapter/version"
)

var linked string // the version, set by the linker (Makefile)

func main() {
	// The second signal ends at once; the cluster's supervisor then tidies up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := newCommand().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		fmt.Fprintln(os.Stderr, "evosdemo: interrupted; all is stopped")
		os.Exit(130)
	case errors.Is(err, demo.ErrNotAsRequested): // it has been told
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "evosdemo: error:", err)
		os.Exit(2)
	}
}

func newCommand() *cobra.Command {
	o := demo.Options{Out: os.Stdout}
	var drive string
	cmd := &cobra.Command{
		Use:   "evosdemo",
		Short: "Show evolving jobs on a private, real Slurm",
		Long: `Boots a private Slurm from the system's packages, starts evoslurmd beside it and
submits evolving jobs with evosbatch among stock jobs that compete for the same
nodes; then the same jobs once more at their peak sizes. Every job measures by
srun which nodes it has. Takes about three minutes.

Exit status: 0 if every evolving job got what it had asked for, in time, and Slurm
was left clean; 1 if not, 2 if the demo could not be run.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode, err := request.ParseDrive(drive)
			if err != nil || mode != request.Merge && mode != request.Companion {
				return fmt.Errorf("--drive=%s: want merge or companion", drive)
			}
			o.Drive = mode
			if o.Bin == "" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				o.Bin = filepath.Dir(self)
			}
			return demo.Run(cmd.Context(), o)
		},
	}
	version.Flag(cmd, linked)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&drive, "drive", "merge", "how jobs grow: merge, or companion, on a Slurm without permit_job_expansion")
	f.IntVar(&o.Nodes, "nodes", 8, "size of the cluster; the jobs grow with it")
	f.BoolVar(&o.Plain, "plain", false, "lines instead of a chart that is redrawn")
	f.BoolVar(&o.KeepLogs, "keep-logs", false, "keep logs, traces and database")
	f.StringVar(&o.Bin, "bin", "", "folder of the built commands (default: where evosdemo is)")
	return cmd
}
