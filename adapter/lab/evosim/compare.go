package evosim

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/planner"
)

func compareCommand() *cobra.Command {
	names, format, drawing, chart, workers := planner.Strategies(), format("table"), "", 1, runtime.GOMAXPROCS(0)
	var search searchFlags
	cmd := &cobra.Command{
		Use:   "compare [--strategies=NAME,…] [--format=json|table] [--picture=FILE.svg|.html] [--budget=25ms] FILE…",
		Short: "Compare strategies on the same workloads",
		Long: `Plan every workload with every strategy and print the metrics side by side: the
average over the workloads and, if there are several, the minimum and maximum.
"-" is standard input.

Utilisation, effective utilisation, waste and expanded jobs are in percent, times
in seconds, the planning itself (schedule_ms) in milliseconds. "gap" is the excess
of the makespan over the proven lower bound, in percent.

--picture draws box plots over all workloads and the plans of one of them (--chart).
The command uses all cores; --workers=1 gives undisturbed planning times.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := search.check(); err != nil {
				return err
			}
			if chart < 1 || chart > len(args) {
				return fmt.Errorf("--chart=%d: there are workloads 1 … %d", chart, len(args))
			}
			if workers < 1 {
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			}
			kind := strings.TrimPrefix(filepath.Ext(drawing), ".")
			if drawing != "" && !slices.Contains(report.Formats(), kind) {
				return fmt.Errorf("--picture=%s: must end in .%s", drawing, strings.Join(report.Formats(), " or ."))
			}
			var strategies []planner.Strategy
			for _, name := range names {
				s, err := planner.StrategyByName(name)
				if err != nil {
					return err
				}
				strategies = append(strategies, search.apply(cmd.Context(), s))
			}
			if len(strategies) == 0 {
				return fmt.Errorf("--strategies: there is none")
			}
			var workloads []planner.Problem
			for _, name := range args {
				p, err := readWorkload(name, cmd.InOrStdin())
				if err != nil {
					return err
				}
				workloads = append(workloads, p)
			}
			c, err := compare(cmd.Context(), workloads, strategies, workers, cmd.ErrOrStderr())
			if err != nil {
				return planningError(err)
			}
			if drawing != "" {
				if err := create(drawing, func(w io.Writer) error { return report.Compare(w, c, chart-1, kind) }); err != nil {
					return Failure{err}
				}
			}
			if format == "table" {
				return output(comparisonTable(cmd.OutOrStdout(), c))
			}
			return output(writeJSON(cmd.OutOrStdout(), comparisonJSON(c)))
		},
	}
	cmd.Flags().StringSliceVar(&names, "strategies", names, "strategies to compare")
	cmd.Flags().Var(&format, "format", "output format")
	cmd.Flags().StringVar(&drawing, "picture", drawing, "file for a picture: .svg or .html")
	cmd.Flags().IntVar(&chart, "chart", chart, "number of the workload whose plans the picture shows")
	cmd.Flags().IntVar(&workers, "workers", workers, "plans computed at a time")
	search.add(cmd, "seed")
	return cmd
}

// compare shows its progress if it takes long and stderr is a terminal.
func compare(ctx context.Context, workloads []planner.Problem, strategies []planner.Strategy, workers int, stderr io.Writer) (sim.Comparison, error) {
	progress := NewProgress(stderr, len(workloads)*len(strategies), "planning")
	defer progress.Finish()
	return sim.Compare(ctx, workloads, strategies, workers, progress.Step)
}

func comparisonTable(out io.Writer, c sim.Comparison) error {
	several := len(c.Workloads) > 1
	if several {
		fmt.Fprintf(out, "%d workloads: average (minimum … maximum)\n", len(c.Workloads))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "STRATEGY")
	for _, f := range sim.Figures {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(strings.ReplaceAll(f.Name, "_", " ")))
	}
	fmt.Fprintln(w)
	for s, strategy := range c.Strategies {
		fmt.Fprint(w, strategy.Name())
		for _, f := range sim.Figures {
			r := c.Summary(f, s)
			number := "%.1f"
			switch f.Unit {
			case "s":
				number = "%.0f"
			case "ms":
				number = "%.3g"
			}
			fmt.Fprintf(w, "\t"+number, r.Avg)
			if several {
				fmt.Fprintf(w, " ("+number+" … "+number+")", r.Min, r.Max)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

type (
	comparedJSON struct {
		Workloads  int            `json:"workloads"`
		Strategies []strategyJSON `json:"strategies"`
	}
	strategyJSON struct {
		Strategy string               `json:"strategy"`
		Figures  map[string]sim.Range `json:"figures"`
		Values   map[string][]float64 `json:"values"` // one for every workload
	}
)

func comparisonJSON(c sim.Comparison) comparedJSON {
	result := comparedJSON{Workloads: len(c.Workloads)}
	for s, strategy := range c.Strategies {
		row := strategyJSON{strategy.Name(), make(map[string]sim.Range), make(map[string][]float64)}
		for _, f := range sim.Figures {
			row.Figures[f.Name], row.Values[f.Name] = c.Summary(f, s), c.Values(f, s)
		}
		result.Strategies = append(result.Strategies, row)
	}
	return result
}
