package outcome_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

func TestMeasure(t *testing.T) {
	r := outcome.Run{Nodes: 4, HeldIdle: 5, Jobs: []outcome.Job{
		{ID: "a", User: 1, Submit: 0, Start: 0, End: 100, Area: 150, Sizes: []outcome.Size{{0, 1}, {50, 2}, {100, 0}}},
		{ID: "b", User: 2, Submit: 10, Start: 50, End: 55, Area: 10, Sizes: []outcome.Size{{50, 2}, {55, 0}}},
		{ID: "c", User: 2, Submit: 20, Start: 60, End: -1, Area: 99},
		{ID: "d", User: 3, Submit: 20, Start: -1, End: -1, Area: 99},
	}}
	// slowdowns: a 1; b 45 s over 10. Jain: (1+4.5)²/(2·(1+20.25)).
	want := outcome.Figures{Jobs: 4, Started: 3, Ended: 2, Makespan: 100,
		Wait:       trace.Spread{Of: 3, Mean: 80. / 3, Median: 40, P95: 40, Max: 40},
		Turnaround: trace.Spread{Of: 2, Mean: 72.5, Median: 45, P95: 100, Max: 100},
		Slowdown:   trace.Spread{Of: 2, Mean: 2.75, Median: 1, P95: 4.5, Max: 4.5},

		Utilisation: 40, EffectiveUtilisation: 40, Allocated: 160, Used: 160, Idle: 240, HeldIdle: 5, Changes: 1, Fairness: 5.5 * 5.5 / (2 * 21.25)}
	if diff := cmp.Diff(want, r.Measure(), cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Error(diff)
	}
	r.Allocated = 200 // including the jobs that brought nodes
	if f := r.Measure(); f.Waste != 25 || f.Utilisation != 50 || f.EffectiveUtilisation != 40 {
		t.Errorf("%+v", f)
	}
	if f := (outcome.Run{Nodes: 4}).Measure(); f.Fairness != 1 || f.Makespan != 0 {
		t.Errorf("of nothing: %+v", f)
	}
}

func TestCompare(t *testing.T) {
	job := func(id string, start int64) outcome.Job { return outcome.Job{ID: id, Start: start} }
	evolving := job("e", 900)
	evolving.Evolving = true
	got := outcome.Compare(
		[]outcome.Job{job("a", 10), job("b", 25), job("c", 5), evolving, job("d", -1), job("f", 100), job("g", 7)},
		[]outcome.Job{job("a", 10), job("b", 20), job("c", 9), job("e", 0), job("d", 3), job("f", 39), job("g", -1)})
	want := outcome.Neighbours{Stock: 4, Later: 2, Noticeably: 1, Earlier: 1, Lost: 1, Change: 15.5, By: trace.Spread{Of: 2, Mean: 33, Median: 5, P95: 61, Max: 61}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
