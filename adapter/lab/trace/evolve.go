package trace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Shapes are the models of [Evolve].
var Shapes = []string{"uniform", "amr", "ramp", "pulse", "moldable", "malleable"}

// miniAMR are the blocks of miniAMR, four levels around a sphere that moves, every five steps of time, as measured.
var miniAMR = []float64{1, 1, 1, 1, 92, 582, 1303, 1121, 239, 1, 1, 1, 1, 1, 134, 1058, 1345, 624, 134, 1, 1}

// Evolve has some jobs of a rigid trace evolve. The node-seconds of each stay what they were, to less
// than a second of its smallest step; with a speed-up, those that it has on the size that it had.
type Evolve struct {
	Share    float64 // of the jobs, 0 … 1
	Shape    string  // of [Shapes]
	Seed     uint64
	Shortest int64 // seconds that a job runs at least

	// Speedup is how fast moldable and malleable jobs are on other sizes than they had, nil: n times as fast on n nodes.
	Speedup malleable.Speedup

	jobs uint64 // so far
}

// Job has a job evolve, or leaves it as it is; the machine has so many nodes (0: unknown).
func (e *Evolve) Job(j *Job, machine int) error {
	chance := rand.New(rand.NewPCG(e.Seed, e.jobs))
	e.jobs++
	if j.Kind() != Rigid {
		return fmt.Errorf("job %d is %s already", j.Number, j.Kind())
	}
	if chance.Float64() >= e.Share || !j.Ran() || j.Seconds() < e.Shortest {
		return nil
	}
	if machine < 1 {
		machine = planner.MaxNodes
	}
	shape := Shape{Kind: Evolving}
	if j.Shape != nil {
		shape.ID, shape.ExpandLimit = j.Shape.ID, j.Shape.ExpandLimit
	}
	n, area := j.Size(), j.Seconds()*int64(j.Size())
	var lasts, heights []float64
	switch e.Shape {
	case "uniform":
		for range 1 + chance.IntN(10) {
			lasts = append(lasts, float64(500+chance.IntN(3101)))
			heights = append(heights, float64(1+chance.IntN(75)))
		}
	case "amr":
		heights = miniAMR
	case "ramp":
		heights = []float64{1, 2, 3, 4}
	case "pulse":
		lasts, heights = []float64{3, 1, 3, 1, 2}, []float64{1, 8, 1, 8, 1}
	case "moldable":
		shape.Kind = Moldable
		for _, size := range []int{n, n / 2, 2 * n} {
			if size < 1 || size > machine {
				continue
			}
			p := planner.Profile{{Duration: (area + int64(size) - 1) / int64(size), Nodes: size}}
			if e.Speedup != nil {
				p[0].Duration = int64(math.Ceil(float64(j.Seconds())*e.Speedup.At(n)/e.Speedup.At(size) - 1e-6))
			}
			if p.Validate() != nil {
				continue
			}
			if shape.Profile == nil {
				shape.Profile = p
			} else {
				shape.Alternatives = append(shape.Alternatives, p)
			}
		}
		if len(shape.Alternatives) > 0 {
			j.Shape = &shape
		}
		return nil
	case "malleable":
		shape.Kind, shape.Min, shape.Max, shape.Speedup = Malleable, max(n/4, 1), n, e.Speedup
		shape.Profile = planner.Profile{{Duration: j.Seconds(), Nodes: n}}
		if shape.Min < shape.Max {
			j.Shape = &shape
		}
		return nil
	default:
		return fmt.Errorf("unknown shape %q", e.Shape)
	}
	if p := shaped(lasts, heights, n, area, machine); len(p) > 1 {
		shape.Profile = p
		j.Shape = &shape
	}
	return nil
}

// shaped returns a profile of steps so long and so high, in proportion (all as long, where that is not
// told), with an area and, as far as the machine allows, as long as n nodes need for it. There
// is none if so little work cannot be shared out so.
func shaped(lasts, heights []float64, n int, area int64, machine int) planner.Profile {
	if lasts == nil {
		lasts = slices.Repeat([]float64{1}, len(heights))
	}
	time, sum := 0., 0.
	for i, h := range heights {
		time += lasts[i]
		sum += lasts[i] * h
	}
	peak := slices.Max(heights)
	top := min(max(math.Round(float64(n)*peak*time/sum), 1), float64(machine))
	var p planner.Profile
	weight := 0.
	for i, h := range heights {
		nodes := max(int(math.Round(h/peak*top)), 1)
		weight += lasts[i] * float64(nodes)
		p = append(p, planner.Step{Nodes: nodes})
	}
	left := area
	for i := range p {
		p[i].Duration = int64(lasts[i] / weight * float64(area))
		left -= p[i].Duration * int64(p[i].Nodes)
	}
	order := make([]int, len(p)) // those that take most at once first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b].Nodes, p[a].Nodes) })
	for _, i := range order {
		more := left / int64(p[i].Nodes)
		p[i].Duration += more
		left -= more * int64(p[i].Nodes)
	}
	var merged planner.Profile
	for _, s := range p {
		switch last := len(merged) - 1; {
		case s.Duration < 1:
		case last >= 0 && merged[last].Nodes == s.Nodes:
			merged[last].Duration += s.Duration
		default:
			merged = append(merged, s)
		}
	}
	if merged.Validate() != nil {
		return nil
	}
	return merged
}
