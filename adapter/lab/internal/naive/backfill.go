package naive

import (
	"slices"
)

// Rigid is a job for [EASY] and [Conservative]: no limit is shorter than the run time.
type Rigid struct {
	Submit, Run, Limit int64
	Nodes              int
}

// backfill is a machine at one second.
type backfill struct {
	nodes  int
	jobs   []Rigid
	starts []int64 // -1 for a job that waits or has not come
	now    int64
	live   []int // running or waiting jobs
	seen   int   // number of jobs that have come
}

func newBackfill(nodes int, jobs []Rigid) *backfill {
	return &backfill{nodes: nodes, jobs: jobs, starts: slices.Repeat([]int64{-1}, len(jobs)), now: -1}
}

// next advances to the next second at which a job comes, ends, or should start; it reports whether
// there is one.
func (b *backfill) next(more ...int64) bool {
	if b.seen < len(b.jobs) {
		more = append(more, b.jobs[b.seen].Submit)
	}
	for _, i := range b.live {
		if b.starts[i] >= 0 {
			more = append(more, b.starts[i]+b.jobs[i].Run)
		}
	}
	at := int64(-1)
	for _, t := range more {
		if t > b.now && (at < 0 || t < at) {
			at = t
		}
	}
	for ; b.seen < len(b.jobs) && b.jobs[b.seen].Submit <= at; b.seen++ {
		b.live = append(b.live, b.seen)
	}
	b.live = slices.DeleteFunc(b.live, func(i int) bool { return b.starts[i] >= 0 && b.starts[i]+b.jobs[i].Run < at })
	b.now = at
	return at >= 0
}

func (b *backfill) runs(i int) bool  { return b.starts[i] >= 0 && b.starts[i]+b.jobs[i].Run > b.now }
func (b *backfill) waits(i int) bool { return b.starts[i] < 0 && b.jobs[i].Submit <= b.now }

// free returns the nodes that are free now, or at a later second if all jobs run to their limits.
func (b *backfill) free(at int64) int {
	free := b.nodes
	for _, i := range b.live {
		j := b.jobs[i]
		if b.runs(i) && (at == b.now || b.starts[i]+j.Limit > at) {
			free -= j.Nodes
		}
	}
	return free
}

// EASY returns the start of every job; jobs are sorted by submission.
func EASY(nodes int, jobs []Rigid) []int64 {
	b := newBackfill(nodes, jobs)
	for b.next() {
		first, free := -1, b.free(b.now)
		for _, i := range b.live {
			j := jobs[i]
			if !b.waits(i) {
				continue
			}
			switch {
			case first < 0 && j.Nodes <= free:
				b.starts[i] = b.now
				free = b.free(b.now)
			case first < 0:
				first = i
			case j.Nodes <= free:
				// Does the first job start as early as without this one?
				without := b.earliest(jobs[first].Nodes)
				b.starts[i] = b.now
				if b.earliest(jobs[first].Nodes) > without {
					b.starts[i] = -1
				}
				free = b.free(b.now)
			}
		}
	}
	return b.starts
}

// earliest returns when that many nodes are free if all jobs run to their limits.
func (b *backfill) earliest(nodes int) int64 {
	best := int64(1) << 60
	for _, i := range b.live {
		j := b.jobs[i]
		if end := b.starts[i] + j.Limit; b.runs(i) && end < best && b.free(end) >= nodes {
			best = end
		}
	}
	return best
}

// Conservative returns the start of every job; jobs are sorted by submission.
func Conservative(nodes int, jobs []Rigid) []int64 {
	b := newBackfill(nodes, jobs)
	place := slices.Repeat([]int64{-1}, len(jobs))
	waiting := func() (at []int64) {
		for _, i := range b.live {
			if b.starts[i] < 0 {
				at = append(at, place[i])
			}
		}
		return at
	}
	for b.next(waiting()...) {
		early := false
		for _, i := range b.live {
			j := jobs[i]
			if b.starts[i] >= 0 && b.starts[i]+j.Run == b.now && j.Run < j.Limit {
				early = true
			}
		}
		for _, i := range b.live {
			j := jobs[i]
			if b.waits(i) && (place[i] < 0 || early && place[i] > b.now) {
				place[i] = -1
				place[i] = b.place(place, j)
			}
		}
		for _, i := range b.live {
			if b.waits(i) && place[i] == b.now {
				b.starts[i] = b.now
			}
		}
	}
	return b.starts
}

// place returns the earliest second at which a job has room beside the running jobs and the jobs
// with a place.
func (b *backfill) place(place []int64, j Rigid) int64 {
	change := map[int64]int{b.now: 0} // of nodes in use
	for _, i := range b.live {
		other := b.jobs[i]
		switch {
		case b.runs(i):
			change[b.now] += other.Nodes
			change[b.starts[i]+other.Limit] -= other.Nodes
		case b.waits(i) && place[i] >= 0:
			change[place[i]] += other.Nodes
			change[place[i]+other.Limit] -= other.Nodes
		}
	}
	var times []int64
	for t := range change {
		times = append(times, t)
	}
	slices.Sort(times)
	used, since := 0, int64(-1)
	for _, t := range times {
		if since >= 0 && since+j.Limit <= t {
			return since
		}
		if used += change[t]; used > b.nodes-j.Nodes {
			since = -1
		} else if since < 0 {
			since = t
		}
	}
	return since
}
