package planner

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// A batch system starts a job on a node that others have reserved only if the job's time limit ends
// before the reservation, whatever the job's profile says: it may run for that long. So each job
// has its own windows. A window that begins between the job's start and its limit is closed to the
// job from now until it ends. Which windows these are is known only once the job's start is known.
//
// Jobs are planned as if they started as early as they may. If a job starts so late that its limit
// reaches into a reservation on which it was placed, that reservation is closed to it, and it is
// planned again together with the jobs behind it. A reservation that leaves too few nodes to start
// on, such as one of a whole cluster, only delays the start: such a job is planned along with the
// others.

const (
	// exactRequests is the number of requests in which a pool's plan closes reservations to one job
	// at a time: a job behind it may then start earlier. orderedRequests is the number in which
	// only neighbours in the list are planned together, so that no job is overtaken. After
	// allRequests, all reservations are closed. Far back in a long queue, this is less exact; those
	// jobs are planned more exactly once they are further in front.
	exactRequests, orderedRequests, allRequests = 6, 12, 40
	// fewerRequests is the divisor of these numbers for a strategy that should be called once.
	fewerRequests = 6
	// leastRounds is the number of rounds of a request (see mapRounds) when all have been used up.
	leastRounds = 4
)

// reservedWindow is a set of nodes that others have reserved during [start, end).
type reservedWindow struct {
	start, end int64
	nodes      []int
}

// reservedRun is one call of Pool.Plan with reservations.
type reservedRun struct {
	pool    Pool
	now     int64
	windows []reservedWindow
	on      [][]int  // node → windows
	closed  [][]bool // job → window that was in the way of its limit
	soonest []int64  // job → earliest start
	busy    []NodeBusy
	planned []Planned
	rounds  int // rounds left
}

