package lend

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// asking is a policy that knows the answers to the first questions. It records the next question and declines
// everything else.
type asking struct {
	*state.Managing
	known [][]malleable.Change
	open  *msg.Question
	place []int // places of the open question's jobs in the list that the policy got
}

func (a *asking) Name() string { return a.Strategy.Policy }

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
	q := &msg.Question{Asked: r, Nodes: len(a.S.Nodes), Now: a.Second, Free: idle(a.Managing), Waiting: a.Waiting}
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
func idle(m *state.Managing) (n int) {
	for i := range m.S.Nodes {
		if m.S.Nodes[i].Usable() && !m.S.InUse[m.S.Nodes[i].Name] {
			n++
		}
	}
	return n
}

// decided lets the current policy decide something. It reports false if a plugin must be asked first: then
// nothing must have changed.
func decided(m *state.Managing, by func(malleable.Policy)) bool {
	if !m.Strategy.Plugin {
		by(policy(m.Core))
		return true
	}
	a := &asking{Managing: m, known: m.Answers}
	by(a)
	if a.open == nil {
		return true
	}
	m.Question, m.Place = a.open, a.place
	m.Emit(msg.Resize{*a.open})
	return false
}

// FaultsTold is the shortest time between two log lines about faults of a policy; the event log has all
// faults.
const FaultsTold = 10 * time.Minute
