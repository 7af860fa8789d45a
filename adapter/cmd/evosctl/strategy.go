package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

const strategyHelp = `Manage planning strategies: built-in ones, and plugins in the folder strategies.dir of
the configuration. The sidecar changes them between two planning cycles, while jobs run.
The same is true of malleability policies, which decide which malleable jobs grow or
shrink.

A strategy set by use stays in use, also after restarts, until the next use or until the
configuration names another strategy or other parameters. use --configured, or use with
the name in the configuration, goes back to the configuration. use-policy does the same
for malleability policies. use, use-policy, reload and try are for operators.`

func newStrategy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "strategy",
		Short: "List, change and try planning algorithms",
		Long:  strategyHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().Bool("json", false, "write the answer as JSON")
	list := &cobra.Command{Use: "list", Short: "List all strategies and malleability policies", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := ask(cmd, (*api.Client).Strategies, listStrategies); err != nil {
				return err
			}
			if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
				return err // "policies --json" has the others
			}
			fmt.Println()
			return ask(cmd, (*api.Client).Policies, listPolicies)
		}}
	policies := &cobra.Command{Use: "policies", Short: "List all malleability policies", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return ask(cmd, (*api.Client).Policies, listPolicies) }}
	show := &cobra.Command{Use: "show NAME", Short: "Show a strategy, its parameters and faults", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, func(c *api.Client, ctx context.Context) (api.Strategy, error) { return c.Strategy(ctx, args[0]) }, showStrategy)
		}}
	var set []string
	use := newUse(&cobra.Command{Use: "use {NAME [--set NAME=VALUE]... | --configured}", Short: "Plan with a strategy from the next cycle on",
		Example: "  evosctl strategy use klein --set expand_limit=1.5 --set compact=false"},
		"use the configuration's strategy, with its parameters", "--configured takes neither a name nor --set: the configuration has both", "want the name of a strategy, or --configured",
		(*api.Client).UseStrategy)
	usePolicy := newUse(&cobra.Command{Use: "use-policy {NAME [--set NAME=VALUE]... | --configured}", Short: "Resize malleable jobs by a policy from now on",
		Example: "  evosctl strategy use-policy fpsma"},
		"use the configuration's policy (malleable.policy)", "--configured takes neither a name nor --set", "want the name of a malleability policy, or --configured",
		(*api.Client).UsePolicy)
	try := &cobra.Command{Use: "try NAME [--set NAME=VALUE]...", Short: "Plan the current queue with a strategy, without acting on it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, set, func(c *api.Client, ctx context.Context, r api.StrategyRequest) (api.Trial, error) {
				return c.TryStrategy(ctx, args[0], r)
			}, showTrial)
		}}
	addSet(try, &set)
	reload := &cobra.Command{Use: "reload", Short: "Look for plugins again; an upgraded one takes over", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ask(cmd, (*api.Client).ReloadStrategies, listStrategies)
		}}
	cmd.AddCommand(list, show, use, policies, usePolicy, reload, try)
	return cmd
}

func addSet(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "value of a parameter, NAME=VALUE; may be repeated")
}

// newUse completes a command that uses a strategy or policy by its name, or as configured.
func newUse(cmd *cobra.Command, configuredHelp, both, neither string, use func(*api.Client, context.Context, string, api.StrategyRequest) (api.Strategy, error)) *cobra.Command {
	var set []string
	var configured bool
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case configured && (len(args) > 0 || len(set) > 0):
			return errors.New(both)
		case configured:
			args = []string{api.Configured}
		case len(args) == 0:
			return errors.New(neither)
		}
		return change(cmd, set, func(c *api.Client, ctx context.Context, r api.StrategyRequest) (api.Strategy, error) {
			return use(c, ctx, args[0], r)
		}, showStrategy)
	}
	cmd.Flags().BoolVar(&configured, "configured", false, configuredHelp)
	addSet(cmd, &set)
	return cmd
}

// ask asks the sidecar and prints the answer.
func ask[T any](cmd *cobra.Command, question func(*api.Client, context.Context) (T, error), print func(io.Writer, T)) error {
	client, err := connect(cmd)
	if err != nil {
		return err
	}
	ctx, stop := untilSignalOr(cmd.Context(), sidecarPatience)
	defer stop()
	answer, err := question(client, ctx)
	if err != nil {
		return err
	}
	if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
		return printJSON(os.Stdout, answer)
	}
	var text bytes.Buffer
	print(&text, answer)
	_, err = text.WriteTo(os.Stdout) // told if it does not get there
	return err
}

// change asks with parameters.
func change[T any](cmd *cobra.Command, set []string, question func(*api.Client, context.Context, api.StrategyRequest) (T, error), print func(io.Writer, T)) error {
	r := api.StrategyRequest{Parameters: map[string]string{}}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return fmt.Errorf("--set %q: want NAME=VALUE", text)
		}
		if _, twice := r.Parameters[name]; twice {
			return fmt.Errorf("--set %s is given twice", name)
		}
		r.Parameters[name] = value
	}
	return ask(cmd, func(c *api.Client, ctx context.Context) (T, error) { return question(c, ctx, r) }, print)
}

func listStrategies(w io.Writer, all []api.Strategy) { listAll(w, all, "STRATEGY", "PLANS") }

func listPolicies(w io.Writer, all []api.Strategy) { listAll(w, all, "MALLEABILITY POLICY", "ANSWERS") }

func listAll(w io.Writer, all []api.Strategy, of, uses string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\tKIND\tVERSION\tSTATE\t%s\tFAULTS\tLAST FAULT\n", of, uses)
	for _, s := range all {
		mark := ""
		if s.InUse {
			mark = "*"
		}
		fault := s.LastFault
		if s.State == "refused" {
			fault = s.Reason
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.Name, mark, s.Kind, s.Version, s.State, s.Plans, s.Faults, legible.Cut(fault, 60, "…"))
	}
	t.Flush()
}

