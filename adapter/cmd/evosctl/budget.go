package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

const budgetHelp = `Show how much evolving jobs may hold ahead of time, and what is in use: reservations
(max_holds), nodes, and node-hours by user, account, and partition (hold_shares), and how
long holds may keep stock jobs from starting (max_delay, max_delays). Show also how much
growths on demand took from waiting jobs, and how much later these are (grow_delay). Users
see their own use, and their own waiting jobs.`

const budgetSetHelp = `Change limits on holds at once: max_delay, max_delays, max_holds, and
hold_shares.SCOPE.SHARE, where SCOPE is job, user, account, or partition, and SHARE is
reservations, nodes, or node_hours (percent). Values have the form of the configuration;
lists have commas. A change outlives restarts, until --configured, or until the
configuration's own value changes. Without keys, --configured takes all back. The event
log names the operator. Only operators may do this.`

func newBudget() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "budget [--by=user|account|partition]",
		Short: "Show the limits on holds, and what is in use",
		Long:  budgetHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by != "" && !slices.Contains(config.HoldScopes[1:], by) {
				return fmt.Errorf("--by=%q: want user, account, or partition", by)
			}
			return ask(cmd, func(c *api.Client, ctx context.Context) (api.Budget, error) {
				b, err := c.Budget(ctx)
				b.Use = slices.DeleteFunc(b.Use, func(u api.BudgetUse) bool { return by != "" && u.Scope != by })
				return b, err
			}, showBudget)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.PersistentFlags().Bool("json", false, "write the answer as JSON")
	cmd.Flags().StringVar(&by, "by", "", "show only the use by user, account, or partition")
	complete.Flags(cmd, map[string]func(context.Context) []string{"by": complete.Fixed(config.HoldScopes[1:]...)})
	cmd.AddCommand(newBudgetSet())
	return cmd
}

func newBudgetSet() *cobra.Command {
	var configured bool
	cmd := &cobra.Command{
		Use:     "set {KEY=VALUE... | --configured [KEY...]}",
		Short:   "Change limits on holds (operators)",
		Long:    budgetSetHelp,
		Example: "  evosctl budget set max_delay=30m hold_shares.user.node_hours=20\n  evosctl budget set --configured max_delay",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := keysRequest(args, configured, config.BudgetKeys(), "limit on holds")
			if err != nil {
				return err
			}
			return ask(cmd, func(c *api.Client, ctx context.Context) (api.Settings, error) { return c.ChangeSettings(ctx, r) }, showSettings)
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return config.BudgetKeys(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&configured, "configured", false, "use the configuration's values again")
	return cmd
}

// keysRequest returns the change of some of the keys that the arguments ask for. `what` names such a key.
func keysRequest(args []string, configured bool, keys []string, what string) (r api.SettingsRequest, err error) {
	if r.Set = map[string]string{}; configured && len(args) == 0 {
		args = keys
	}
	for _, text := range args {
		key, value, is := strings.Cut(text, "=")
		_, twice := r.Set[key]
		switch {
		case is == configured:
			return r, fmt.Errorf("%q: want KEY=VALUE, or --configured and KEY", text)
		case !slices.Contains(keys, key):
			return r, fmt.Errorf("%q is no %s; there are %s", key, what, strings.Join(keys, ", "))
		case twice:
			return r, fmt.Errorf("%s is given twice", key)
		case configured:
			r.Configured = append(r.Configured, key)
		default:
			r.Set[key] = value
		}
	}
	if len(args) == 0 {
		return r, fmt.Errorf("what? Say KEY=VALUE, such as %s=…, or --configured", keys[0])
	}
	return r, nil
}

func showBudget(w io.Writer, b api.Budget) {
	listSettings(w, b.Limits)
	fmt.Fprintf(w, "\nReservations: %d of %d\n", b.Holds, b.MostHolds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(b.Use) > 0 {
		fmt.Fprintln(t, "\nBY\tNAME\tPARTITION\tRESERVATIONS\tNODES\tNODE-HOURS")
	}
	for _, u := range b.Use {
		name := u.Name
		if name == "" {
			name = "all users"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%d of %d\t%.1f of %.1f\n", u.Scope, name, u.Partition, u.Holds, u.MostHolds, u.Nodes, u.MostNodes, u.NodeHours, u.MostNodeHours)
	}
	t.Flush()
	if len(b.Delays) > 0 {
		fmt.Fprintln(t, "\nPARTITION\tSTOCK JOBS HELD UP\tLONGEST\tOF AT MOST")
	}
	for _, d := range b.Delays {
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\n", d.Partition, d.Jobs, seconds(d.Longest), seconds(d.Budget))
	}
	if len(b.Growths) > 0 {
		fmt.Fprintln(t, "\nGROWTHS OF\tTOOK NODE-SECONDS\tOF AT MOST\tCOUNTED UNTIL")
	}
	for _, g := range b.Growths {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", g.User, g.NodeSeconds, g.MostNodeSeconds, g.Until.Local().Format(time.DateTime))
	}
	if len(b.Moved) > 0 {
		fmt.Fprintln(t, "\nWAITING JOB\tUSER\tLATER BY\tOF AT MOST")
	}
	for _, m := range b.Moved {
		fmt.Fprintf(t, "%d\t%s\t%v\t%v\n", m.Job, m.User, seconds(m.Seconds), seconds(m.Most))
	}
	t.Flush()
}

func seconds(s float64) time.Duration { return (time.Duration(s) * time.Second).Round(time.Second) }
