package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// A built-in malleability policy decides immediately. A plugin is asked with an effect, as a strategy is for a
// plan: the manager's run stops there. Once the answer ([Resized]) arrives, the manager repeats the current
// phase from its beginning with all answers so far. Nothing changes before the last answer, and equal state
// makes equal questions.

// Question holds a question to a malleability policy.
type Question struct {
	Asked   malleable.Request
	Jobs    []malleable.Job // by increasing start time
	Nodes   int             // in the cluster
	Now     int64
	Free    int   // idle nodes
	Waiting []int // nodes that pending stock jobs need to start, in the order of the queue
}

// FallbackPolicy answers if a plugin fails.
var FallbackPolicy malleable.Policy = malleable.EGS{}

// asking is a policy that knows the answers to the first questions. It records the next question and declines
// everything else.
type asking struct {
	*managing
	known [][]malleable.Change
	open  *Question
	place []int // places of the open question's jobs in the list that the policy got
}

func (a *asking) Name() string { return a.strategy.Policy }

// Apply implements malleable.Policy.
func (a *asking) Apply(jobs []malleable.Job, r malleable.Request, _ malleable.Ask) []malleable.Change {
	if a.open != nil || r.Nodes <= 0 && r.Kind != malleable.Balance || !mayFollow(jobs, r) {
		return nil
	}
	if len(a.known) > 0 {
		first := a.known[0]
		a.known = a.known[1:]
		return first
	}
	q := &Question{Asked: r, Nodes: len(a.s.nodes), Now: a.second, Free: a.idle(), Waiting: a.waiting}
	for i := range jobs {
		a.place = append(a.place, i)
	}
	slices.SortStableFunc(a.place, func(x, y int) int { return cmp.Compare(jobs[x].Start, jobs[y].Start) })
	for _, i := range a.place {
		j := jobs[i]
		j.Nodes = max(min(j.Nodes, j.Max), j.Min) // a held job may be between two sizes
		q.Jobs = append(q.Jobs, j)
	}
	a.open = q
	return nil
}

// mayFollow reports whether any change may follow from a request.
func mayFollow(jobs []malleable.Job, r malleable.Request) bool {
	can := 0
	for _, j := range jobs {
		if !j.Held && (r.Kind == malleable.Shrink && j.Reclaimable() > 0 || r.Kind == malleable.Grow && j.Accepts(r) > 0 || r.Kind == malleable.Balance) {
			can++
		}
	}
	return can > 1 || can == 1 && r.Kind != malleable.Balance
}

// idle returns how many nodes are allocated to no job.
func (m *managing) idle() (n int) {
	for i := range m.s.nodes {
		if m.s.nodes[i].Usable() && !m.s.inUse[m.s.nodes[i].Name] {
			n++
		}
	}
	return n
}

// decided lets the current policy decide something. It reports false if a plugin must be asked first: then
// nothing must have changed.
func (m *managing) decided(by func(malleable.Policy)) bool {
	if !m.strategy.Plugin {
		by(m.policy())
		return true
	}
	a := &asking{managing: m, known: m.answers}
	by(a)
	if a.open == nil {
		return true
	}
	m.question, m.place = a.open, a.place
	m.emit(Resize{*a.open})
	return false
}

// faultsTold is the shortest time between two log lines about faults of a policy; the event log has all
// faults.
const faultsTold = 10 * time.Minute

// resized processes the answer of a plugin.
func (c *Core) resized(in Resized) {
	m := c.looking
	if m == nil {
		return
	}
	c.looking = nil
	q, changes, why := m.question, in.Changes, in.Fault
	if why == "" {
		if err := malleable.Check(q.Jobs, q.Asked, changes); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		changes = FallbackPolicy.Apply(q.Jobs, q.Asked, malleable.Declared)
		if !c.now.Before(c.faultTold) {
			c.faultTold = c.now.Add(faultsTold)
			c.log.WithField("policy", c.strategy.Policy).Warn(fmt.Sprintf("%s decides in its place: %s", FallbackPolicy.Name(), why))
		}
	}
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Job = m.place[changes[i].Job]
	}
	m.answers = append(m.answers, changes)
	m.goOn()
}