// won lists how often each strategy had the best plan, the most frequent first.
func won(by map[string]int) string {
	names := slices.Sorted(maps.Keys(by))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(by[b], by[a]) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, by[name])
	}
	return strings.Join(names, "; ")
}

func showStrategy(w io.Writer, s api.Strategy) {
	version := ""
	if s.Version != "" {
		version = ", version " + s.Version
	}
	fmt.Fprintf(w, "%s (%s%s)\n%s\n\n", s.Name, s.Kind, version, s.Help)
	fmt.Fprintf(w, "State:    %s\nPlans:    %d\n", stateOf(s), s.Plans)
	if len(s.Won) > 0 {
		fmt.Fprintf(w, "Won:      %s\n", won(s.Won))
	}
	if s.Kind == "plugin" {
		fmt.Fprintf(w, "Faults:   %d; %d cycles planned without it\n", s.Faults, s.Fallen)
	}
	if s.LastFault != "" {
		fmt.Fprintf(w, "          %s: %s\n", s.FaultAt.Format(time.DateTime), s.LastFault)
	}
	if s.SHA256 != "" {
		fmt.Fprintf(w, "SHA-256:  %s\nProtocol: %d\n", s.SHA256, s.Protocol)
	}
	if len(s.Parameters) == 0 {
		return
	}
	fmt.Fprintln(w, "\nParameters:")
	for _, p := range s.Parameters {
		fmt.Fprintf(w, "  %s=%s  (%s; default %s)\n      %s\n", p.Name, p.Value, boundsOf(p), p.Default, p.Help)
	}
}

func showTrial(w io.Writer, t api.Trial) {
	row := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(row, "\t%s (in use)\t%s (tried)\tchange\n", called(t.Present), called(t.Tried))
	line := func(name string, before, after float64, unit string) {
		change := ""
		if before != 0 && before != after {
			change = fmt.Sprintf("%+.1f %%", 100*(after-before)/before)
		}
		fmt.Fprintf(row, "%s\t%s\t%s\t%s\n", name, amount(before, unit), amount(after, unit), change)
	}
	line("makespan", t.Present.Makespan, t.Tried.Makespan, "s")
	line("average completion", t.Present.Completion, t.Tried.Completion, "s")
	line("average wait", t.Present.Wait, t.Tried.Wait, "s")
	line("waste", t.Present.Waste, t.Tried.Waste, "%")
	fmt.Fprintf(row, "jobs planned\t%d\t%d\n", t.Present.Planned, t.Tried.Planned)
	fmt.Fprintf(row, "planning took\t%.0f ms\t%.0f ms\n", 1000*t.Present.Seconds, 1000*t.Tried.Seconds)
	row.Flush()
	changed := slices.DeleteFunc(slices.Clone(t.Jobs), func(j api.TrialJob) bool {
		return j.Start.Equal(j.TriedStart) && j.End.Equal(j.TriedEnd)
	})
	if len(changed) == 0 {
		fmt.Fprintf(w, "\nNone of the %d queued evolving jobs would be planned otherwise.\n", len(t.Jobs))
		return
	}
	fmt.Fprintf(w, "\n%d of the %d queued evolving jobs would be planned otherwise:\n\n", len(changed), len(t.Jobs))
	fmt.Fprintln(row, "JOB\tPROFILE\tSTART\tTRIED\tEND\tTRIED")
	for _, j := range changed {
		fmt.Fprintf(row, "%d\t%s\t%s\t%s\t%s\t%s\n", j.ID, legible.Cut(j.Profile, 40, "…"), clock(j.Start), clock(j.TriedStart), clock(j.End), clock(j.TriedEnd))
	}
	row.Flush()
	for _, j := range changed {
		if j.TriedUnfit != "" {
			fmt.Fprintf(w, "job %d would have no plan: %s\n", j.ID, j.TriedUnfit)
		}
	}
}

// stateOf returns a strategy's state, and since when it is in use.
func stateOf(s api.Strategy) string {
	state := s.State
	if s.Reason != "" && s.State == "policy" {
		state = s.Reason
	} else if s.Reason != "" {
		state += " " + s.Reason
	}
	if s.InUse && !s.Since.IsZero() {
		state += fmt.Sprintf(", since %s, by %s", s.Since.Format(time.DateTime), s.By)
		if s.Instead != "" {
			state += fmt.Sprintf("; the configuration has %s", s.Instead)
		}
	}
	return state
}

// boundsOf returns the values that a parameter may have.
func boundsOf(p api.StrategyParameter) string {
	bounds := p.Type
	switch {
	case len(p.Choices) > 0:
		bounds = strings.Join(p.Choices, ", ")
	case p.Min != "" && p.Max != "":
		bounds += " from " + p.Min + " to " + p.Max
	case p.Min != "":
		bounds += ", " + p.Min + " or more"
	case p.Max != "":
		bounds += ", " + p.Max + " or less"
	}
	return bounds
}

// called is a strategy with its parameters.
func called(p api.StrategyPlan) string {
	var set []string
	for name, value := range p.Parameters {
		set = append(set, " "+name+"="+value)
	}
	slices.Sort(set)
	return p.Strategy + strings.Join(set, "")
}

func amount(v float64, unit string) string {
	if unit == "s" {
		return (time.Duration(v) * time.Second).String()
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// clock returns a time as people read it, with the day if that is another one.
func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.Format(time.DateOnly) == time.Now().Format(time.DateOnly):
		return t.Format(time.TimeOnly)
	}
	return t.Format("01-02 15:04:05")
}
