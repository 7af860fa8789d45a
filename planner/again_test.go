package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

// TestPlanAgain checks that planning again equals a new plan whatever happens, except for the nodes
// of jobs that stay where they are. It also checks that mostly no planning is needed if nothing
// happens.
func TestPlanAgain(t *testing.T) {
	still, spared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := Pool{Nodes: rapid.IntRange(2, 12).Draw(t, "nodes")}
		if rapid.Bool().Draw(t, "switches") {
			p.Switches = drawSwitches(t, p.Nodes)
		}
		node, second := rapid.IntRange(0, p.Nodes-1), rapid.Int64Range(0, 60)
		busy := func() NodeBusy {
			start := second.Draw(t, "start")
			return NodeBusy{node.Draw(t, "node"), max(start-20, 0), start + rapid.Int64Range(1, 30).Draw(t, "length")}
		}
		job := func() PoolJob {
			return PoolJob{Driver: rapid.SampledFrom([]int{-1, Lowest}).Draw(t, "driver"),
				Job: Job{Submit: max(second.Draw(t, "submit")-40, 0), Profile: plannertest.DrawProfile(t, 4, 20, p.Nodes), ExpandLimit: rapid.SampledFrom([]ExpandLimit{0, 1, 1, 1, 2}).Draw(t, "limit")}}
		}
		for range rapid.IntRange(0, p.Nodes).Draw(t, "busy") {
			p.Busy = append(p.Busy, busy())
		}
		for range rapid.IntRange(1, 8).Draw(t, "jobs") {
			p.Jobs = append(p.Jobs, job())
		}
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "noX", "noX", "2X+c", "rigid"}).Draw(t, "strategy"))
		origin, last, searched, due := int64(0), (*Last)(nil), 0, []Placement(nil)
		for range rapid.IntRange(1, 12).Draw(t, "cycles") {
			was := last
			var got []Planned
			var err error
			got, last, err = p.PlanAgain(s, origin, last)
			want, rounds, wantErr := p.planSteady(s)
			stays := was != nil && last == was
			if was != nil && !was.Drifts {
				still++
			}
			for i := range due {
				if was == nil && err == nil && !cmp.Equal(got[i].Placement, due[i]) {
					t.Fatalf("job %d drifts (-want +got):\n%s", i, cmp.Diff(due[i], got[i].Placement))
				}
			}
			if stays {
				spared++
				checkNodes(t, p, got)
				if rounds > 0 || searched > 0 { // planned around windows, which depend on where jobs prefer to be
					want = slices.Clone(got)
				}
				for i := range want {
					want[i].Nodes = got[i].Nodes
				}
			} else {
				searched = rounds
			}
			if err != nil || wantErr != nil || !cmp.Equal(got, want) {
				t.Fatalf("%v, %v (-want +got):\n%s", wantErr, err, cmp.Diff(want, got))
			}
			// A moment later: ended intervals are gone, the planned nodes are preferred, and
			// sometimes something happens.
			by := rapid.Int64Range(0, 4).Draw(t, "seconds")
			origin += by
			next := Pool{Nodes: p.Nodes, Switches: p.Switches}
			for _, b := range p.Busy {
				if b.Start, b.End = max(b.Start-by, 0), b.End-by; b.End > 0 {
					next.Busy = append(next.Busy, b)
				}
			}
			for i, j := range p.Jobs {
				j.Submit, j.Prefer = max(j.Submit-by, 0), nil
				for _, nodes := range got[i].Nodes {
					j.Prefer = append(j.Prefer, nodes...)
				}
				slices.Sort(j.Prefer)
				j.Prefer = slices.Compact(j.Prefer)
				next.Jobs = append(next.Jobs, j)
			}
			due = due[:0]
			for i, one := range got {
				if one.Placement.Start -= by; one.Unfit != "" || one.Start < 0 || !slices.Equal(p.Jobs[i].Prefer, next.Jobs[i].Prefer) {
					due = due[:0]
					break
				}
				due = append(due, one.Placement)
			}
			p = next
			event := rapid.IntRange(0, 7).Draw(t, "event")
			if event < 4 {
				due = due[:0]
			}
			switch event {
			case 0: // a job ends early
				if len(p.Busy) > 0 {
					i := rapid.IntRange(0, len(p.Busy)-1).Draw(t, "which")
					p.Busy = slices.Delete(p.Busy, i, i+1)
				}
			case 1: // or a job arrives
				p.Busy = append(p.Busy, busy())
			case 2:
				p.Jobs = append(p.Jobs, job())
			case 3:
				if len(p.Jobs) > 1 {
					i := rapid.IntRange(0, len(p.Jobs)-1).Draw(t, "which")
					p.Jobs = slices.Delete(p.Jobs, i, i+1)
				}
			}
		}
	})
	if spared < still/10 {
		t.Errorf("%d of %d plans were spared", spared, still)
	}
}

