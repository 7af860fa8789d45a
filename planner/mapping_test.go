package planner

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func placed(start int64, steps ...Step) Placement { return Placement{Start: start, Steps: steps} }

func TestMapNodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		busy  []NodeBusy
		jobs  []MappedJob
		want  [][][]int
	}{
		{"grow and shrink", 4, nil, []MappedJob{
			{Placement: placed(0, Step{10, 2}, Step{10, 4}, Step{10, 1}), Driver: -1},
		}, [][][]int{{{0, 1}, {0, 1, 2, 3}, {0}}}},
		{"released nodes are taken at the same second", 4, nil, []MappedJob{
			{Placement: placed(0, Step{10, 3}, Step{10, 1}), Driver: -1},
			{Placement: placed(10, Step{10, 3}), Driver: -1},
		}, [][][]int{{{0, 1, 2}, {0}}, {{1, 2, 3}}}},
		{"the driver stays", 4, nil, []MappedJob{
			{Placement: placed(0, Step{10, 3}, Step{10, 1}), Held: []int{1, 2, 3}, Driver: 3},
		}, [][][]int{{{1, 2, 3}, {3}}}},
		{"the driver stays even where it is offered", 4, nil, []MappedJob{
			{Placement: placed(0, Step{10, 3}, Step{10, 1}), Held: []int{1, 2, 3}, Driver: 3, Release: []int{3, 1}},
		}, [][][]int{{{1, 2, 3}, {3}}}},
		{"the application chooses what it frees, once", 6, nil, []MappedJob{
			{Placement: placed(0, Step{10, 5}, Step{10, 4}, Step{10, 2}), Held: []int{0, 1, 2, 3, 4}, Driver: -1, Release: []int{1}},
		}, [][][]int{{{0, 1, 2, 3, 4}, {0, 2, 3, 4}, {0, 2}}}},
		{"tightest window that suffices", 4, []NodeBusy{{0, 15, 99}, {1, 50, 99}, {2, 25, 99}}, []MappedJob{
			{Placement: placed(0, Step{20, 1}), Driver: -1},
		}, [][][]int{{{2}}}},
		{"windows for as long as each node is held", 3, []NodeBusy{{0, 20, 99}, {1, 10, 99}}, []MappedJob{
			{Placement: placed(0, Step{10, 3}, Step{10, 2}, Step{10, 1}), Driver: -1},
		}, [][][]int{{{0, 1, 2}, {0, 2}, {2}}}},
		{"held nodes with short windows are freed first", 4, []NodeBusy{{0, 20, 30}, {3, 30, 40}}, []MappedJob{
			{Placement: placed(0, Step{10, 2}, Step{10, 3}, Step{10, 1}), Held: []int{0, 1}, Driver: -1},
		}, [][][]int{{{0, 1}, {0, 1, 3}, {1}}}},
		{"never a busy node", 3, []NodeBusy{{0, 0, 5}, {1, 5, 9}, {0, 3, 10}}, []MappedJob{
			{Placement: placed(0, Step{5, 2}), Driver: -1},
			{Placement: placed(9, Step{1, 2}), Driver: -1},
		}, [][][]int{{{1, 2}}, {{1, 2}}}},
		{"preferred nodes, and others' left alone", 5, nil, []MappedJob{
			{Placement: placed(0, Step{10, 2}), Driver: -1},
			{Placement: placed(5, Step{10, 1}, Step{10, 2}), Driver: -1, Prefer: []int{0, 1}},
		}, [][][]int{{{2, 3}}, {{0}, {0, 1}}}},
		{"held more than placed", 3, nil, []MappedJob{
			{Placement: placed(0, Step{10, 1}), Held: []int{0, 1, 2}, Driver: 1, Release: []int{0}},
		}, [][][]int{{{1}}}},
		{"no jobs", 3, nil, nil, [][][]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := MapNodes(c.nodes, c.busy, c.jobs)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestMapNodesErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		busy []NodeBusy
		jobs []MappedJob
		want MapError
	}{
		{"windows too short", []NodeBusy{{0, 15, 20}, {1, 12, 30}, {2, 0, 10}}, []MappedJob{
			{Placement: placed(0, Step{20, 1}), Driver: -1},
		}, MapError{Job: 0, Step: 0, At: 0, Until: 20, Node: 0, Start: 15, End: 20}},
		{"too few at all", nil, []MappedJob{
			{Placement: placed(0, Step{20, 3}), Driver: -1},
			{Placement: placed(5, Step{20, 1}), Driver: -1},
		}, MapError{Job: 1, Step: 0, At: 5, Until: 6, Node: -1}},
		{"held node is promised", []NodeBusy{{1, 15, 20}, {1, 20, 25}}, []MappedJob{
			{Placement: placed(0, Step{10, 1}, Step{10, 2}), Held: []int{1}, Driver: -1},
		}, MapError{Job: 0, Step: 0, At: 0, Until: 20, Node: 1, Start: 15, End: 25}},
		{"driver is promised", []NodeBusy{{1, 15, 20}}, []MappedJob{
			{Placement: placed(0, Step{10, 2}, Step{10, 1}), Held: []int{0, 1}, Driver: 1},
		}, MapError{Job: 0, Step: 0, At: 0, Until: 20, Node: 1, Start: 15, End: 20}},
	} {
		_, err := MapNodes(3, c.busy, c.jobs)
		var got *MapError
		if !errors.As(err, &got) || *got != c.want || got.Error() == "" {
			t.Errorf("%s: got %+v, want %+v", c.name, err, c.want)
		}
	}
	one := placed(0, Step{1, 1})
	for name, jobs := range map[string][]MappedJob{
		"held twice":     {{Placement: one, Held: []int{0}}, {Placement: one, Held: []int{0}}},
		"held unknown":   {{Placement: one, Held: []int{3}}},
		"prefer unknown": {{Placement: one, Prefer: []int{-1}}},
	} {
		if _, err := MapNodes(3, nil, jobs); err == nil || errors.As(err, new(*MapError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := MapNodes(3, []NodeBusy{{3, 0, 1}}, nil); err == nil {
		t.Error("busy unknown node")
	}
}

// checkMapping checks a mapping against RR-7205's C2 (as many nodes as placed), C3 (no node twice,
// none busy), and C4 (a growth keeps all, a shrink keeps a subset, the driver stays).
func checkMapping(t *rapid.T, nodes int, busy []NodeBusy, jobs []MappedJob, got [][][]int) {
	type use struct {
		start, end int64
		who        int
	}
	uses := make([][]use, nodes)
	for _, b := range busy {
		if b.Start < b.End {
			uses[b.Node] = append(uses[b.Node], use{b.Start, b.End, -1})
		}
	}
	for j, job := range jobs {
		bounds, before := job.Boundaries(), slices.Sorted(slices.Values(job.Held))
		for k, step := range job.Steps {
			now := got[j][k]
			if len(now) != step.Nodes || !slices.IsSorted(now) || len(slices.Compact(slices.Clone(now))) != len(now) {
				t.Fatalf("C2: job %d step %d has %v, not %d nodes", j, k, now, step.Nodes)
			}
			small, large := before, now
			if len(small) > len(large) {
				small, large = large, small
			}
			for _, n := range small {
				if !slices.Contains(large, n) {
					t.Fatalf("C4: job %d goes from %v to %v", j, before, now)
				}
			}
			if slices.Contains(before, job.Driver) && !slices.Contains(now, job.Driver) {
				t.Fatalf("C4: job %d lost its driver %d: %v", j, job.Driver, now)
			}
			for _, n := range now {
				uses[n] = append(uses[n], use{bounds[k], bounds[k+1], j})
			}
			before = now
		}
	}
	for n, list := range uses {
		slices.SortFunc(list, func(a, b use) int { return int(a.start - b.start) })
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if b.start < a.end && (a.who >= 0 || b.who >= 0) {
				t.Fatalf("C3: node %d is in use twice: %v, %v", n, a, b)
			}
		}
	}
}

// TestMapNodesConditions checks that the counts of any valid schedule map to node IDs if nodes are
// always there, or busy only from the start on.
func TestMapNodesConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Problem{Nodes: rapid.IntRange(1, 12).Draw(t, "nodes")}
		var busy []NodeBusy
		for n := range p.Nodes {
			if end := rapid.Int64Range(0, 20).Draw(t, "busy until"); end > 10 {
				busy = append(busy, NodeBusy{n, 0, end})
				p.Busy = append(p.Busy, Busy{0, end, 1})
			}
		}
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			p.Jobs = append(p.Jobs, Job{Submit: rapid.Int64Range(0, 20).Draw(t, "submit"), Profile: plannertest.DrawProfile(t, 5, 6, p.Nodes)})
		}
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "2X+c", "infX"}).Draw(t, "strategy"))
		schedule, err := s.Plan(p)
		must.OK(t, err)
		jobs := make([]MappedJob, len(schedule))
		node := rapid.IntRange(0, p.Nodes-1)
		for i, placed := range schedule {
			jobs[i] = MappedJob{Placement: placed, Driver: node.Draw(t, "driver"), Prefer: []int{node.Draw(t, "prefer")}, Release: []int{node.Draw(t, "release")}}
		}
		got, err := MapNodes(p.Nodes, busy, jobs)
		must.OK(t, err)
		checkMapping(t, p.Nodes, busy, jobs, got)
		again, err := MapNodes(p.Nodes, busy, jobs)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("not deterministic: %v, %v", got, again)
		}
	})
}

