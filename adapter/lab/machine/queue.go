package machine

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Order says which waiting jobs may start before others that were submitted earlier.
type Order uint8

const (
	FCFS     Order = iota // none
	EASY                  // jobs that do not delay the first waiting job
	FirstFit              // all that fit: the first job may starve
)

// Queue starts jobs in order of submission. With a policy, running malleable jobs make room for
// them (PWA) and take nodes that no job waits for. Jobs that declare their phases get no promise
// from it, so a growth may have to wait; see [Planned].
type Queue struct {
	Order  Order
	Policy malleable.Policy // nil if jobs keep their initial size
}

// Schedule implements Scheduler.
func (q Queue) Schedule(m *Machine) {
	serveShort(m)
	free, coming, spare := m.Free, 0, 0
	for _, r := range m.Running {
		coming += r.leaving()
		if q.Policy != nil {
			spare += r.spare()
		}
	}
	var starts []*Run
	demand, shadow, extra := 0, int64(-1), 0
	for _, r := range m.Queue {
		least, _ := r.Bounds()
		if shadow >= 0 { // behind a waiting job
			if least > extra && m.Now+m.Left(r, least) > shadow {
				continue
			}
			extra -= min(least, extra)
		}
		blocked := false
		switch have := free + coming; {
		case least <= free:
			free -= least
			starts = append(starts, r)
		case least <= have+spare:
			if gap := least - have; gap > 0 {
				demand += gap
				spare -= gap
				coming += gap
			}
			coming -= least - free
			free = 0
		case q.Order == FCFS:
			blocked = true
		case q.Order == EASY && shadow < 0:
			shadow, extra = m.shadow(least, have+spare)
		}
		if blocked || free+coming+spare == 0 {
			break
		}
	}
	take(m, q.Policy, demand)
	start(m, starts, &free)
	give(m, q.Policy, free, anyRun)
}

// start starts the jobs that fit, on their preferred nodes as far as free allows.
func start(m *Machine, jobs []*Run, free *int) {
	for _, r := range jobs {
		least, most := r.Bounds()
		size := r.Sizes.Floor(min(r.Phases[0].Pref, most, least+*free))
		size = max(size, least)
		*free -= size - least
		m.Start(r, size)
	}
}

// serveShort gives nodes to jobs whose phase has come, in order of start.
func serveShort(m *Machine) {
	for _, r := range m.Running {
		if short := r.Short() - r.grows; short > 0 && m.Free >= short {
			m.Grow(r, short)
		}
	}
}

// spare returns how many nodes a running job can release.
func (r *Run) spare() int {
	if !r.Kind.Resizable() || r.Short() > 0 {
		return 0
	}
	least, _ := r.Bounds()
	return max(r.Assigned()-least, 0)
}

// anyRun accepts every job that a policy can change.
func anyRun(*Run) bool { return true }

// malleableJobs returns the running jobs that a policy can change and that can accepts.
func malleableJobs(m *Machine, can func(*Run) bool) (runs []*Run, jobs []malleable.Job) {
	for _, r := range m.Running {
		if !r.Kind.Resizable() || r.Short() > 0 || !can(r) {
			continue
		}
		p := &r.Phases[r.Phase]
		runs = append(runs, r)
		jobs = append(jobs, malleable.Job{ID: strconv.Itoa(r.Number), Start: r.Start, Nodes: r.Assigned(),
			Min: p.Min, Max: p.Max, Sizes: r.Sizes, Speedup: p.Speed})
	}
	return runs, jobs
}

// take makes running jobs release nodes.
func take(m *Machine, p malleable.Policy, nodes int) {
	if p == nil || nodes <= 0 {
		return
	}
	runs, jobs := malleableJobs(m, anyRun)
	r := malleable.Request{Kind: malleable.Shrink, Nodes: nodes, Mandatory: true}
	for _, c := range malleable.Distribute(p, jobs, r, malleable.Declared) {
		m.Shrink(runs[c.Job], c.Accepted, nil)
	}
}

// give lets running jobs that can accepts take free nodes.
func give(m *Machine, p malleable.Policy, nodes int, can func(*Run) bool) {
	if p == nil || nodes <= 0 {
		return
	}
	runs, jobs := malleableJobs(m, can)
	if len(jobs) == 0 {
		return
	}
	r := malleable.Request{Kind: malleable.Grow, Nodes: nodes}
	for _, c := range malleable.Distribute(p, jobs, r, malleable.Declared) {
		m.Grow(runs[c.Job], c.Accepted)
	}
}

// shadow returns when that many nodes are free, given have now and constant sizes, and how many are
// left over then.
func (m *Machine) shadow(nodes, have int) (at int64, extra int) {
	type end struct {
		at    int64
		nodes int
	}
	ends := make([]end, 0, len(m.Running))
	for _, r := range m.Running {
		ends = append(ends, end{m.Now + m.Left(r, max(r.Size, 1)), r.Size - r.spare()})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	at = m.Now
	for _, e := range ends {
		if have >= nodes {
			break
		}
		have += e.nodes
		at = e.at
	}
	return at, have - nodes
}