// checkNodes checks the nodes of all jobs in a plan that fit.
func checkNodes(t *rapid.T, p Pool, planned []Planned) {
	var mapped []MappedJob
	var nodes [][][]int
	for i, one := range planned {
		if one.Unfit != "" {
			continue
		}
		driver := p.Jobs[i].Driver
		if driver == Lowest {
			driver = slices.Min(one.Nodes[0])
		}
		if one.Start < p.Jobs[i].Submit {
			t.Fatalf("job %d starts at %d, it may from %d on", i, one.Start, p.Jobs[i].Submit)
		}
		mapped, nodes = append(mapped, MappedJob{Placement: one.Placement, Driver: driver}), append(nodes, one.Nodes)
	}
	checkMapping(t, p.Nodes, p.Busy, mapped, nodes)
}

// TestPlanAgainStays checks that two jobs of others, which are placed first and avoid what ours
// prefers, do not drive ours back and forth while nothing happens.
func TestPlanAgainStays(t *testing.T) {
	noX, _ := StrategyByName("noX")
	job := func(seconds int64, nodes int, others bool) PoolJob {
		return PoolJob{Driver: -1, Others: others, Job: Job{Profile: Profile{{Duration: seconds, Nodes: nodes}}, ExpandLimit: 1}}
	}
	p := Pool{Nodes: 3, Jobs: []PoolJob{job(100, 2, true), job(200, 1, true), job(50, 2, false)}}
	first, last, err := p.PlanAgain(noX, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Jobs = slices.Clone(p.Jobs)
	p.Jobs[2].Prefer = first[2].Nodes[0]
	if fresh, err := p.Plan(noX); err != nil || cmp.Equal(fresh[2].Nodes, first[2].Nodes) {
		t.Errorf("a fresh plan has it on %v again (%v)", fresh[2].Nodes, err)
	}
	if again, _, err := p.PlanAgain(noX, 0, last); err != nil || !cmp.Equal(again, first) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(first, again))
	}
	p.Jobs[2].Prefer = []int{2} // a node that does not exist
	if _, now, err := p.PlanAgain(noX, 0, last); err != nil || now == last {
		t.Errorf("what it prefers is not minded (%v)", err)
	}
}

// tardy plans like another strategy, but starts every job later; it is steady.
type tardy struct {
	Strategy
	name string
	by   int64
}

func (s tardy) Name() string { return s.name }
func (tardy) Steady() bool   { return true }

func (s tardy) Plan(p Problem) (Schedule, error) {
	plan, err := s.Strategy.Plan(p)
	for i := range plan {
		plan[i].Start += s.by
	}
	return plan, err
}

// TestPlanAgainByAnother checks that a plan by one strategy is not reused for another.
func TestPlanAgainByAnother(t *testing.T) {
	noX, _ := StrategyByName("noX")
	p := Pool{Nodes: 1, Jobs: []PoolJob{{Driver: -1, Job: Job{ID: "0", Profile: Profile{{Duration: 10, Nodes: 1}}, ExpandLimit: 1}}}}
	_, last, err := p.PlanAgain(tardy{noX, "a", 5}, 0, nil)
	if err != nil || last == nil {
		t.Fatalf("nothing is kept: %v", err)
	}
	got, _, err := p.PlanAgain(tardy{noX, "b", 7}, 0, last)
	if err != nil || got[0].Start != 7 {
		t.Errorf("starts at %d, want 7 (%v)", got[0].Start, err)
	}
}