// planReserved plans a pool in which others have reserved nodes. It returns what planAnew returns.
func (p Pool) planReserved(s Strategy) ([]Planned, int, error) {
	r := p.reservedRun()
	var fixed, todo []int
	for j, job := range p.Jobs {
		if job.Fixed {
			fixed = append(fixed, j)
		} else {
			todo = append(todo, j)
		}
	}
	if len(fixed) > 0 || len(todo) == 0 {
		for request, found := 1, true; found && request <= allRequests; request++ {
			if _, err := r.ask(s, fixed, r.shut(fixed...)); err != nil {
				return nil, 0, err
			}
			found = false // a link of a delayed chain reaches further
			for _, j := range fixed {
				found = r.close(j) || found
			}
		}
		r.accept(fixed)
	}
	exact, ordered := exactRequests, orderedRequests
	if asksOnce(s) {
		exact, ordered = exact/fewerRequests, ordered/fewerRequests
	}
	for request := 1; len(todo) > 0; request++ {
		keys := make(map[int]string, len(todo))
		for _, j := range todo {
			if request > allRequests {
				for w := range r.windows {
					r.closed[j][w] = true
				}
			}
			keys[j] = r.key(j)
		}
		if request > ordered {
			slices.SortStableFunc(todo, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		}
		n := 1
		for n < len(todo) && keys[todo[n]] == keys[todo[0]] {
			n++
		}
		some := todo[:n]
		if _, err := r.ask(s, some, r.shut(some[0])); err != nil {
			return nil, 0, err
		}
		good := n
		for i, j := range some {
			if r.close(j) {
				if good = min(good, i); request <= exact {
					break
				}
			}
		}
		r.accept(some[:good])
		todo = todo[good:]
	}
	return r.planned, mapRounds - r.rounds, nil
}

func (p Pool) reservedRun() *reservedRun {
	r := p.windowsRun()
	for j, job := range p.Jobs {
		r.closed[j], r.soonest[j] = make([]bool, len(r.windows)), job.Submit
		r.now = min(r.now, job.Submit)
	}
	for j := range p.Jobs {
		r.settle(j)
	}
	return r
}

// windowsRun returns a run that knows the windows only.
func (p Pool) windowsRun() *reservedRun {
	r := &reservedRun{pool: p, now: exact.Horizon, on: make([][]int, p.Nodes), closed: make([][]bool, len(p.Jobs)),
		soonest: make([]int64, len(p.Jobs)), busy: slices.Clone(p.Busy), planned: make([]Planned, len(p.Jobs)), rounds: mapRounds}
	index := make(map[[2]int64]int)
	for _, b := range p.Reserved {
		r.busy = append(r.busy, b)
		if b.Start >= b.End || b.Node < 0 || b.Node >= p.Nodes { // plan reports it
			continue
		}
		at, known := index[[2]int64{b.Start, b.End}]
		if !known {
			at = len(r.windows)
			index[[2]int64{b.Start, b.End}] = at
			r.windows = append(r.windows, reservedWindow{start: b.Start, end: b.End})
		}
		r.windows[at].nodes = append(r.windows[at].nodes, b.Node)
		r.on[b.Node] = append(r.on[b.Node], at)
	}
	return r
}

// reach returns how long after its start the job's last time limit ends.
func (job PoolJob) reach() int64 {
	if len(job.Limits) == 1 {
		return job.Limits[0]
	}
	at, reach := int64(0), int64(0)
	for i, limit := range job.Limits {
		reach = max(reach, exact.AddTime(at, limit))
		if i < len(job.Profile) {
			at = exact.AddTime(at, job.Profile[i].Duration)
		}
	}
	return reach
}

// settle closes the windows before which the job cannot start, and delays its start until the open
// nodes suffice.
func (r *reservedRun) settle(j int) {
	job := r.pool.Jobs[j]
	for {
		at := r.soonest[j]
		count := make([]int, r.pool.Nodes) // of closed windows on every node
		shut := 0
		later := Forever
		for w, win := range r.windows {
			if len(job.Limits) > 0 && exact.AddTime(at, job.reach()) > win.start {
				r.closed[j][w] = true
			}
			if !r.closed[j][w] || win.end <= at {
				continue
			}
			later = min(later, win.end)
			for _, n := range win.nodes {
				if count[n]++; count[n] == 1 {
					shut++
				}
			}
		}
		if job.Fixed || len(job.Profile) == 0 || r.pool.Nodes-shut >= job.Profile[0].Nodes || later == Forever || later > exact.Horizon {
			return
		}
		r.soonest[j] = later
	}
}

// key distinguishes jobs by what is closed to them when they may start.
func (r *reservedRun) key(j int) string {
	key := make([]byte, len(r.windows))
	for w, win := range r.windows {
		if key[w] = '0'; r.closed[j][w] && win.end > r.soonest[j] {
			key[w] = '1'
		}
	}
	return string(key)
}

// shut returns what is closed to any of these jobs, from now on.
func (r *reservedRun) shut(jobs ...int) []NodeBusy {
	var all []NodeBusy
	for w, win := range r.windows {
		if slices.ContainsFunc(jobs, func(j int) bool { return r.closed[j][w] && win.end > r.soonest[j] }) {
			for _, n := range win.nodes {
				all = append(all, NodeBusy{n, min(r.now, win.start), win.end})
			}
		}
	}
	return all
}

// ask plans some of the jobs around what is busy.
func (r *reservedRun) ask(s Strategy, jobs []int, shut []NodeBusy) ([]Planned, error) {
	sub := Pool{Nodes: r.pool.Nodes, Busy: slices.Concat(r.busy, shut), Licenses: r.pool.Licenses, Jobs: make([]PoolJob, len(jobs))}
	for i, j := range jobs {
		sub.Jobs[i] = r.pool.Jobs[j]
		sub.Jobs[i].Submit = r.soonest[j]
	}
	planned, rounds, err := sub.plan(s, max(r.rounds, leastRounds))
	r.rounds -= rounds
	for i, j := range jobs {
		if err == nil {
			r.planned[j] = planned[i]
		}
	}
	return planned, err
}

// close checks whether a planned job is on nodes that are reserved before its time limit ends, and
// closes these to it.
func (r *reservedRun) close(j int) (found bool) {
	job, p := r.pool.Jobs[j], r.planned[j]
	if len(job.Limits) == 0 || p.Unfit != "" {
		return false
	}
	at := p.Start
	for i, step := range p.Steps {
		for _, n := range p.Nodes[i] {
			if len(r.on[n]) == 0 {
				continue
			}
			free := job.freeUntil(p.Start, at, i, p.brings(i, n))
			for _, w := range r.on[n] {
				if win := r.windows[w]; win.start < free && win.end > at && !(r.closed[j][w] && win.end > p.Start) {
					r.closed[j][w], found = true, true
				}
			}
		}
		at += step.Duration
	}
	if found {
		r.soonest[j] = max(r.soonest[j], p.Start)
		r.settle(j)
	}
	return found
}

// brings reports whether a node first comes at a step after the first.
func (p *Planned) brings(step, node int) bool {
	if step == 0 {
		return false
	}
	_, has := slices.BinarySearch(p.Nodes[step-1], node)
	return !has
}

// accept fixes the plans of some jobs: the others are planned around them.
func (r *reservedRun) accept(jobs []int) {
	for _, j := range jobs {
		job, p := r.pool.Jobs[j], r.planned[j]
		if p.Unfit != "" {
			if job.Fixed { // no other job gets its nodes
				for _, n := range job.Held {
					r.busy = append(r.busy, NodeBusy{n, r.now, exact.AddTime(job.Submit, max(job.Profile.Duration(), 1))})
				}
			}
			continue
		}
		at := p.Start
		for i, step := range p.Steps {
			for _, n := range p.Nodes[i] {
				r.busy = append(r.busy, NodeBusy{n, at, at + step.Duration})
			}
			at += step.Duration
		}
	}
}
