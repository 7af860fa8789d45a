package search

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
	"github.com/evoslurm/evoslurm/planner/paper"
)

// TestPlaceIsFit: the flat arrays give what Fit gives.
func TestPlaceIsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProblem(t, 8)
		res, gaps := p.Timeline(), openGaps(p.Timeline(), p.Nodes)
		for _, j := range p.Jobs {
			want, ok := paper.Fit(res, p.Nodes, j.Profile, paper.FitOptions{NotBefore: j.Submit, Limit: 1})
			s := newShape(j)
			got := place(gaps, &s, j.Submit)
			if ok != (got <= exact.Horizon) || ok && got != want.Start {
				t.Fatalf("starts at %d, Fit: %v %v", got, want.Start, ok)
			}
			if ok {
				res.AddPlacement(want)
				gaps = occupy(nil, gaps, &s, got, gaps[0].start)
			}
		}
		for _, span := range res.Steps() {
			if free := freeArea(gaps, span.Start, span.End); span.End != exact.Forever && free != float64(p.Nodes-span.Nodes)*float64(span.End-span.Start) {
				t.Fatalf("%v node-seconds free during %v of %d nodes", free, span, p.Nodes)
			}
		}
	})
}

// TestFeasibleFunctions checks that counts that fit side by side still fit after a function.
func TestFeasibleFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 200).Draw(t, "nodes")
		p := paper.Problem{Nodes: nodes, Jobs: []paper.Job{{Profile: plannertest.DrawProfile(t, 5, 3, nodes)}}}
		var side []int64
		for left := int64(nodes); left > 0; {
			n := rapid.Int64Range(1, left).Draw(t, "count")
			side = append(side, n)
			left -= n
		}
		for k, f := range feasibleFunctions(p) {
			sum := int64(0)
			for _, n := range side {
				sum += f(n)
			}
			if whole := f(int64(nodes)); sum > whole || whole > 12*int64(nodes) {
				t.Fatalf("function %d: %v counts as %v of %v", k, side, sum, whole)
			}
		}
	})
}