// TestMapNodesWindows checks that a mapping keeps the conditions with arbitrary busy intervals, and
// that for a single job it is found exactly when one exists.
func TestMapNodesWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
		var busy []NodeBusy
		for range rapid.IntRange(0, 6).Draw(t, "busy") {
			start := rapid.Int64Range(0, 12).Draw(t, "start")
			busy = append(busy, NodeBusy{rapid.IntRange(0, nodes-1).Draw(t, "node"), start, start + rapid.Int64Range(1, 6).Draw(t, "length")})
		}
		job := MappedJob{Placement: Placement{Start: rapid.Int64Range(0, 6).Draw(t, "at"), Steps: plannertest.DrawProfile(t, 4, 4, nodes)}, Driver: -1}
		got, err := MapNodes(nodes, busy, []MappedJob{job})
		if err == nil {
			checkMapping(t, nodes, busy, []MappedJob{job}, got)
		} else if !errors.As(err, new(*MapError)) {
			t.Fatal(err)
		}
		if possible := naiveMaps(nodes, busy, job); possible != (err == nil) {
			t.Fatalf("a mapping exists: %v; got %v, %v", possible, got, err)
		}
	})
}

// TestMapNodesNaive checks that MapNodes finds the same nodes, or the same reasons for failure, as
// sorting all free nodes at every boundary, even for placements without room.
func TestMapNodesNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SampledFrom([]int{3, 8, 20, 130}).Draw(t, "nodes")
		node := rapid.IntRange(0, nodes-1)
		var busy []NodeBusy
		for range rapid.IntRange(0, nodes).Draw(t, "busy") {
			start := rapid.SampledFrom([]int64{exact.Dawn, 0, 5, 10, 20, 40}).Draw(t, "start")
			end := rapid.SampledFrom([]int64{5, 12, 25, 45, 60, Forever}).Draw(t, "end")
			busy = append(busy, NodeBusy{node.Draw(t, "node"), start, end})
		}
		jobs := make([]MappedJob, rapid.IntRange(1, 8).Draw(t, "jobs"))
		owned := make(map[int]bool)
		for i := range jobs {
			few := rapid.SampledFrom([]int{1, nodes/3 + 1, nodes}).Draw(t, "at most")
			jobs[i] = MappedJob{
				Placement: Placement{Start: rapid.Int64Range(0, 30).Draw(t, "at"), Steps: plannertest.DrawProfile(t, 4, 12, few)},
				Driver:    rapid.SampledFrom([]int{-1, Lowest, 0, nodes / 2}).Draw(t, "driver"),
				Prefer:    rapid.SliceOfN(node, 0, nodes/2).Draw(t, "prefer"),
				Release:   rapid.SliceOfN(node, 0, 3).Draw(t, "release"),
			}
			for _, n := range rapid.SliceOfN(node, 0, 2).Draw(t, "held") {
				if !owned[n] {
					owned[n], jobs[i].Held = true, append(jobs[i].Held, n)
				}
			}
		}
		got, err := MapNodes(nodes, busy, jobs)
		want, wantErr := naiveMapNodes(nodes, busy, jobs)
		if !cmp.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%v\n%v\n(-want +got):\n%s", err, wantErr, cmp.Diff(want, got))
		}
	})
}

// naiveMaps tries every set of nodes for every step.
func naiveMaps(nodes int, busy []NodeBusy, job MappedJob) bool {
	bounds := job.Boundaries()
	var try func(k int, before uint) bool
	try = func(k int, before uint) bool {
		if k == len(job.Steps) {
			return true
		}
		for set := range uint(1) << nodes {
			count, fits := 0, true
			for n := range nodes {
				if set>>n&1 == 0 {
					continue
				}
				count++
				for _, b := range busy {
					fits = fits && (b.Node != n || b.End <= bounds[k] || b.Start >= bounds[k+1])
				}
			}
			kept := set&before == set || set&before == before
			if fits && kept && count == job.Steps[k].Nodes && try(k+1, set) {
				return true
			}
		}
		return false
	}
	return try(0, 0)
}
