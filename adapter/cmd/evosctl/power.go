package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const powerHelp = `Show which idle nodes are off because nothing is planned on them (power.mode: act), or
could be (advise), until when, and what that saves by the watts of the configuration.
With --history: how many nodes jobs took that nobody planned, by hour of the week, and how
many nodes stay awake for such jobs. Only operators may see this.`

const powerSetHelp = `Change at once what happens to idle nodes: power.mode (off, advise, or act),
power.max_wait, and power.reserve. A change outlives restarts, until --configured, or until the
configuration's own value changes. Without keys, --configured takes all back. The event
log names the operator. Only operators may do this.`

func newPower() *cobra.Command {
	var history bool
	var partition string
	cmd := &cobra.Command{
		Use:     "power [--history [--partition=NAME]]",
		Short:   "Show which idle nodes are off by plan, or could be (operators)",
		Long:    powerHelp,
		Example: "  evosctl power --history --partition=main",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case history:
				return ask(cmd, historyOf(partition), showHistory)
			case partition != "":
				return errors.New("--partition goes with --history")
			}
			return ask(cmd, (*api.Client).Power, showPower)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&history, "history", false, "show what was learnt by hour of the week")
	cmd.Flags().StringVar(&partition, "partition", "", "with --history, only this partition")
	cmd.PersistentFlags().Bool("json", false, "write the answer as JSON")
	cmd.AddCommand(newPowerSet())
	return cmd
}

func newPowerSet() *cobra.Command {
	var configured bool
	cmd := &cobra.Command{
		Use:     "set {KEY=VALUE... | --configured [KEY...]}",
		Short:   "Change what happens to idle nodes (operators)",
		Long:    powerSetHelp,
		Example: "  evosctl power set power.mode=advise\n  evosctl power set --configured",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := keysRequest(args, configured, config.PowerKeys(), "key of power")
			if err != nil {
				return err
			}
			return ask(cmd, func(c *api.Client, ctx context.Context) (api.Settings, error) { return c.ChangeSettings(ctx, r) }, showSettings)
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return config.PowerKeys(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&configured, "configured", false, "use the configuration's values again")
	return cmd
}

func showPower(w io.Writer, p api.Power) {
	are := map[string]string{string(config.PowerAdvise): "could be off", string(config.PowerAct): "are off by plan"}[p.Mode]
	fmt.Fprintf(w, "Mode: %s\n", p.Mode)
	if p.Why != "" {
		fmt.Fprintf(w, "No node goes off by plan: %s\n", p.Why)
	}
	s := p.States
	fmt.Fprintf(w, "Nodes: %d busy, %d idle, %d booting, %d off, %d unusable\n", s.Busy, s.Idle, s.Booting, s.Off, s.Unusable)
	if p.Mode == string(config.PowerOff) {
		return
	}
	fmt.Fprintf(w, "A node goes off if nothing is planned on it for %v: shutdown %v, boot %v, break-even %v\n",
		seconds(p.Shutdown+p.Boot+p.BreakEven), seconds(p.Shutdown), seconds(p.Boot), seconds(p.BreakEven))
	fmt.Fprintf(w, "Now: %d nodes %s, %.1f kW less\n", p.Nodes, are, p.Saves/1000)
	if !p.Since.IsZero() {
		saved := map[string]string{string(config.PowerAdvise): "would have been saved", string(config.PowerAct): "were saved"}[p.Mode]
		fmt.Fprintf(w, "Since %s: %.1f kWh %s, with %d boots\n", p.Since.Local().Format(time.DateTime), p.KWh, saved, p.Boots)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(p.Reserve) > 0 {
		fmt.Fprintln(t, "\nPARTITION\tSTAY AWAKE\tTODAY FROM 0 TO 23 H UTC\tMOST")
	}
	for _, r := range p.Reserve {
		most := slices.Max(append(r.Today, 0))
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\n", r.Partition, r.Nodes, heat(r.Today, most), most)
	}
	t.Flush()
	if len(p.Naps) > 0 {
		fmt.Fprintln(t, "\nNODES\tLIST\tSINCE\tNEXT PLANNED USE")
	}
	for _, n := range p.Naps {
		until := "none"
		if !n.Until.IsZero() {
			until = n.Until.Local().Format(time.DateTime)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", n.Nodes, n.NodeList, n.Since.Local().Format(time.DateTime), until)
	}
	t.Flush()
}

// power reports what it means for evolving jobs that Slurm itself powers nodes down or suspends
// jobs.
func (d *doctor) power(sc slurmctl.Config) {
	saving, on := sc.PowerSaving()
	switch {
	case !on:
		d.add("power saving", ok, "off", "")
	case os.Geteuid() != 0 && !isSlurmUser(sc):
		d.add("power saving", warn, fmt.Sprintf("on, nodes are up within %v: only root, SlurmUser and administrators switch them on", saving.ResumeTimeout),
			"run the sidecar as root: as an operator it leaves switching to Slurm, and starts and growths onto nodes that are off are late by this time")
	case sc.HidesCloud():
		d.add("power saving", warn, fmt.Sprintf("on, nodes are up within %v; State=CLOUD nodes that are off are not shown, and not planned", saving.ResumeTimeout),
			"PrivateData=cloud in slurm.conf, if there are such nodes")
	default:
		d.add("power saving", ok, fmt.Sprintf("on: nodes of coming growths are switched on %v before", saving.ResumeTimeout), "")
	}
	if sc.SuspendsJobs() {
		d.add("preemption", warn, "PreemptMode="+sc.Values["PreemptMode"]+": Slurm suspends jobs for those of a partition with a higher PriorityTier",
			"an evolving job's steps move by the time of its suspension; submit to the partition with the highest PriorityTier if growths must be on time. Slurm suspends no job for an evolving one: it waits for the other jobs' nodes")
	}
}

func isSlurmUser(sc slurmctl.Config) bool {
	_, uid, err := sc.SlurmUser()
	return err == nil && uint32(os.Geteuid()) == uid
}
