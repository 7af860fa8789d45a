// Command evostop shows evolving jobs on the full screen: the queue, a chart of past and plan,
// and a job's details.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl"
)

var linked string // the version, set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "evostop: error: %v\n", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	var delay float64
	var clusters []string
	cmd := &cobra.Command{
		Use:   "evostop",
		Short: "Show evolving jobs on the full screen",
		Long: `Show the evolving jobs that you may read, like top: the queue, a chart of past and plan,
and a job's details with its events.

` + keysHelp,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(delay >= 0.5 && delay <= 3600) { // it may be no number
				return fmt.Errorf("--delay=%g: want 0.5 to 3600 seconds", delay)
			}
			o.delay = time.Duration(delay * float64(time.Second))
			if !display.Look(os.Stdout, os.Getenv).TTY {
				return fmt.Errorf("standard output is not a terminal; use evosqueue -i, which needs none")
			}
			site, _, err := config.Load(cmd.Flags())
			if err != nil {
				return err
			}
			places, err := placesOf(cmd.Context(), site, clusters)
			if err != nil {
				return err
			}
			o.ascii = display.Look(os.Stdout, os.Getenv).ASCII
			screen, err := tcell.NewScreen()
			if err != nil {
				return fmt.Errorf("the terminal (TERM=%s) cannot be used: %w", os.Getenv("TERM"), err)
			}
			return newTop(places, o).run(cmd.Context(), screen)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Float64VarP(&delay, "delay", "d", 2, "seconds between two updates")
	f.StringVarP(&o.user, "user", "u", "", "show only this user's jobs")
	f.BoolVarP(&o.all, "all", "a", false, "include ended jobs")
	f.BoolVarP(&o.gantt, "gantt", "g", false, "start with the chart")
	f.StringSliceVarP(&clusters, "clusters", "M", nil, "show the jobs of these clusters, one at a time, or of all (default: this cluster)")
	config.AddFlag(f)
	version.Flag(cmd, linked)
	version.Arguments(cmd)
	complete.None(cmd, "delay", "user", "clusters")
	return cmd
}

// placesOf returns the clusters that the user can choose among: this one or, with --clusters, those.
func placesOf(ctx context.Context, site config.Config, names []string) ([]place, error) {
	if len(names) == 0 {
		client, err := reach.Client(site)
		return []place{{from: client, slurm: &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: scancelTime}}}, err
	}
	clusters, err := reach.Clusters(ctx, site, names)
	var all []place
	for _, c := range clusters {
		all = append(all, place{c.Name, c.API, &slurmctl.Client{Dir: c.Slurm.Dir, Timeout: scancelTime, Remote: c.Slurm.Remote}})
	}
	return all, err
}
