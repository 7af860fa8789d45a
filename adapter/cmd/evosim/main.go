// Command evosim plans and simulates offline: it plans a workload file, runs it on a model of
// Slurm, generates workloads, and repeats the paper's evaluation. It also replays recordings of the
// sidecar's core.
//
// It exits with 0, with 2 for bad usage or bad input, and with 1 for anything else.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
)

var linked string // the version, set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(evosim.Run(ctx, newCommand(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func newCommand() *cobra.Command {
	traces := evosim.TraceCommand(sacct)
	traces.AddCommand(injectCommand(), extractCommand())
	cmd := evosim.New(linked, replayCommand(), runCommand(), sweepCommand(), espCommand(), observedCommand(), evosim.BaselineCommand(sacct), traces, evosim.ReportCommand(sacct))
	version.UsageFlag(cmd)
	version.Arguments(cmd)
	return cmd
}