// TestPlanAgainWithoutOthers checks that another's job may be late by a tenth of the time until
// ours starts before a new plan is made.
func TestPlanAgainWithoutOthers(t *testing.T) {
	noX, _ := StrategyByName("noX")
	job := func(seconds int64, others bool) PoolJob {
		return PoolJob{Driver: -1, Others: others, Job: Job{Profile: Profile{{Duration: seconds, Nodes: 2}}, ExpandLimit: 1}}
	}
	p := Pool{Nodes: 2, Jobs: []PoolJob{job(100, true), job(50, false)}}
	_, first, err := p.PlanAgain(noX, 1000, nil)
	if err != nil || first.Until() != 1010 {
		t.Fatalf("holds until %d, want 1010 (%v)", first.Until(), err)
	}
	for _, c := range []struct{ origin, others, ours int64 }{{1000, 0, 100}, {1009, -9, 91}, {1010, 0, 100}} {
		got, last, err := p.PlanAgain(noX, c.origin, first)
		if err != nil || got[0].Start != c.others || got[1].Start != c.ours || (last == first) != (c.origin < first.Until()) {
			t.Errorf("from second %d on: theirs at %d, ours at %d; want %d, %d (%v)", c.origin, got[0].Start, got[1].Start, c.others, c.ours, err)
		}
	}
	p.Jobs[1].Others = true // none is ours
	if _, last, _ := p.PlanAgain(noX, 1000, nil); last.Until() != Forever {
		t.Errorf("holds until %d", last.Until())
	}
}

// TestPlanAgainForAnotherAlternative checks that a plan says until when it holds if an alternative that was not chosen could
// start before the chosen one.
func TestPlanAgainForAnotherAlternative(t *testing.T) {
	noX, _ := StrategyByName("noX")
	p := Pool{Nodes: 2, Busy: []NodeBusy{{Node: 1, Start: 0, End: 20}}, Jobs: []PoolJob{{Driver: -1, Job: Job{Profile: Profile{{Duration: 100, Nodes: 1}}, ExpandLimit: 1,
		Alternatives: []Profile{{{Duration: 10, Nodes: 2}}}, By: ByCompletion}}}}
	_, last, err := p.PlanAgain(noX, 1000, nil)
	if err != nil || last.Planned[0].Start != 20 || last.Until() != 1001 {
		t.Fatalf("starts at %d, holds until %d, want 20, 1001 (%v)", last.Planned[0].Start, last.Until(), err)
	}
	for by, busy := range []int64{20, 19} {
		p.Busy[0].End = busy
		if _, again, err := p.PlanAgain(noX, 1000+int64(by), last); (again == last) != (by == 0) || err != nil {
			t.Errorf("after %d s, the plan is kept: %v (%v)", by, again == last, err)
		}
	}
}

// TestPlanAgainDrifts checks what is said of a plan that is not kept: it drifts if it was repeated because of node
// windows.
func TestPlanAgainDrifts(t *testing.T) {
	noX, _ := StrategyByName("noX")
	for _, c := range []struct {
		limit          ExpandLimit
		seconds        int64
		reserved, want bool
	}{{2, 25, false, true}, {2, 15, false, false}, {1, 25, false, false}, {1, 25, true, true}, {1, 15, true, false}} {
		p := Pool{Nodes: 2, Busy: []NodeBusy{{0, 10, 20}, {1, 20, 30}},
			Jobs: []PoolJob{{Driver: -1, Job: Job{Profile: Profile{{Duration: c.seconds, Nodes: 1}}, ExpandLimit: c.limit}}}}
		if c.reserved {
			p.Reserved = []NodeBusy{{0, 50, 60}}
		}
		_, last, err := p.PlanAgain(noX, 1000, nil)
		if got := last != nil && last.Until() == 1000; got != c.want || err != nil {
			t.Errorf("limit %v, %d seconds, reserved %v: drifts: %v (%v)", c.limit, c.seconds, c.reserved, got, err)
		}
	}
}

// TestPlanAgainGathers checks that a plan that is not kept drifts if jobs were moved to start on blocks.
func TestPlanAgainGathers(t *testing.T) {
	for _, wants := range []int{2, 3} { // three fit on one block only once others have left it
		p := Pool{Nodes: 12, Switches: inBlocksOf(4, []int{1, 2, 4}, 0, 4, 4, 4), Licenses: []License{{Total: 1}},
			Busy: slices.Concat(down(0, 1, 4, 5), busyFor(50, 8, 9)),
			Jobs: []PoolJob{{Driver: -1, Licenses: []LicenseNeed{{Count: 1}}, Job: Job{ID: "a", Profile: Profile{{Duration: 10, Nodes: wants}}}}}}
		_, last, err := p.PlanAgain(mustStrategy(t, "noX"), 1000, nil)
		if got := last != nil && last.Until() == 1000; got != (wants == 3) || err != nil {
			t.Errorf("%d nodes: drifts: %v (%v)", wants, got, err)
		}
	}
}
