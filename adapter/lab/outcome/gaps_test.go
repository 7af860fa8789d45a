package outcome_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		what string
		uses []outcome.Use
		want []outcome.Gap
	}{
		{"no job", nil, []outcome.Gap{{100, 3, true}}},
		{"the node used last is used next", []outcome.Use{{0, 10, 1}, {0, 40, 1}, {50, 100, 1}}, []outcome.Gap{{10, 1, false}, {90, 1, true}, {100, 1, true}}},
		{"at once", []outcome.Use{{0, 50, 3}, {50, 100, 3}}, nil},
		{"growth", []outcome.Use{{0, 30, 1}, {30, 100, 3}}, []outcome.Gap{{30, 2, false}}},
	} {
		got := outcome.Gaps(3, 100, c.uses)
		slices.SortFunc(got, func(a, b outcome.Gap) int { return int(a.Length - b.Length) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// TestFill: tasks use what whole ones need of gaps of 20, 20, 30, and 100 s, and of what is held: 40 s on one node and 20 s of it on
// two, and again 10 s on one.
func TestFill(t *testing.T) {
	job := func(start, end int64, nodes int) outcome.Job {
		return outcome.Job{Start: start, End: end, Sizes: []outcome.Size{{At: start, Nodes: nodes}, {At: end}}}
	}
	r := outcome.Run{Nodes: 3, Jobs: []outcome.Job{job(30, 80, 1), job(20, 100, 1)}} // 20; 30 and 20; 100
	want := []outcome.Filled{{Task: 10, Tasks: 17, Part: 100, Held: 100}, {Task: 25, Tasks: 5, Part: 100 * 125 / 170., Held: 100 * 25 / 70.}, {Task: 101}}
	held := []outcome.Use{{10, 20, 1}, {20, 40, 2}, {40, 50, 1}, {60, 70, 1}}
	if got := r.Fill(100, held, []int64{10, 25, 101}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Jobs = []outcome.Job{job(0, 100, 3)}
	if got := r.Fill(100, nil, []int64{10}); !slices.Equal(got, []outcome.Filled{{Task: 10}}) {
		t.Errorf("%v", got)
	}
}

// TestGapsAreAllIdle: gaps add up to the time for which nodes are idle.
func TestGapsAreAllIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes, end = 5, 60
		var used [end]int
		idle := int64(nodes * end)
		var uses []outcome.Use
		for range rapid.IntRange(0, 12).Draw(t, "jobs") {
			u := outcome.Use{From: rapid.Int64Range(0, end-1).Draw(t, "from"), Nodes: rapid.IntRange(1, nodes).Draw(t, "nodes")}
			u.To = rapid.Int64Range(u.From+1, end).Draw(t, "to")
			if slices.Max(used[u.From:u.To])+u.Nodes > nodes {
				continue
			}
			for i := u.From; i < u.To; i++ {
				used[i] += u.Nodes
			}
			uses = append(uses, u)
			idle -= (u.To - u.From) * int64(u.Nodes)
		}
		for _, g := range outcome.Gaps(nodes, end, uses) {
			if g.Length <= 0 || g.Nodes <= 0 {
				t.Fatalf("%+v", g)
			}
			idle -= g.Length * int64(g.Nodes)
		}
		if idle != 0 {
			t.Fatalf("%d node-seconds are missing", idle)
		}
	})
}
