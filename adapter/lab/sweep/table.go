package sweep

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// Figure is a column of the table: a mean over seeds, with half its confidence interval.
type Figure struct {
	Name string
	of   func(d, beside *Done, n *outcome.Neighbours) float64 // NaN: there is none
}

// Figures lists the columns. Ratios are to the strategy that the others are compared with, seed by
// seed; stock_… describe the stock jobs that start later than there, in percent and in seconds.
var Figures = []Figure{
	plain("makespan", func(d *Done) float64 { return float64(d.Metrics.Makespan) }),
	plain("wait", func(d *Done) float64 { return d.Metrics.Wait.Mean }),
	plain("wait_p95", func(d *Done) float64 { return d.Metrics.Wait.P95 }),
	plain("turnaround", func(d *Done) float64 { return d.Metrics.Turnaround.Mean }),
	plain("bounded_slowdown", func(d *Done) float64 { return d.Metrics.Slowdown.Mean }),
	plain("utilisation", func(d *Done) float64 { return d.Metrics.Utilisation }),
	plain("effective_utilisation", func(d *Done) float64 { return d.Metrics.EffectiveUtilisation }),
	plain("waste", func(d *Done) float64 { return d.Metrics.Waste }),
	plain("node_hours", func(d *Done) float64 { return d.Metrics.Allocated / 3600 }),
	plain("held_idle_hours", func(d *Done) float64 { return d.Metrics.HeldIdle / 3600 }),
	plain("idle_hours", func(d *Done) float64 { return d.Metrics.Idle / 3600 }),
	plain("changes", func(d *Done) float64 { return float64(d.Metrics.Changes) }),
	plain("fairness", func(d *Done) float64 { return d.Metrics.Fairness }),
	watts("kwh", func(e *outcome.Energy) float64 { return e.KWh }),
	watts("kwh_held_idle", func(e *outcome.Energy) float64 { return e.HeldIdle }),
	watts("kwh_by_plan", func(e *outcome.Energy) float64 {
		if e.ByPlan == nil {
			return math.NaN()
		}
		return e.ByPlan.KWh
	}),
	plain("unfinished", func(d *Done) float64 { return float64(d.Metrics.Unfinished) }),
	ratio("makespan_ratio", func(d *Done) float64 { return float64(d.Metrics.Makespan) }),
	ratio("wait_ratio", func(d *Done) float64 { return d.Metrics.Wait.Mean }),
	ratio("turnaround_ratio", func(d *Done) float64 { return d.Metrics.Turnaround.Mean }),
	stock("stock_later", func(n *outcome.Neighbours) float64 { return 100 * float64(n.Later+n.Lost) / float64(n.Stock+n.Lost) }),
	stock("stock_later_60s", func(n *outcome.Neighbours) float64 {
		return 100 * float64(n.Noticeably+n.Lost) / float64(n.Stock+n.Lost)
	}),
	stock("stock_later_p50", func(n *outcome.Neighbours) float64 { return n.By.Median }),
	stock("stock_later_p95", func(n *outcome.Neighbours) float64 { return n.By.P95 }),
	stock("stock_later_worst", func(n *outcome.Neighbours) float64 { return n.By.Max }),
	stock("stock_change", func(n *outcome.Neighbours) float64 { return n.Change }),
}

func plain(name string, of func(*Done) float64) Figure {
	return Figure{name, func(d, _ *Done, _ *outcome.Neighbours) float64 { return of(d) }}
}

// watts returns a figure of energy, if the watts are declared.
func watts(name string, of func(*outcome.Energy) float64) Figure {
	return plain(name, func(d *Done) float64 {
		if d.Metrics.Energy == nil {
			return math.NaN()
		}
		return of(d.Metrics.Energy)
	})
}

// filled returns the figures of the declared tasks: percent of the idle node-hours, and of those on held nodes, that they could use.
func (s *Sweep) filled() (all []Figure) {
	for i, text := range s.Fill {
		all = append(all, plain("fill_"+text, func(d *Done) float64 { return d.Metrics.Filled[i].Part }),
			plain("fill_held_"+text, func(d *Done) float64 { return d.Metrics.Filled[i].Held }))
	}
	return all
}

// byType returns the figures of the types of nodes: their kWh.
func (s *Sweep) byType() (all []Figure) {
	if names := s.Power.Types(); len(names) > 1 {
		for i, name := range names {
			all = append(all, watts("kwh_"+name, func(e *outcome.Energy) float64 { return e.Types[i].KWh }))
		}
	}
	return all
}

func ratio(name string, of func(*Done) float64) Figure {
	return Figure{name, func(d, beside *Done, _ *outcome.Neighbours) float64 {
		if beside == nil || of(beside) == 0 {
			return math.NaN()
		}
		return of(d) / of(beside)
	}}
}

func stock(name string, of func(*outcome.Neighbours) float64) Figure {
	return Figure{name, func(_, _ *Done, n *outcome.Neighbours) float64 {
		if n == nil || n.Stock+n.Lost == 0 {
			return math.NaN()
		}
		return of(n)
	}}
}

// Table writes the existing outcomes as CSV: a row for every trace, shape, share, and strategy,
// over all seeds with an outcome. For each figure, it writes the mean and half of its 95 %
// confidence interval (Student's t; empty with one seed). It returns how many cells have no
// outcome.
func (f *Folder) Table(s *Sweep, to io.Writer) (missing int, err error) {
	out := csv.NewWriter(to)
	figures := slices.Concat(Figures, s.filled(), s.byType())
	head := []string{"trace", "nodes", "jobs", "left_out", "shape", "share", "strategy", "seeds"}
	for _, g := range figures {
		head = append(head, g.Name, g.Name+"_ci95")
	}
	_ = out.Write(head) // Error has what goes wrong
	type group struct {
		trace, shape, strategy string
		share                  float64
	}
	values := make(map[group][][]float64)
	first := make(map[group]*Done)
	var order []group
	var beside *Done
	for _, c := range s.Cells() {
		d, err := f.load(s, c)
		if err != nil {
			return 0, err
		}
		if c.Strategy == s.Beside {
			beside = d // comes first of each seed
		}
		if d == nil {
			missing++
			continue
		}
		g := group{c.Trace, c.Shape, c.Strategy, c.Share}
		if values[g] == nil {
			order, values[g], first[g] = append(order, g), make([][]float64, len(figures)), d
		}
		var n *outcome.Neighbours
		if beside != nil {
			compared := outcome.Compare(d.outcome(), beside.outcome())
			n = &compared
		}
		for i, figure := range figures {
			values[g][i] = append(values[g][i], figure.of(d, beside, n))
		}
	}
	for _, g := range order {
		d := first[g]
		row := []string{g.trace, strconv.Itoa(d.Nodes), strconv.Itoa(d.Metrics.Jobs), strconv.Itoa(d.LeftOut), g.shape, short(g.share), g.strategy, strconv.Itoa(len(values[g][0]))}
		for _, all := range values[g] {
			mean, half := outcome.Interval(all)
			row = append(row, short(mean), short(half))
		}
		_ = out.Write(row)
	}
	out.Flush()
	return missing, out.Error()
}

// load returns the outcome of a cell, or nil.
func (f *Folder) load(s *Sweep, c Cell) (*Done, error) {
	name := filepath.Join(f.Path, s.file(c))
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	d := new(Done)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w (remove it to recreate it)", name, err)
	}
	return d, nil
}

func short(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}
