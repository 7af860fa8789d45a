package evosim

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

func cigriCommand() *cobra.Command {
	own, format, workers := sim.CigriTables[0], format("table"), runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use:   "cigri [--tests=100] [--seed=1] [--nodes=32 --load=40] [--format=json|table]",
		Short: "Repeat the experiment with a bag of best-effort tasks (Georgiou 2010, tables 4.1 and 4.2)",
		Long: `Run a bag of tasks of 45 minutes for five hours on what the local jobs of clusters leave, and print
tables 4.1 and 4.2 of Georgiou's thesis (minimum, average and maximum) beside the published figures:
runs of tasks, by what became of them. A local job interrupts the tasks on its CPUs. An interruption
is valuable if the task later goes on from its checkpoint and terminates.

  none         no checkpoints: an interrupted task begins again
  periodic     a checkpoint every --period, which stops the task for --overhead
  triggered    a checkpoint on demand, if it takes no longer than --grace
  plan-aware   the same; where the plan of the local jobs submitted so far says when they next need a
               CPU, tasks that fit before that, and checkpoints in time
  clairvoyant  knows all local jobs, and takes the best of all ways

LOST is CPU-hours of computation that interruptions lost, DELAY the mean seconds that tasks delay a
local job. With --ahead, plans know local jobs before they may start, like the growths of evolving
jobs. With --nodes, --load, or --length, the command runs one experiment of your own, by default with
the other values of table 4.1. The local jobs are random: the logs' hours are unknown.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 {
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			}
			experiments := []cigriJSON{{Parameters: own}}
			if changed := cmd.Flags().Changed; !changed("nodes") && !changed("load") && !changed("length") {
				experiments = nil
				for i, e := range sim.CigriTables {
					nodes, load, length := e.Nodes, e.Load, e.Length
					e = own
					e.Nodes, e.Load, e.Length = nodes, load, length
					experiments = append(experiments, cigriJSON{Table: fmt.Sprintf("4.%d", i+1), Parameters: e, Published: sim.CigriPublished[i]})
				}
			}
			return runCigri(cmd, experiments, workers, format)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&own.Tests, "tests", own.Tests, "number of random local workloads")
	flags.Uint64Var(&own.Seed, "seed", own.Seed, "random seed")
	flags.IntSliceVar(&own.Nodes, "nodes", own.Nodes, "nodes of each cluster")
	flags.IntVar(&own.CPUs, "cpus", own.CPUs, "CPUs of a node")
	flags.IntVar(&own.Load, "load", own.Load, "percent of the CPUs that local jobs use")
	flags.Int64Var(&own.Length, "length", own.Length, "mean seconds that a local job has a CPU")
	flags.IntVar(&own.Limit, "limit", own.Limit, "requested time of a local job, as a multiple of what it takes")
	flags.Int64Var(&own.Ahead, "ahead", own.Ahead, "seconds for which a plan knows a local job before it may start")
	flags.Int64Var(&own.Seconds, "seconds", own.Seconds, "seconds of the experiment")
	flags.Int64Var(&own.Bag.Task, "task", own.Bag.Task, "seconds of computation of a task")
	flags.Int64Var(&own.Bag.Reaction, "reaction", own.Bag.Reaction, "seconds to start a task")
	flags.Int64Var(&own.Bag.Grace, "grace", own.Bag.Grace, "seconds that an interrupted task has for a checkpoint")
	flags.Float64Var(&own.Bag.Checkpoint, "checkpoint", own.Bag.Checkpoint, "mean seconds that a checkpoint takes")
	flags.Float64Var(&own.Bag.Error, "error", own.Bag.Error, "chance that a task fails, 0 to 1")
	flags.Float64Var(&own.Bag.RestartError, "restart-error", own.Bag.RestartError, "chance that a task fails after a restart from a checkpoint, 0 to 1")
	flags.Int64Var(&own.Bag.Period, "period", own.Bag.Period, "seconds of computation between periodic checkpoints")
	flags.Int64Var(&own.Bag.Overhead, "overhead", own.Bag.Overhead, "seconds for which a periodic checkpoint stops its task")
	flags.IntVar(&workers, "workers", workers, "simulations at a time")
	flags.Var(&format, "format", "output format")
	return cmd
}

type cigriJSON struct {
	Table      string    `json:"table,omitempty"`
	Parameters sim.Cigri `json:"parameters"`
	sim.CigriResult
	Published map[string]map[string]float64 `json:"published,omitempty"`
}

// runCigri runs experiments and prints them.
func runCigri(cmd *cobra.Command, experiments []cigriJSON, workers int, format format) error {
	tests := 0
	for _, x := range experiments {
		if err := x.Parameters.Validate(); err != nil {
			return fmt.Errorf("--%w", err)
		}
		tests += x.Parameters.Tests
	}
	progress := NewProgress(cmd.ErrOrStderr(), tests, "simulating")
	defer progress.Finish()
	for i := range experiments {
		x := &experiments[i]
		var err error
		if x.CigriResult, err = x.Parameters.Run(cmd.Context(), workers, progress.Step); err != nil {
			return Failure{err}
		}
	}
	progress.Finish()
	if format == "json" {
		return output(writeJSON(cmd.OutOrStdout(), map[string]any{"experiments": experiments}))
	}
	for i, x := range experiments {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := cigriTable(cmd.OutOrStdout(), x); err != nil {
			return output(err)
		}
	}
	return nil
}

func cigriTable(out io.Writer, x cigriJSON) error {
	e := x.Parameters
	title, brackets := "Own experiment", ""
	if x.Table != "" {
		title, brackets = "Table "+x.Table, "; in brackets: as published"
	}
	fmt.Fprintf(out, "%s: %s nodes of %d CPUs, %d %% local load for %d s, by %.0f local jobs (%.1f %% wait)\n(%d tests, seed %d: min avg max%s)\n\n",
		title, strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Nodes), " ", "+"), "[]"), e.CPUs, e.Load, e.Seconds, x.Jobs.Avg, x.Waited.Avg, e.Tests, e.Seed, brackets)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STRATEGY\tTOTAL\tTERMINATED\tRUNNING\tERROR\tNOT VALUABLE\tVALUABLE\tLOST, H\tDELAY, S")
	shown := slices.DeleteFunc(slices.Clone(sim.CigriColumns), func(column string) bool { return column == "worst_delay" })
	for _, row := range x.Rows {
		fmt.Fprint(w, row.Strategy)
		for _, column := range shown {
			r := row.Columns[column]
			fmt.Fprintf(w, "\t%.0f %.1f %.0f", r.Min, r.Avg, r.Max)
		}
		fmt.Fprintln(w)
		if published := x.Published[row.Strategy]; published != nil {
			for _, column := range shown[:6] {
				fmt.Fprintf(w, "\t[%.0f]", published[column])
			}
			fmt.Fprintln(w, "\t\t")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	way := func(percent *float64) string {
		if percent == nil {
			return "–"
		}
		return fmt.Sprintf("%.0f %%", *percent)
	}
	more, wasted := x.Beyond["terminated"], x.Beyond["not_valuable"]
	_, err := fmt.Fprintf(out, `
No strategy exceeds %.0f tasks: the time without local jobs is enough for no more. Of the way from none to
clairvoyant, plan-aware goes %s; of the way to these tasks, %s. Against triggered, it terminates
%+.1f ± %.1f tasks, with %+.1f ± %.1f interruptions without value (mean and 95 %% confidence interval).
`, x.Room.Avg, way(x.WayToClairvoyant), way(x.WayToRoom), more.Mean, more.Half, wasted.Mean, wasted.Half)
	return err
}
