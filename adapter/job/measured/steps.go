package measured

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

const (
	maxSteps = 32    // of a profile
	maxSpans = 1_024 // that steps are cut from
)

// Options holds what a profile depends on beside the run. Errors name them as evosctl profile does.
type Options struct {
	PerNode  float64 // size that a node gets, at most
	MaxNodes int     // of a step
	Nodes    int     // that the measured run had
	Scale    float64 // how many times longer the run is than the measured one
	Shortest int64   // seconds of a step, at least, unless the whole run is shorter
	Margin   int     // percent to add to each step
}

// Step is a step of a profile, with what it was made from.
type Step struct {
	planner.Step
	Size  float64 // the largest
	Until float64 // seconds of the measured run, at its end
	Line  int     // the sample at its end
}

func (o Options) validate() error {
	switch {
	case !(o.PerNode > 0) || math.IsInf(o.PerNode, 0):
		return fmt.Errorf("--per-node=%g: want the size that a node gets, above 0", o.PerNode)
	case o.MaxNodes < 1 || o.MaxNodes > planner.MaxNodes:
		return fmt.Errorf("--max-nodes=%d: want 1 to %d", o.MaxNodes, planner.MaxNodes)
	case o.Nodes < 1 || o.Nodes > planner.MaxNodes:
		return fmt.Errorf("--measured-nodes=%d: want the nodes that the measured run had, 1 to %d", o.Nodes, planner.MaxNodes)
	case !(o.Scale >= 1e-9 && o.Scale <= 1e9):
		return fmt.Errorf("--scale=%g: want how many times longer the run is than the measured one, 1e-9 to 1e9", o.Scale)
	case o.Shortest < 1 || o.Shortest > planner.MaxDuration:
		return fmt.Errorf("--shortest=%s: want 1s or more", planner.FormatDuration(o.Shortest))
	case o.Margin < 0 || o.Margin > 1000:
		return fmt.Errorf("--margin=%d: want a percentage from 0 to 1000", o.Margin)
	}
	return nil
}

// span is a part of the run: from the end of the one before to its own.
type span struct {
	nodes  int
	size   float64 // the largest
	work   float64 // node-seconds
	needed float64 // the sum of work times nodes over what it consists of
	end    Sample
}

func (s span) and(t span) span {
	return span{max(s.nodes, t.nodes), max(s.size, t.size), s.work + t.work, s.needed + t.needed, t.end}
}

// cost returns the node-seconds that a step over the span takes beyond the need: on nodes that a part of it does not need, and a
// hundredth of the shortest step on all its nodes for the resize.
func (s span) cost(shortest int64) float64 {
	return s.work - s.needed/float64(s.nodes) + float64(s.nodes)*float64(shortest)/100
}

// Profile returns the profile of a run that Read returned, and its steps.
//
// The model: a cell takes the same time on any number of nodes. So the work between two samples, their time on the measured run's
// nodes, takes work / nodes seconds on others. Each part gets as many nodes as the larger size at its two ends needs, size / PerNode
// rounded up. Of all ways to cut the run into at most 32 steps of Shortest or more, Profile returns the one that costs least (see
// cost). It takes time for 32 times the square of at most 1,024 changes of nodes; parts of a run with more of them are joined by two first.
func Profile(run []Sample, o Options) (planner.Profile, []Step, error) {
	if err := o.validate(); err != nil {
		return nil, nil, err
	}
	spans, err := split(run, o)
	if err != nil {
		return nil, nil, err
	}
	var p planner.Profile
	var steps []Step
	for _, s := range cut(spans, o.Shortest) {
		seconds := math.Ceil(s.work/float64(s.nodes)*float64(100+o.Margin)/100 - 1e-6)
		if seconds > planner.MaxDuration {
			return nil, nil, fmt.Errorf("line %d: a step lasts %g seconds, more than %d; give seconds since the run's start, or a smaller --scale", s.end.Line, seconds, planner.MaxDuration)
		}
		step := planner.Step{Nodes: s.nodes, Duration: max(int64(seconds), 1)}
		p, steps = append(p, step), append(steps, Step{step, s.size, s.end.At, s.end.Line})
	}
	return p, steps, nil
}

