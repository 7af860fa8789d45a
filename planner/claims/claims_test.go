package claims

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHalfClusters is the example of the paper's section 2: two applications hold half of the
// cluster each and will want more than half.
func TestHalfClusters(t *testing.T) {
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	a := Job{Has: all[:50], May: all, Claim: 75}
	b := Job{Has: all[50:], May: all, Claim: 75}
	if !Safe(100, nil, []Job{a}) {
		t.Error("one alone is not let in")
	}
	if Safe(100, nil, []Job{a, b}) {
		t.Error("both are admitted: they would wait for each other forever")
	}
	b.Claim = 50
	if order, safe := Order(100, nil, []Job{a, b}); !safe || !slices.Equal(order, []int{1, 0}) {
		t.Errorf("the one that wants no more than it has comes first: %v %v", order, safe)
	}
}

// world is a state in which jobs with claims arrive, grow, shrink, and end.
type world struct {
	n    int
	jobs []Job
	want []int // further nodes that the job waits for
}

func (w *world) free() []int {
	used := make([]bool, w.n)
	for _, j := range w.jobs {
		for _, node := range j.Has {
			used[node] = true
		}
	}
	var free []int
	for i, u := range used {
		if !u {
			free = append(free, i)
		}
	}
	return free
}

// pick returns k free nodes that a job may have, or nil if there are fewer.
func (w *world) pick(may []int, k int) []int {
	var nodes []int
	for _, node := range w.free() {
		if len(nodes) < k && slices.Contains(may, node) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) < k {
		return nil
	}
	return nodes
}

func (w *world) remove(j int) {
	w.jobs = slices.Delete(w.jobs, j, j+1)
	w.want = slices.Delete(w.want, j, j+1)
}

// TestNobodyWaitsForEver checks that every state is safe, whatever jobs with claims ask for. It
// also checks that all jobs end, even if each grows to its claim first.
func TestNobodyWaitsForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{n: rapid.IntRange(1, 12).Draw(t, "nodes")}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0: // a job arrives
				may := rapid.SliceOfNDistinct(rapid.IntRange(0, w.n-1), 1, w.n, rapid.ID[int]).Draw(t, "may")
				claim := rapid.IntRange(1, len(may)).Draw(t, "claim")
				has := w.pick(may, rapid.IntRange(1, claim).Draw(t, "has"))
				after := append(slices.Clone(w.jobs), Job{Has: has, May: may, Claim: claim})
				if has != nil && Safe(w.n, nil, after) {
					w.jobs, w.want = after, append(w.want, 0)
				}
			case len(w.jobs) == 0:
			case what == 1: // a job wants more
				j := rapid.IntRange(0, len(w.jobs)-1).Draw(t, "job")
				if most := w.jobs[j].Claim - len(w.jobs[j].Has); most > 0 {
					w.want[j] = rapid.IntRange(1, most).Draw(t, "more")
				}
			case what == 2: // a job gives back nodes
				j := rapid.IntRange(0, len(w.jobs)-1).Draw(t, "job")
				w.jobs[j].Has = w.jobs[j].Has[:rapid.IntRange(1, len(w.jobs[j].Has)).Draw(t, "keeps")]
				w.want[j] = 0
			default:
				w.remove(rapid.IntRange(0, len(w.jobs)-1).Draw(t, "job"))
			}
			w.grant()
			if !Safe(w.n, nil, w.jobs) {
				t.Fatalf("not safe: %+v", w.jobs)
			}
		}
		// from now on every job wants its whole claim, and ends once it has it
		for len(w.jobs) > 0 {
			for j, job := range w.jobs {
				w.want[j] = job.Claim - len(job.Has)
			}
			w.grant()
			done := slices.IndexFunc(w.jobs, func(j Job) bool { return len(j.Has) == j.Claim })
			if done < 0 {
				t.Fatalf("everybody waits: %+v", w.jobs)
			}
			w.remove(done)
		}
	})
}

// grant gives waiting jobs what may be given.
func (w *world) grant() {
	for j := range w.jobs {
		if w.want[j] == 0 {
			continue
		}
		has := w.jobs[j].Has
		nodes := w.pick(w.jobs[j].May, w.want[j])
		if w.jobs[j].Has = slices.Concat(has, nodes); nodes != nil && len(w.jobs[j].Has) <= w.jobs[j].Claim && Safe(w.n, nil, w.jobs) {
			w.want[j] = 0
		} else {
			w.jobs[j].Has = has
		}
	}
}

// TestOrderIsComplete compares with all possible orders.
func TestOrderIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		gone := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "gone")
		w := &world{n: n}
		for range rapid.IntRange(0, 4).Draw(t, "jobs") {
			may := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, n, rapid.ID[int]).Draw(t, "may")
			has := w.pick(may, rapid.IntRange(0, len(may)).Draw(t, "has"))
			w.jobs = append(w.jobs, Job{Has: has, May: may, Claim: rapid.IntRange(len(has), len(may)).Draw(t, "claim")})
		}
		order, safe := Order(n, gone, w.jobs)
		if want := anyOrder(n, gone, w.jobs, nil); safe != want {
			t.Fatalf("safe %v, by trying %v: %+v", safe, want, w.jobs)
		}
		if safe && len(order) != len(w.jobs) {
			t.Fatalf("the order is %v of %d", order, len(w.jobs))
		}
	})
}

// anyOrder tries all orders.
func anyOrder(n int, gone []bool, jobs []Job, done []int) bool {
	if len(done) == len(jobs) {
		return true
	}
	for j, job := range jobs {
		if slices.Contains(done, j) {
			continue
		}
		count := 0
		for node := range n {
			mine := slices.Contains(job.Has, node)
			other := slices.ContainsFunc(jobs, func(o Job) bool { return slices.Contains(o.Has, node) }) && !mine
			for _, k := range done {
				other = other && !slices.Contains(jobs[k].Has, node)
			}
			if mine || slices.Contains(job.May, node) && !other && !gone[node] {
				count++
			}
		}
		if count >= job.Claim && anyOrder(n, gone, jobs, append(slices.Clone(done), j)) {
			return true
		}
	}
	return false
}
