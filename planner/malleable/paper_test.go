package malleable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests in this file follow Buisson et al. 2007 line by line.

// said is a request with its receiver and the answer.
type said struct {
	Job      string
	Kind     Kind
	Nodes    int
	Accepted int
}

// listen lets the jobs answer as declared, and records what is said.
func listen(all *[]said) Ask {
	return func(j Job, r Request) int {
		accepted := j.Accepts(r)
		*all = append(*all, said{j.ID, r.Kind, r.Nodes, accepted})
		return accepted
	}
}

// Three jobs in no order; b started first, a last.
func three() []Job {
	return []Job{
		{ID: "a", Start: 30, Nodes: 4, Min: 2, Max: 10},
		{ID: "b", Start: 10, Nodes: 6, Min: 2, Max: 8},
		{ID: "c", Start: 20, Nodes: 2, Min: 2, Max: 8, Sizes: Pow2},
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		r      Request
		want   []said
	}{
		// FPSMA_GROW: by increasing start time (1); the whole growValue is offered to each
		// in turn (2, 3), less what those before have accepted (4, 6), their maximum
		// considered; b takes 2 of 11.
		{"FPSMA_GROW 1-6", FPSMA{}, Request{Kind: Grow, Nodes: 11}, []said{{"b", Grow, 11, 2}, {"c", Grow, 9, 6}, {"a", Grow, 3, 3}}},
		// No job is asked once growValue is 0 (7, 8).
		{"FPSMA_GROW 7-8", FPSMA{}, Request{Kind: Grow, Nodes: 2}, []said{{"b", Grow, 2, 2}}},
		// c accepts what makes it a power of two: 2 of 3.
		{"FPSMA_GROW 4", FPSMA{}, Request{Kind: Grow, Nodes: 5}, []said{{"b", Grow, 5, 2}, {"c", Grow, 3, 2}, {"a", Grow, 1, 1}}},
		// FPSMA_SHRINK: by decreasing start time (1).
		{"FPSMA_SHRINK 1-6", FPSMA{}, Request{Kind: Shrink, Nodes: 5, Mandatory: true}, []said{{"a", Shrink, 5, 2}, {"c", Shrink, 3, 0}, {"b", Shrink, 3, 3}}},
		{"FPSMA_SHRINK 7-8", FPSMA{}, Request{Kind: Shrink, Nodes: 1}, []said{{"a", Shrink, 1, 1}}},
		// EQUI_GROW: 11 over three jobs is 3 each (2) and a remainder of 2 (3), a bonus for
		// the least recently started: b and c (1, 5). b's maximum lets it accept 2, c makes
		// 4 of its 6 (7); what is left stays free.
		{"EQUI_GROW 1-8", EGS{}, Request{Kind: Grow, Nodes: 11}, []said{{"b", Grow, 4, 2}, {"c", Grow, 4, 2}, {"a", Grow, 3, 3}}},
		// Fewer nodes than jobs: the remainder is all there is.
		{"EQUI_GROW 5", EGS{}, Request{Kind: Grow, Nodes: 2}, []said{{"b", Grow, 1, 1}, {"c", Grow, 1, 0}}},
		// EQUI_SHRINK: 4 over three jobs is 1 each (2) and a remainder of 1 (3), a malus for
		// the most recently started, a (1, 5).
		{"EQUI_SHRINK 1-7", EGS{}, Request{Kind: Shrink, Nodes: 4, Mandatory: true}, []said{{"a", Shrink, 2, 2}, {"c", Shrink, 1, 0}, {"b", Shrink, 1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []said
			jobs := three()
			changes := c.policy.Apply(jobs, c.r, listen(&got))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			var accepted []said
			for _, s := range c.want {
				if s.Accepted > 0 {
					accepted = append(accepted, s)
				}
			}
			var changed []said
			for _, change := range changes {
				changed = append(changed, said{jobs[change.Job].ID, change.Kind, change.Nodes, change.Accepted})
			}
			if diff := cmp.Diff(accepted, changed); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFPSMAEndsBeyondZero checks line 7 of FPSMA_SHRINK. As printed, shrinkValue == 0, it would
// continue after an application gives back more than requested.
func TestFPSMAEndsBeyondZero(t *testing.T) {
	jobs := []Job{{ID: "old", Start: 1, Nodes: 5, Min: 1, Max: 8}, {ID: "ft", Start: 2, Nodes: 8, Min: 2, Max: 32, Sizes: Pow2}}
	var got []said
	FPSMA{}.Apply(jobs, Request{Kind: Shrink, Nodes: 3}, listen(&got))
	if diff := cmp.Diff([]said{{"ft", Shrink, 3, 4}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEquiShrinkAsPrinted checks line 5. As printed, i ≥ remainder of the list by decreasing start
// time, jobs would be asked for another number than shrinkValue. As in the text, they are asked for
// exactly that number.
func TestEquiShrinkAsPrinted(t *testing.T) {
	for n := 1; n < 10; n++ {
		var jobs []Job
		for i := range n {
			jobs = append(jobs, Job{ID: string(rune('a' + i)), Start: int64(i), Nodes: 100, Min: 1, Max: 100})
		}
		for v := range 40 {
			printed := n * (v / n)
			for i := range n {
				if i >= v%n {
					printed++
				}
			}
			var got []said
			EGS{}.Apply(jobs, Request{Kind: Shrink, Nodes: v}, listen(&got))
			meant := 0
			for _, s := range got {
				meant += s.Nodes
			}
			if meant != v {
				t.Errorf("%d of %d jobs: asked for %d", v, n, meant)
			}
			if 2*(v%n) != n && printed == v {
				t.Errorf("%d of %d jobs: as printed %d, the same", v, n, printed)
			}
		}
	}
}

// TestFT checks that the FT application accepts the highest power of two that does not exceed what
// it would have, and gives back the rest (VI-A).
func TestFT(t *testing.T) {
	for _, c := range []struct {
		nodes int
		r     Request
		want  int
	}{
		{2, Request{Kind: Grow, Nodes: 1}, 0},
		{2, Request{Kind: Grow, Nodes: 2}, 2},
		{2, Request{Kind: Grow, Nodes: 13}, 6},
		{2, Request{Kind: Grow, Nodes: 100}, 30},
		{32, Request{Kind: Grow, Nodes: 32}, 0},
		{8, Request{Kind: Shrink, Nodes: 1}, 4},
		{8, Request{Kind: Shrink, Nodes: 4}, 4},
		{8, Request{Kind: Shrink, Nodes: 5}, 6},
		{8, Request{Kind: Shrink, Nodes: 50}, 6},
		{2, Request{Kind: Shrink, Nodes: 1}, 0},
	} {
		ft := Job{ID: "ft", Nodes: c.nodes, Min: 2, Max: 32, Sizes: Pow2}
		if got := ft.Accepts(c.r); got != c.want {
			t.Errorf("on %d nodes, asked to %s by %d, it accepts %d; want %d", c.nodes, c.r.Kind, c.r.Nodes, got, c.want)
		}
	}
}

// TestManage follows V-B sentence by sentence.
func TestManage(t *testing.T) {
	job := func(id string, start int64, nodes int) Job {
		return Job{ID: id, Start: start, Nodes: nodes, Min: 2, Max: 10}
	}
	grow := func(n int) Request { return Request{Kind: Grow, Nodes: n} }
	for _, c := range []struct {
		name     string
		approach Approach
		policy   Policy
		state    State
		want     Decision
	}{
		{"PRA: whenever processors become available, first the running applications are considered", PRA, FPSMA{},
			State{Free: 4, Jobs: []Job{job("a", 1, 2), job("b", 2, 2)}, Waiting: []Waiting{{"w", 2, true}}},
			Decision{Request: grow(4), Changes: []Change{{0, grow(4), 4}}}},
		{"PRA: any waiting malleable jobs are not considered as long as a running one can still be grown", PRA, EGS{},
			State{Free: 5, Jobs: []Job{{ID: "ft", Nodes: 8, Min: 2, Max: 32, Sizes: Pow2}, {ID: "g", Start: 1, Nodes: 2, Min: 2, Max: 46}}, Waiting: []Waiting{{"w", 2, true}, {"r", 2, false}}},
			Decision{Request: grow(5), Changes: []Change{{1, grow(2), 2}}, Start: []int{1}}}, // 3 free: g could have them, a rigid job gets 2
		{"PRA: they are where none can", PRA, FPSMA{},
			State{Free: 7, Jobs: []Job{job("a", 1, 8)}, Waiting: []Waiting{{"w", 3, true}, {"x", 3, true}, {"y", 2, true}}},
			Decision{Request: grow(7), Changes: []Change{{0, grow(7), 2}}, Start: []int{0, 2}}},
		{"PRA: nobody is shrunk", PRA, FPSMA{},
			State{Jobs: []Job{job("a", 1, 10)}, Waiting: []Waiting{{"w", 2, true}}}, Decision{}},
		{"PWA: waiting jobs are placed where there is room, those after one that cannot be too", PWA, FPSMA{},
			State{Free: 4, Waiting: []Waiting{{"w", 5, false}, {"x", 3, true}, {"y", 1, false}}}, Decision{Start: []int{1, 2}}},
		{"PWA: when the next job cannot be placed running jobs are shrunk, which is mandatory", PWA, FPSMA{},
			State{Free: 1, Jobs: []Job{job("a", 1, 10), job("b", 2, 5)}, Waiting: []Waiting{{"w", 5, false}}},
			Decision{For: []int{0}, Request: Request{Shrink, 4, true}, Changes: []Change{{1, Request{Shrink, 4, true}, 3}, {0, Request{Shrink, 1, true}, 1}}}},
		{"PWA: equally under EGS", PWA, EGS{},
			State{Free: 1, Jobs: []Job{job("a", 1, 10), job("b", 2, 5)}, Waiting: []Waiting{{"w", 6, false}}},
			Decision{For: []int{0}, Request: Request{Shrink, 5, true}, Changes: []Change{{1, Request{Shrink, 3, true}, 3}, {0, Request{Shrink, 2, true}, 2}}}},
		{"PWA: if it is impossible to get enough, taking the minimum sizes into account, running jobs are considered for growing", PWA, FPSMA{},
			State{Free: 2, Jobs: []Job{job("a", 1, 4), job("b", 2, 4)}, Waiting: []Waiting{{"w", 7, false}}},
			Decision{Request: grow(2), Changes: []Change{{0, grow(2), 2}}}},
		{"PWA: the next one that can be helped is", PWA, FPSMA{},
			State{Free: 0, Jobs: []Job{job("a", 1, 4)}, Waiting: []Waiting{{"w", 7, false}, {"x", 1, false}, {"y", 1, false}, {"z", 1, false}}},
			Decision{For: []int{1, 2}, Request: Request{Shrink, 2, true}, Changes: []Change{{0, Request{Shrink, 2, true}, 2}}}},
		{"PWA: nodes that are coming are not asked for again, and free ones wait with them", PWA, FPSMA{},
			State{Free: 2, Coming: 3, Jobs: []Job{{ID: "a", Nodes: 8, Min: 2, Max: 10, Held: true}, job("b", 2, 4)}, Waiting: []Waiting{{"w", 5, false}}},
			Decision{For: []int{0}}},
		{"a threshold is set over which the total set of the jobs is never expanded", PRA, FPSMA{},
			State{Free: 20, Threshold: 9, Jobs: []Job{job("a", 1, 4), job("b", 2, 2)}, Waiting: []Waiting{{"w", 2, true}, {"r", 2, false}}},
			Decision{Request: grow(3), Changes: []Change{{0, grow(3), 3}}, Start: []int{1}}},
		{"PWA: for a waiting malleable job others make room below the threshold", PWA, FPSMA{},
			State{Free: 20, Threshold: 8, Jobs: []Job{job("a", 1, 8)}, Waiting: []Waiting{{"w", 2, true}}},
			Decision{For: []int{0}, Request: Request{Shrink, 2, true}, Changes: []Change{{0, Request{Shrink, 2, true}, 2}}}},
		{"PWA: each of them for as many as it takes, and no more", PWA, FPSMA{},
			State{Free: 20, Threshold: 8, Jobs: []Job{job("a", 1, 8)}, Waiting: []Waiting{{"w", 2, true}, {"x", 2, true}}},
			Decision{For: []int{0, 1}, Request: Request{Shrink, 4, true}, Changes: []Change{{0, Request{Shrink, 4, true}, 4}}}},
		{"who need not obey is not counted on", PWA, FPSMA{},
			State{Jobs: []Job{{ID: "v", Nodes: 8, Min: 2, Max: 10, Voluntary: true}}, Waiting: []Waiting{{"w", 2, false}}},
			Decision{}},
		{"EGS is asked again for what it did not bring", PWA, EGS{},
			State{Jobs: []Job{job("a", 1, 10), job("b", 2, 2)}, Waiting: []Waiting{{"w", 4, false}}},
			Decision{For: []int{0}, Request: Request{Shrink, 4, true}, Changes: []Change{{0, Request{Shrink, 4, true}, 4}}}},
		{"equipartition takes from the large for the small when all is in use", PWA, Equipartition{},
			State{Jobs: []Job{job("a", 1, 10), job("b", 2, 2)}},
			Decision{Request: Request{Kind: Balance}, Changes: []Change{{0, Request{Kind: Shrink, Nodes: 4}, 4}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Manage(c.approach, c.policy, c.state, Declared)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
