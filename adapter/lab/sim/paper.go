package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
)

// Columns lists the metrics of the paper's Tables 1 and 2, in order, with their names in JSON.
var Columns = []string{
	"waste", "utilisation", "effective_utilisation", "makespan", "schedule_ms", // Table 1
	"avg_completion", "avg_wait", "expanded_apps", "app_expansion", "app_waste", // Table 2
}

// Relative reports whether a column is relative to rigid; the others are percent,
// and schedule_ms milliseconds.
func Relative(column string) bool {
	switch column {
	case "utilisation", "makespan", "avg_completion", "avg_wait":
		return true
	}
	return false
}

// Range is the minimum, average and maximum of a metric.
type Range struct {
	Min float64 `json:"min"`
	Avg float64 `json:"avg"`
	Max float64 `json:"max"`
}

// Row holds one strategy's figures, by column.
type Row struct {
	Strategy string
	Columns  map[string]Range
}

// PaperResult holds the measurements of Paper.
type PaperResult struct {
	Tests int
	Seed  uint64
	Nodes int
	Rows  []Row // in the order of the strategies given
}

// MarshalJSON keeps the strategies' order.
func (r PaperResult) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"tests":%d,"seed":%d,"nodes":%d,"strategies":{`, r.Tests, r.Seed, r.Nodes)
	for i, row := range r.Rows {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(row.Strategy)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteString(`:{`)
		for k, column := range Columns {
			if k > 0 {
				b.WriteByte(',')
			}
			text, err := json.Marshal(row.Columns[column])
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "%q:%s", column, text)
		}
		b.WriteByte('}')
	}
	b.WriteString(`}}`)
	return b.Bytes(), nil
}

// gather accumulates a Range.
type gather struct {
	Range
	sum   float64
	count int
}

func (g *gather) add(v float64) {
	if g.count == 0 {
		g.Min, g.Max = math.Inf(1), math.Inf(-1)
	}
	g.Min, g.Max = min(g.Min, v), max(g.Max, v)
	g.sum += v
	g.count++
	g.Avg = g.sum / float64(g.count)
}

// Paper plans tests workloads of a model with every strategy and measures the paper's metrics
// (section 5.1). The relative metrics need "rigid", which is always planned. progress, if not nil,
// is called after every test; an error from it ends the experiment.
func Paper(model workload.Paper, tests int, seed uint64, strategies []planner.Strategy, progress func(done int) error) (PaperResult, error) {
	rigid, err := planner.StrategyByName("rigid")
	if err != nil {
		return PaperResult{}, err
	}
	if err := model.Validate(); err != nil {
		return PaperResult{}, err
	}
	figures := make([]map[string]*gather, len(strategies))
	for i := range figures {
		figures[i] = make(map[string]*gather)
		for _, column := range Columns {
			figures[i][column] = new(gather)
		}
	}
	for test := range tests {
		problem := model.Generate(seed, test)
		base, _, err := run(problem, rigid)
		if err != nil {
			return PaperResult{}, fmt.Errorf("test %d: %w", test, err)
		}
		for i, s := range strategies {
			m, took, err := run(problem, s)
			if err != nil {
				return PaperResult{}, fmt.Errorf("test %d: %s: %w", test, s.Name(), err)
			}
			f := figures[i]
			f["waste"].add(m.Waste)
			f["utilisation"].add(ratio(m.Allocated, base.Allocated))
			f["effective_utilisation"].add(m.EffectiveUtilisation)
			f["makespan"].add(ratio(float64(m.Makespan), float64(base.Makespan)))
			f["schedule_ms"].add(float64(took) / float64(time.Millisecond))
			f["avg_completion"].add(ratio(m.AvgCompletion, base.AvgCompletion))
			f["avg_wait"].add(ratio(m.AvgWait, base.AvgWait))
			f["expanded_apps"].add(m.ExpandedApps)
			for _, app := range m.Apps {
				f["app_expansion"].add(app.Expansion)
				f["app_waste"].add(app.Waste)
			}
		}
		if progress != nil {
			if err := progress(test + 1); err != nil {
				return PaperResult{}, err
			}
		}
	}
	result := PaperResult{Tests: tests, Seed: seed, Nodes: model.Nodes}
	for i, s := range strategies {
		row := Row{Strategy: s.Name(), Columns: make(map[string]Range)}
		for column, g := range figures[i] {
			row.Columns[column] = g.Range
		}
		result.Rows = append(result.Rows, row)
	}
	return result, nil
}

// run plans one workload and checks the plan.
func run(p planner.Problem, s planner.Strategy) (planner.Metrics, time.Duration, error) {
	begin := time.Now()
	schedule, err := s.Plan(p)
	took := time.Since(begin)
	if err != nil {
		return planner.Metrics{}, 0, err
	}
	against := p
	if planner.IsRigid(s) {
		against = p.Rigid()
	}
	if err := planner.Verify(against, schedule, planner.ExpandLimitOf(s)); err != nil {
		return planner.Metrics{}, 0, err
	}
	return planner.Measure(p, schedule), took, nil
}

func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	if b == 0 {
		return 0
	}
	return a / b
}