// instants returns the run with one sample, or two, for each time: the size before it, and the size after it. A larger size between
// both counts as before.
func instants(run []Sample) (all []Sample) {
	bySize := func(a, b Sample) int { return cmp.Compare(a.Size, b.Size) }
	for i, j := 0, 0; i < len(run); i = j {
		for j = i; j < len(run) && run[j].At == run[i].At; j++ {
		}
		same := run[i:j]
		if i == 0 || j == len(run) || len(same) == 1 {
			all = append(all, slices.MaxFunc(same, bySize))
		} else {
			all = append(all, slices.MaxFunc(same[:len(same)-1], bySize), same[len(same)-1])
		}
	}
	return all
}

// split returns the parts of a run with equal nodes, maxSpans at most.
func split(run []Sample, o Options) ([]span, error) {
	for _, s := range run {
		if nodes := math.Ceil(s.Size / o.PerNode); nodes > float64(o.MaxNodes) {
			return nil, fmt.Errorf("line %d: size %g needs %.6g nodes, more than --max-nodes=%d; raise it or --per-node=%g", s.Line, s.Size, nodes, o.MaxNodes, o.PerNode)
		}
	}
	var spans []span
	all := instants(run)
	for i, to := range all[1:] {
		from := all[i]
		if to.At == from.At {
			continue
		}
		s := span{size: max(from.Size, to.Size), end: to, work: (to.At - from.At) * float64(o.Nodes) * o.Scale}
		s.nodes = max(1, int(math.Ceil(s.size/o.PerNode)))
		s.needed = s.work * float64(s.nodes)
		if last := len(spans) - 1; last >= 0 && spans[last].nodes == s.nodes {
			spans[last] = spans[last].and(s)
		} else {
			spans = append(spans, s)
		}
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("line %d: the run lasts 0 seconds; give seconds since the run's start", run[len(run)-1].Line)
	}
	for len(spans) > maxSpans {
		half := spans[:0]
		for pair := range slices.Chunk(spans, 2) {
			if len(pair) == 2 {
				pair[0] = pair[0].and(pair[1])
			}
			half = append(half, pair[0])
		}
		spans = half
	}
	return spans, nil
}

// cut returns the steps that cost least in all; of equal ones, the fewest.
func cut(spans []span, shortest int64) (steps []span) {
	type best struct {
		cost float64
		from int // where its last step begins
	}
	n := len(spans)
	ways := [][]best{make([]best, n+1)} // by steps, and by spans that they have
	for i := 1; i <= n; i++ {
		ways[0][i].cost = math.Inf(1)
	}
	fewest := 1
	for k := 1; k <= min(maxSteps, n); k++ {
		way := make([]best, n+1)
		way[0].cost = math.Inf(1)
		for end := 1; end <= n; end++ {
			way[end].cost = math.Inf(1)
			var s span
			for from := end - 1; from >= 0; from-- {
				s = spans[from].and(s)
				long := s.work >= float64(shortest)*float64(s.nodes) || from == 0 && end == n
				if cost := ways[k-1][from].cost + s.cost(shortest); long && cost < way[end].cost {
					way[end] = best{cost, from}
				}
			}
		}
		ways = append(ways, way)
		if way[n].cost < ways[fewest][n].cost*(1-1e-9) {
			fewest = k
		}
	}
	for end := n; fewest > 0; fewest-- {
		from := ways[fewest][end].from
		step := spans[from]
		for _, s := range spans[from+1 : end] {
			step = step.and(s)
		}
		steps, end = append(steps, step), from
	}
	slices.Reverse(steps)
	return steps
}
