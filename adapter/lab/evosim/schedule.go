package evosim

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
)

func scheduleCommand() *cobra.Command {
	strategy, format := "noX", format("json")
	var search searchFlags
	cmd := &cobra.Command{
		Use:   "schedule [--strategy=NAME] [--format=json|table] FILE",
		Short: "Plan the jobs of a workload file",
		Long: `Plan the jobs of a workload file in list order. All jobs are known from the start.
"-" is standard input.

Strategies: rigid, noX, 2X, 2X+c, infX, infX+c, or any other <limit>X[+c];
minwaste or <limit>X+m (as early, with the least waste); search[+fair][+<limit>X]
(the whole list at once, within --budget or --evaluations);
energy[+<duration>] (few nodes on: jobs packed in time, each at most that much later).

A moldable job has "alternatives", a list of profiles beside or instead of "profile",
and optionally "moldable_by" (completion, waste, node-hours). In the output, "choice" is
the number of its alternative, from 1, and "options" has the result of each alternative
over the jobs before it in the list.

Waste is in percent of the node-seconds used, utilisation (allocated) and
effective utilisation (used) in percent of nodes × makespan, times in seconds;
schedule_ns is the planning alone.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := planner.StrategyByName(strategy)
			if err != nil {
				return err
			}
			if err := search.check(); err != nil {
				return err
			}
			problem, err := readWorkload(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			result, err := schedule(problem, search.apply(cmd.Context(), s))
			if err != nil {
				return err
			}
			if format == "table" {
				return output(result.table(cmd.OutOrStdout()))
			}
			return output(writeJSON(cmd.OutOrStdout(), result))
		},
	}
	cmd.Flags().StringVar(&strategy, "strategy", strategy, "planning strategy")
	cmd.Flags().Var(&format, "format", "output format")
	search.add(cmd, "seed")
	return cmd
}

// readWorkload reads a file, or standard input for "-".
func readWorkload(name string, stdin io.Reader) (planner.Problem, error) {
	in, label := stdin, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return planner.Problem{}, err
		}
		defer f.Close()
		in, label = f, name
	}
	problem, err := workload.Read(in)
	if err != nil {
		return planner.Problem{}, fmt.Errorf("%s: %w", label, err)
	}
	return problem, nil
}

// The output of schedule.
type (
	scheduleJSON struct {
		Strategy string       `json:"strategy"`
		Nodes    int          `json:"nodes"`
		Jobs     []placedJSON `json:"jobs"`
		Metrics  metricsJSON  `json:"metrics"`
		Search   *searchJSON  `json:"search,omitempty"`
	}
	placedJSON struct {
		ID    string          `json:"id"`
		Start int64           `json:"start"`
		End   int64           `json:"end"`
		Steps planner.Profile `json:"steps"`

		// For a moldable job: its chosen profile, from 1, and what each would give.
		Choice  int          `json:"choice,omitempty"`
		Options []optionJSON `json:"options,omitempty"`
	}
	optionJSON struct {
		Fits        bool  `json:"fits"`
		Start       int64 `json:"start"`
		End         int64 `json:"end"`
		Waste       int64 `json:"waste"`        // node-seconds
		NodeSeconds int64 `json:"node_seconds"` // allocated
	}
	metricsJSON struct {
		Makespan             int64   `json:"makespan"`
		Waste                float64 `json:"waste"`
		Utilisation          float64 `json:"utilisation"`
		EffectiveUtilisation float64 `json:"effective_utilisation"`
		AvgCompletion        float64 `json:"avg_completion"`
		AvgWait              float64 `json:"avg_wait"`
		ExpandedJobs         float64 `json:"expanded_jobs"`
		ScheduleNS           int64   `json:"schedule_ns"`
	}
)

// schedule plans a problem and checks the plan.
func schedule(p planner.Problem, s planner.Strategy) (scheduleJSON, error) {
	begin := time.Now()
	plan, found, err := planWith(s, p)
	took := time.Since(begin)
	if err != nil {
		return scheduleJSON{}, planningError(err)
	}
	against, limit := p, planner.ExpandLimitOf(s)
	if planner.IsRigid(s) {
		against, limit = p.Rigid(), 1
	}
	if err := planner.Verify(against, plan, limit); err != nil {
		return scheduleJSON{}, Failure{fmt.Errorf("strategy %s gave an invalid plan: %w", s.Name(), err)}
	}
	m := planner.Measure(p, plan)
	result := scheduleJSON{Strategy: s.Name(), Nodes: p.Nodes, Search: found, Jobs: make([]placedJSON, len(plan)), Metrics: metricsJSON{
		Makespan: m.Makespan, Waste: m.Waste, Utilisation: m.Utilisation, EffectiveUtilisation: m.EffectiveUtilisation,
		AvgCompletion: m.AvgCompletion, AvgWait: m.AvgWait, ExpandedJobs: m.ExpandedApps, ScheduleNS: took.Nanoseconds(),
	}}
	options := planner.Options(against, plan, limit)
	for i, placed := range plan {
		one := placedJSON{ID: p.Jobs[i].ID, Start: placed.Start, End: placed.End(), Steps: placed.Steps}
		for k, o := range options[i] {
			one.Choice = placed.Choice + 1
			asked := p.Jobs[i].Choice(k).Area()
			one.Options = append(one.Options, optionJSON{Fits: o.Fits})
			if o.Fits {
				held := o.Steps.Area()
				one.Options[k] = optionJSON{true, o.Start, o.End(), held - asked, held}
			}
		}
		result.Jobs[i] = one
	}
	return result, nil
}

func (r scheduleJSON) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tSTART\tEND\tSTEPS")
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s", j.ID, j.Start, j.End, j.Steps)
		if j.Choice > 0 {
			fmt.Fprintf(w, " (alternative %d of %d)", j.Choice, len(j.Options))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	m := r.Metrics
	_, err := fmt.Fprintf(out, `
%s on %d nodes, planned in %v
makespan %d s, waste %.1f %%, utilisation %.1f %%, effective utilisation %.1f %%
average completion %.0f s, average wait %.0f s, %.0f %% of the jobs expanded
`, r.Strategy, r.Nodes, time.Duration(m.ScheduleNS), m.Makespan, m.Waste, m.Utilisation, m.EffectiveUtilisation,
		m.AvgCompletion, m.AvgWait, m.ExpandedJobs)
	if s := r.Search; s != nil && err == nil {
		_, err = fmt.Fprintf(out, "%s %.0f s, %.1f %% above the bound of %.0f s (%s); noX: %.0f s; %d evaluations\n",
			s.Objective, s.Value, s.Gap, s.Bound, s.BoundBy, s.Baseline, s.Evaluations)
	}
	return err
}
