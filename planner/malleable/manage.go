package malleable

import (
	"fmt"
	"slices"
)

// Approach says which jobs have precedence when nodes are free (V-B).
type Approach int

// The approaches.
const (
	PWA Approach = iota // precedence to waiting applications: running ones shrink for them
	PRA                 // precedence to running applications: they grow first, and never shrink
)

func (a Approach) String() string { return [...]string{"pwa", "pra"}[a] }

// ParseApproach reads pwa or pra.
func ParseApproach(text string) (Approach, error) {
	switch text {
	case "pwa":
		return PWA, nil
	case "pra":
		return PRA, nil
	}
	return PWA, fmt.Errorf("precedence %q is neither pwa (waiting applications) nor pra (running ones)", text)
}

// Waiting is a job that waits to start, malleable or not.
type Waiting struct {
	ID        string
	Nodes     int  // nodes that it needs to start; for a malleable job, the least
	Malleable bool // its nodes count against the threshold
}

// State holds what a malleability manager sees of a cluster.
type State struct {
	Free      int // idle nodes that are not held for a job
	Coming    int // nodes that jobs are giving back by an earlier decision; those jobs are Held and still have them
	Threshold int // largest number of nodes of all malleable jobs together; 0 for no bound
	Jobs      []Job
	Waiting   []Waiting // in the order of the queue
}

// Decision is the outcome for a state.
type Decision struct {
	Start   []int    // waiting jobs that can start on free nodes, by index
	For     []int    // waiting jobs that get nodes through Changes, by index
	Request Request  // what the policy was asked; Nodes is 0 if nothing
	Changes []Change // changes of running jobs: all grow, or all shrink
}

// Manage decides as in V-B, for one cluster, whenever something has changed there.
//
// PRA considers growing running jobs first. It considers waiting malleable jobs only when no
// running job can grow. No job shrinks.
//
// PWA starts waiting jobs in queue order while there is room. For those that cannot be placed,
// running jobs must shrink if they can give enough together within their bounds; the paper does so
// for one waiting job at a time. If this helps no waiting job, PWA considers growing running jobs.
//
// In both, no growth lets malleable jobs exceed the threshold.
func Manage(a Approach, p Policy, s State, ask Ask) Decision {
	m := manager{State: s, policy: p, ask: ask}
	for _, j := range s.Jobs {
		m.total += j.Nodes
	}
	m.later = m.total - s.Coming
	if a == PRA {
		m.runningFirst()
	} else {
		m.waitingFirst()
	}
	return m.decision
}

// manager is a decision in the making.
type manager struct {
	State
	policy   Policy
	ask      Ask
	total    int // nodes of malleable jobs, running and started
	later    int // the same once coming nodes have come and their jobs have started
	decision Decision
}

// room returns how many free nodes malleable jobs may still get.
func (m *manager) room() int {
	if m.Threshold > 0 {
		return max(min(m.Free, m.Threshold-max(m.total, m.later)), 0)
	}
	return max(m.Free, 0)
}

// start starts a waiting job if there is room.
func (m *manager) start(i int) bool {
	w := m.Waiting[i]
	if w.Nodes > m.Free || w.Malleable && w.Nodes > m.room() {
		return false
	}
	m.Free -= w.Nodes
	if w.Malleable {
		m.total += w.Nodes
		m.later += w.Nodes
	}
	m.decision.Start = append(m.decision.Start, i)
	return true
}

func (m *manager) apply(r Request) {
	m.decision.Request = r
	m.decision.Changes = Distribute(m.policy, m.Jobs, r, m.ask)
	if r.Kind == Grow {
		for _, c := range m.decision.Changes {
			m.Free -= c.Accepted
			m.total += c.Accepted
			m.later += c.Accepted
		}
	}
}

func (m *manager) runningFirst() {
	declined := map[string]bool{}
	ask := m.ask
	m.ask = func(j Job, r Request) int {
		accepted := ask(j, r)
		declined[j.ID] = declined[j.ID] || accepted < j.Accepts(r)
		return accepted
	}
	if room := m.room(); room > 0 && len(m.Jobs) > 0 {
		m.apply(Request{Kind: Grow, Nodes: room})
	}
	grown := after(m.Jobs, m.decision.Changes)
	growing := slices.ContainsFunc(grown, func(j Job) bool {
		return !j.Held && !declined[j.ID] && j.Accepts(Request{Kind: Grow, Nodes: m.room()}) > 0
	})
	for i, w := range m.Waiting {
		if !(w.Malleable && growing) {
			m.start(i)
		}
	}
}

func (m *manager) waitingFirst() {
	need, possible := 0, reclaimable(m.Jobs)
	for i, w := range m.Waiting {
		if m.start(i) {
			continue
		}
		missing := w.Nodes - m.Free - m.Coming
		if w.Malleable && m.Threshold > 0 {
			missing = max(missing, m.later+w.Nodes-m.Threshold)
		}
		missing = max(missing, 0)
		if missing > possible-need {
			continue
		}
		m.decision.For = append(m.decision.For, i)
		need += missing
		idle := min(w.Nodes, m.Free) // nodes that wait with the job
		m.Free -= idle
		m.Coming += missing - (w.Nodes - idle)
		m.later -= missing
		if w.Malleable {
			m.later += w.Nodes
		}
	}
	switch room := m.room(); {
	case need > 0:
		m.apply(Request{Kind: Shrink, Nodes: need, Mandatory: true})
	case len(m.decision.For) == 0:
		if room > 0 {
			m.apply(Request{Kind: Grow, Nodes: room})
		}
		if len(m.decision.Changes) == 0 && len(m.Jobs) > 1 {
			m.apply(Request{Kind: Balance, Nodes: room})
		}
	}
}

// Distribute lets a policy give out or reclaim nodes. If a mandatory shrink does not bring enough
// at once, as with EGS, it asks again the jobs that can still give.
func Distribute(p Policy, jobs []Job, r Request, ask Ask) []Change {
	changes := p.Apply(jobs, r, ask)
	if r.Kind != Shrink || !r.Mandatory {
		return changes
	}
	for left := r.Nodes - sum(changes); left > 0; {
		rest := after(jobs, changes)
		asked := 0
		for i := range rest {
			if rest[i].Reclaimable() == 0 {
				rest[i].Held = true
			} else {
				asked++
			}
		}
		if asked == 0 {
			break
		}
		more := p.Apply(rest, Request{Shrink, left, true}, ask)
		if len(more) == 0 {
			break
		}
		left -= sum(more)
		changes = merge(changes, more)
	}
	return changes
}

// after returns the jobs with changes applied.
func after(jobs []Job, changes []Change) []Job {
	jobs = slices.Clone(jobs)
	for _, c := range changes {
		jobs[c.Job].Nodes = c.Size(jobs[c.Job])
	}
	return jobs
}

func sum(changes []Change) (nodes int) {
	for _, c := range changes {
		nodes += c.Accepted
	}
	return nodes
}

// merge joins two changes of the same job into one.
func merge(changes, more []Change) []Change {
	for _, c := range more {
		i := slices.IndexFunc(changes, func(d Change) bool { return d.Job == c.Job })
		if i < 0 {
			changes = append(changes, c)
			continue
		}
		changes[i].Nodes += c.Nodes
		changes[i].Accepted += c.Accepted
	}
	return changes
}
