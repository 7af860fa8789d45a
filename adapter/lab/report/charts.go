package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// Limits on what a report draws.
const (
	mostRects   = 24_000 // for all Gantt charts together: what a browser draws at once, about a megabyte
	stretches   = 600    // number of periods
	shadeAcross = 480    // cells of the utilisation picture, if not all jobs are drawn
	shadeDown   = 120
)

// charts is the data for the script; its names are short, because there is much of it.
type charts struct {
	X         []float64 `json:"x"` // seconds: the middles of periods
	End       int64     `json:"end"`
	Runs      []run     `json:"runs"`
	Quantiles []float64 `json:"q"`     // percent
	Power     bool      `json:"power"` // some run has it
}

// run holds an outcome's charts.
type run struct {
	Name    string    `json:"name"`
	Nodes   int       `json:"nodes"`
	Used    []float64 `json:"used"` // percent of the machine
	Waiting []float64 `json:"waiting"`
	Power   []float64 `json:"power,omitempty"` // kW, up to its last end
	Wait    []float64 `json:"wait"`            // quantiles
	Slow    []float64 `json:"slow"`

	Of     int      `json:"of"`   // jobs that ran
	Part   float64  `json:"part"` // drawn jobs' share of the node-seconds, in percent
	IDs    []string `json:"ids"`  // of drawn jobs, in order of submission
	Rank   []int    `json:"rank"` // its position among all
	Submit []int64  `json:"submit"`
	Start  []int64  `json:"start"`
	End    []int64  `json:"ends"`
	Kind   []int    `json:"kind"` // 1 for evolving
	// Rectangles: job, start, duration, first node, number of nodes.
	Job   []int   `json:"rj"`
	From  []int64 `json:"rt"`
	Long  []int64 `json:"rd"`
	Node  []int   `json:"rn"`
	Count []int   `json:"rc"`
	// Periods of plans: job, start, duration, number of nodes.
	PlanJob   []int   `json:"pj"`
	PlanFrom  []int64 `json:"pt"`
	PlanLong  []int64 `json:"pd"`
	PlanNodes []int   `json:"pn"`
	// If not all are drawn, how full the machine is: a digit per cell, rows of nodes from the
	// bottom.
	Shade  string `json:"shade,omitempty"`
	Across int    `json:"across,omitempty"`
	Span   int64  `json:"span"` // seconds per cell
}

func newCharts(all []outcome.Outcome) (charts, error) {
	c := charts{X: []float64{}, Runs: []run{}}
	for i := range all {
		c.End = max(c.End, all[i].Makespan())
	}
	for i := range stretches {
		c.X = append(c.X, round((float64(i)+.5)*float64(c.End)/stretches))
	}
	for i := range outcome.Quantiles {
		c.Quantiles = append(c.Quantiles, float64(i)*100/(outcome.Quantiles-1))
	}
	for i := range all {
		o := &all[i]
		used, waiting, _ := o.Series(c.End, stretches)
		drawn := power(o, used, float64(c.End)/stretches)
		c.Power = c.Power || drawn != nil
		for k := range used {
			used[k], waiting[k] = round(100*used[k]/float64(o.Nodes)), round(waiting[k])
		}
		waits, slowdowns := o.Distributions()
		r := run{Name: o.Name, Nodes: o.Nodes, Used: used, Waiting: waiting, Power: drawn, Wait: rounded(waits), Slow: rounded(slowdowns)}
		if err := r.gantt(o, mostRects/len(all)); err != nil {
			return c, fmt.Errorf("%s: %w", o.Name, err)
		}
		c.Runs = append(c.Runs, r)
	}
	return c, nil
}

