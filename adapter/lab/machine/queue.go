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
	EASY                  // those that do not delay the first that waits
	FirstFit              // all that fit: the first may starve
)

// Queue starts jobs in order of submission. With a policy, running malleable jobs give way to
// them (PWA), and take what nobody waits for. Jobs that declare their phases get no promise from
// it: a growth may have to wait; see [Planned].
type Queue struct {
	Order  Order
	Policy malleable.Policy // nil: jobs keep the size with which they start
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
		if shadow >= 0 { // behind one that waits
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

// start starts jobs for which there is room, on the nodes that they prefer as far as free goes.
func start(m *Machine, jobs []*Run, free *int) {
	for _, r := range jobs {
		least, most := r.Bounds()
		size := r.Sizes.Floor(min(r.Phases[0].Pref, most, least+*free))
		size = max(size, least)
		*free -= size - least
		m.Start(r, size)
	}
}

// serveShort gives nodes to jobs whose phase has come, those that started first first.
func serveShort(m *Machine) {
	for _, r := range m.Running {
		if short := r.Short() - r.grows; short > 0 && m.Free >= short {
			m.Grow(r, short)
		}
	}
}

// spare is how many nodes a running job can be told to leave.
func (r *Run) spare() int {
	if !r.Kind.Resizable() || r.Short() > 0 {
		return 0
	}
	least, _ := r.Bounds()
	return max(r.Assigned()-least, 0)
}

// anyRun is what a policy can change where nobody forbids it.
func anyRun(*Run) bool { return true }

// malleableJobs are the running jobs that a policy can change, of those that can.
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

// take has running jobs leave nodes.
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

// give has running jobs take free nodes, those that can.
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

// shadow is when so many nodes are free, where have are now and jobs keep their sizes, and how
// many are left over then.
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
