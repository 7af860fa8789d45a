package evosim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
)

func paperCommand() *cobra.Command {
	tests, seed, names, format := 1000, uint64(1), planner.PaperStrategies(), format("table")
	model := workload.DefaultPaper
	var search searchFlags
	cmd := &cobra.Command{
		Use:   "paper [--tests=1000] [--seed=1] [--nodes=100] [--format=json|table]",
		Short: "Repeat the paper's evaluation (Tables 1 and 2)",
		Long: `Plan random tests with every strategy of "Towards Scheduling Evolving
Applications" and print its Tables 1 and 2 (minimum, average and maximum) beside
the published figures.

Waste, effective utilisation, expanded jobs, expansion and waste per job are in
percent; utilisation, makespan, completion and wait are relative to rigid; the
scheduling time is in milliseconds (published: Python on a laptop of 2008).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if tests < 1 {
				return fmt.Errorf("--tests=%d: must be at least 1", tests)
			}
			var strategies []planner.Strategy
			for _, name := range names {
				s, err := planner.StrategyByName(name)
				if err != nil {
					return err
				}
				strategies = append(strategies, search.apply(cmd.Context(), s))
			}
			if err := search.check(); err != nil {
				return err
			}
			if err := model.Validate(); err != nil {
				return err
			}
			result, err := sim.Paper(model, tests, seed, strategies, func(int) error { return cmd.Context().Err() })
			if err != nil {
				return Failure{err}
			}
			if format == "table" {
				return output(paperTables(cmd.OutOrStdout(), result))
			}
			return output(writeJSON(cmd.OutOrStdout(), result))
		},
	}
	cmd.Flags().IntVar(&tests, "tests", tests, "number of tests")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "random seed")
	cmd.Flags().StringSliceVar(&names, "strategies", names, "strategies to compare")
	cmd.Flags().Var(&format, "format", "output format")
	modelFlags(cmd, &model)
	search.add(cmd, "search-seed")
	return cmd
}

// paperTables prints the two tables, each figure as min avg max, the published
// ones below ours.
func paperTables(out io.Writer, r sim.PaperResult) error {
	fmt.Fprintf(out, "%d tests on %d nodes, seed %d (min avg max; in brackets: as published)\n", r.Tests, r.Nodes, r.Seed)
	for i, title := range []string{"Table 1: system-centric metrics", "Table 2: user-centric metrics"} {
		columns := sim.Columns[5*i : 5*i+5]
		fmt.Fprintf(out, "\n%s\n", title)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "strategy\t%s\n", strings.Join(columns, "\t"))
		for _, row := range r.Rows {
			fmt.Fprint(w, row.Strategy)
			for _, column := range columns {
				fmt.Fprintf(w, "\t%s", figures(column, row.Columns[column]))
			}
			fmt.Fprintln(w)
			published, ok := sim.Published[row.Strategy]
			if !ok {
				continue
			}
			for _, column := range columns {
				fmt.Fprintf(w, "\t[%s]", figures(column, published[column]))
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func figures(column string, r sim.Range) string {
	switch {
	case sim.Relative(column):
		return fmt.Sprintf("%.2f %.2f %.2f", r.Min, r.Avg, r.Max)
	case column == "schedule_ms":
		return fmt.Sprintf("%.3g %.3g %.3g", r.Min, r.Avg, r.Max)
	}
	if r.Avg == sim.Epsilon {
		return fmt.Sprintf("%.0f ϵ %.0f", r.Min, r.Max)
	}
	return fmt.Sprintf("%.0f %.1f %.0f", r.Min, r.Avg, r.Max)
}