// power returns the kW that the nodes draw in each period up to the last end, given how many are used; nil if the energy is
// unknown, if nodes differ, or if some went off: the outcome does not have when and which.
func power(o *outcome.Outcome, used []float64, period float64) []float64 {
	e := o.Energy
	if e == nil || e.Types != nil || e.Boot+e.Shutdown+e.Off > 0 {
		return nil
	}
	busy, idle := e.Watts["busy"], e.Watts["idle"]
	kW := make([]float64, 0, len(used))
	for i, n := range used {
		if float64(i)*period >= float64(o.Makespan()) {
			break
		}
		kW = append(kW, math.Round(busy*n+idle*(float64(o.Nodes)-n))/1000)
	}
	return kW
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

func rounded(x []float64) []float64 {
	for i := range x {
		x[i] = round(x[i])
	}
	return x
}

// gantt draws the jobs with the most node-seconds, with at most `most` rectangles.
func (r *run) gantt(o *outcome.Outcome, most int) error {
	blocks, err := o.Layout()
	if err != nil {
		return err
	}
	parts, area := make([]int, len(o.Jobs)), make([]float64, len(o.Jobs)) // that it had
	for _, b := range blocks {
		parts[b.Job]++
		area[b.Job] += float64(b.End-b.Start) * float64(b.Last-b.First+1)
	}
	order := make([]int, len(o.Jobs))
	sum, drawn := 0., 0.
	for i := range o.Jobs {
		order[i] = i
		sum += area[i]
		parts[i] += len(o.Jobs[i].Planned)
		if o.Jobs[i].Ran() {
			r.Of++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(area[b], area[a]) })
	var chosen []int
	for _, i := range order {
		if !o.Jobs[i].Ran() {
			continue
		}
		if parts[i] > most {
			break
		}
		most -= parts[i]
		chosen = append(chosen, i)
		drawn += area[i]
	}
	slices.Sort(chosen)
	place := make([]int, len(o.Jobs))
	for i := range place {
		place[i] = -1
	}
	r.IDs, r.Job, r.PlanJob = []string{}, []int{}, []int{}
	for k, i := range chosen {
		j := &o.Jobs[i]
		place[i] = k
		kind := 0
		if j.Evolving {
			kind = 1
		}
		r.IDs, r.Rank, r.Kind = append(r.IDs, j.ID), append(r.Rank, i), append(r.Kind, kind)
		r.Submit, r.Start, r.End = append(r.Submit, j.Submit), append(r.Start, j.Start), append(r.End, j.End)
		for n := 0; n+1 < len(j.Planned); n++ {
			s, next := j.Planned[n], j.Planned[n+1]
			r.PlanJob, r.PlanFrom, r.PlanLong = append(r.PlanJob, k), append(r.PlanFrom, s.At), append(r.PlanLong, next.At-s.At)
			r.PlanNodes = append(r.PlanNodes, s.Nodes)
		}
	}
	for _, b := range blocks {
		if k := place[b.Job]; k >= 0 {
			r.Job, r.From, r.Long = append(r.Job, k), append(r.From, b.Start), append(r.Long, b.End-b.Start)
			r.Node, r.Count = append(r.Node, b.First), append(r.Count, b.Last-b.First+1)
		}
	}
	r.Part = 100
	if sum > 0 {
		r.Part = round(100 * drawn / sum)
	}
	if len(chosen) < r.Of {
		r.shade(o, blocks)
	}
	return nil
}

// shade draws how full the machine is, in tenths.
func (r *run) shade(o *outcome.Outcome, blocks []outcome.Block) {
	wide, high := max(float64(o.Makespan())/shadeAcross, 1e-9), float64(o.Nodes)/shadeDown
	cells := make([]float64, shadeAcross*shadeDown)
	for _, b := range blocks {
		x0, x1 := float64(b.Start)/wide, min(float64(b.End)/wide, shadeAcross)
		y0, y1 := float64(b.First)/high, min(float64(b.Last+1)/high, shadeDown)
		for y := int(y0); float64(y) < y1; y++ {
			dy := min(y1, float64(y+1)) - max(y0, float64(y))
			for x := int(x0); float64(x) < x1; x++ {
				cells[y*shadeAcross+x] += dy * (min(x1, float64(x+1)) - max(x0, float64(x)))
			}
		}
	}
	text := make([]byte, len(cells))
	for i, c := range cells {
		text[i] = '0' + byte(min(math.Round(9*c), 9))
	}
	r.Shade, r.Across, r.Span = string(text), shadeAcross, o.Makespan()
}
