// Evosdemo shows Evoslurm at work on a private, real Slurm, and measures it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/trials/demo"
)

var linked string // the version, set by the linker (Makefile)

func main() {
	// The second signal ends at once; the cluster's supervisor then tidies up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := newCommand().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	var exit *exec.ExitError
	stop()
	switch {
	case err == nil:
	case errors.As(err, &exit): // the command's, which has said why
		os.Exit(max(exit.ExitCode(), 1))
	case interrupted:
		fmt.Fprintln(os.Stderr, "evosdemo: interrupted; all is stopped")
		os.Exit(130)
	case errors.Is(err, demo.ErrNotAsRequested): // already reported
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
			var err error
			if o.Drive, err = drivable(drive); err != nil {
				return err
			}
			if o.Bin, err = commandsOf(o.Bin); err != nil {
				return err
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
	f.StringVar(&o.Bin, "bin", "", "folder of the commands (default: where evosdemo is)")
	cmd.AddCommand(newShell(), newTutorial())
	version.Arguments(cmd)
	return cmd
}

func newShell() *cobra.Command {
	o := demo.ShellOptions{Out: os.Stdout}
	var drive string
	cmd := &cobra.Command{
		Use:   "shell [-- COMMAND [ARG...]]",
		Short: "Boot a private Slurm and give a shell in it",
		Long: `Boots a private Slurm from the system's packages, starts evoslurmd beside it and gives
a shell as an ordinary user in it, or runs the command. When that ends everything is
taken down and removed. "evosdemo tutorial" has five commands to begin with.

Exit status: the command's; of a shell 0; 2 if it could not be had.`,
		Example: `  evosdemo shell
  evosdemo shell --nodes=32 --drive=companion
  evosdemo shell --site=archer2
  evosdemo shell -- evosctl doctor`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Site != "" && (cmd.Flags().Changed("nodes") || cmd.Flags().Changed("drive")) {
				return errors.New("--site has its own nodes and drive mode")
			}
			if o.Drive, err = drivable(drive); err != nil {
				return err
			}
			if o.Nodes < 1 || o.Nodes > mostNodes {
				return fmt.Errorf("--nodes=%d: want 1 to %d", o.Nodes, mostNodes)
			}
			if o.Bin, err = commandsOf(o.Bin); err != nil {
				return err
			}
			o.Command = args
			if len(args) > 0 {
				o.Out = os.Stderr
			}
			return demo.Shell(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.Nodes, "nodes", 8, "size of the cluster")
	f.StringVar(&o.Site, "site", "", "the Slurm of a real site (make sites), by a part of its name")
	f.StringVar(&drive, "drive", "merge", "how jobs grow: merge, or companion, on a Slurm without permit_job_expansion")
	f.StringVar(&o.Bin, "bin", "", "folder of the commands (default: where evosdemo is)")
	for name, values := range map[string][]string{"site": demo.SiteNames(), "drive": {"merge", "companion"}, "nodes": nil} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is named wrongly
		}
	}
	return cmd
}

// mostNodes bounds the nodes per machine.
const mostNodes = 1000

func newTutorial() *cobra.Command {
	return &cobra.Command{
		Use:   "tutorial",
		Short: "Print five commands, from a first evolving job to a changed strategy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), demo.Tutorial())
			return err
		},
	}
}

// drivable returns the drive mode that a demo may have.
func drivable(name string) (drivemode.Mode, error) {
	mode, err := drivemode.Parse(name)
	if err != nil || mode != drivemode.Merge && mode != drivemode.Companion {
		return "", fmt.Errorf("--drive=%s: want merge or companion", name)
	}
	return mode, nil
}

// commandsOf returns the folder of the built commands: the given one, otherwise this program's.
func commandsOf(folder string) (string, error) {
	if folder != "" {
		return folder, nil
	}
	self, err := os.Executable()
	return filepath.Dir(self), err
}
