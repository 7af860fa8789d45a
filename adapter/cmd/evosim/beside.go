package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
)

// other is an alternative outcome of the same work.
type other struct {
	Scheduler string             `json:"scheduler"`
	Metrics   simulate.Metrics   `json:"metrics"`
	Stock     outcome.Neighbours `json:"stock"` // stock jobs in the experiment, compared with this

	result *simulate.Result
}

// others runs the requested alternatives to the experiment.
func (f *runFlags) others(ctx context.Context, e simulate.Experiment, r *simulate.Result) (all []other, err error) {
	for _, name := range f.beside {
		o, err := e.Beside(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, other{name, o.Metrics, outcome.Compare(r.Outcome(), o.Outcome()), o})
	}
	return all, nil
}

// outcomes returns the experiment and its alternatives in the form of evosim report.
func outcomes(r *simulate.Result, others []other) (all []outcome.Outcome, err error) {
	results := []*simulate.Result{r}
	for _, o := range others {
		results = append(results, o.result)
	}
	for _, r := range results {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		o, err := outcome.Read(bytes.NewReader(text), r.Strategy)
		if err != nil {
			return nil, err
		}
		if r != results[0] { // not by Slurm only, but by its scheduler
			o.Name = r.Strategy
		}
		all = append(all, o)
	}
	return all, nil
}

// besideTable writes it for people.
func besideTable(out io.Writer, r *simulate.Result, others []other) error {
	if len(others) == 0 {
		return nil
	}
	const width = 18 // of the first column, to the left
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%-*s\tmakespan\twait\t95 %%\tturnaround\tslowdown\tutilisation\teffective\tnode-hours\theld idle\tchanges\tfairness\t%s\n", width, "", energyHead(r))
	row := func(name string, m simulate.Metrics) {
		fmt.Fprintf(w, "%-*s\t%d\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f %%\t%.1f %%\t%.0f\t%.0f\t%d\t%.2f\t%s\n", width, name, m.Makespan, m.Wait.Mean, m.Wait.P95, m.Turnaround.Mean,
			m.Slowdown.Mean, m.Utilisation, m.EffectiveUtilisation, m.Allocated/3600, m.HeldIdle/3600, m.Changes, m.Fairness, energyCell(m))
	}
	name := r.Strategy
	if !r.Sidecar {
		name = "(none evolves)"
	}
	row(name, r.Metrics)
	for _, o := range others {
		row(o.Scheduler, o.Metrics)
	}
	fmt.Fprintf(w, "\n%-*s\tof\tlater\tby > 60 s\tby 50 %%\t95 %%\tmost\tsooner\tmean change\t\n", width, "stock jobs, beside")
	for _, o := range others {
		n := o.Stock
		fmt.Fprintf(w, "%-*s\t%d\t%d\t%d\t%.0f s\t%.0f s\t%.0f s\t%d\t%+.0f s\t\n", width, o.Scheduler, n.Stock+n.Lost, n.Later+n.Lost, n.Noticeably+n.Lost, n.By.Median, n.By.P95, n.By.Max,
			n.Earlier, n.Change)
	}
	return w.Flush()
}

// energyHead returns the heads of columns for energy, if there is one.
func energyHead(r *simulate.Result) string {
	if r.Metrics.Energy == nil {
		return ""
	}
	return "kWh\tby plan\t"
}

func energyCell(m simulate.Metrics) string {
	if m.Energy == nil {
		return ""
	}
	byPlan := ""
	if m.Energy.ByPlan != nil {
		byPlan = fmt.Sprintf("%.1f", m.Energy.ByPlan.KWh)
	}
	return fmt.Sprintf("%.1f\t%s\t", m.Energy.KWh, byPlan)
}
