package change

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/power"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Finding out whether a change is possible takes as long as planning all queued jobs. So the
// change is planned outside the core, on a copy of everything it depends on. The effect [msg.Try]
// hands the copy to the shell, and [msg.Tried] brings back the result. Steps continue meanwhile. If
// the job, any plan or the snapshot has changed by then, the change is planned again.
//
// The core plans one change at a time, and one per user in a cycle; the other changes wait. Root
// and operators go first, and as often as they want. After them goes the user with the longest
// time since the last change.

const (
	MostWaiting = 16 // waiting changes of a user; the caller of a further one must ask again
	MostTries   = 3  // how often a change is planned for one request
)

// Attempt is the core's [msg.Attempt].
type Attempt struct {
	core   *state.Core // a copy
	Job    *state.Job  // in the copy
	target *state.Target
}

// Run implements [msg.Attempt].
func (a *Attempt) Run() msg.Tried {
	r := TryChange(a.core, a.core.Snapshot, a.Job, a.target)
	out := msg.Tried{Refused: r.Refused, Earliest: r.Earliest, Behind: r.GoesBehind, Later: r.Later}
	if r.Grown > 0 {
		out.Nodes = r.Profile[r.Grown].Nodes
	}
	for _, step := range r.Plan {
		out.Plan = append(out.Plan, msg.PlannedStep{Start: step.Start, End: step.End, Nodes: step.Nodes, At: step.At})
	}
	return out
}

// try asks for an attempt at the change that a call requests.
func try(c *state.Core, k *state.OpenCall, j *state.Job, t *state.Target) {
	all := CopyAll(c)
	own := *t
	own.Job = t.Job.Copy()
	k.Basis = basisOf(c, j)
	k.Target, k.Attempts = t, k.Attempts+1
	c.Tries.Underway = k.ID
	c.Tries.Last++
	if c.Tries.Of == nil {
		c.Tries.Of = map[uint32]state.Attempted{}
	}
	c.Tries.Of[k.UID] = state.Attempted{c.Tries.Last, c.Tries.Cycle}
	c.Emit(msg.Try{ID: k.ID, Attempt: &Attempt{core: all, Job: all.ByID[j.BaseID()], target: &own}})
}

// TakeTried takes over the result of an attempt.
func TakeTried(c *state.Core, in msg.Tried) {
	if c.Tries.Underway == in.ID {
		c.Tries.Underway = 0
	}
	for _, k := range c.Calling {
		if k.ID == in.ID && k.Target != nil {
			k.Tried = &in
		}
	}
}

// NextTries begins a cycle, in which each user may have one attempt. It deletes users without
// a recent attempt, and forgets delays that no longer count.
func NextTries(c *state.Core) {
	c.Tries.Cycle++
	forgetGrown(c)
	maps.DeleteFunc(c.Tries.Of, func(_ uint32, t state.Attempted) bool { return t.Cycle+1 < c.Tries.Cycle })
}

// isNext reports whether the change of a call may be planned now.
func isNext(c *state.Core, k *state.OpenCall) bool {
	if c.Tries.Underway != 0 {
		return false
	}
	last, had := c.Tries.Of[k.UID]
	return !had || last.Cycle < c.Tries.Cycle || k.Attempts > 0 || trusts(c, k.UID)
}

// trusts reports whether a user is root or an operator.
func trusts(c *state.Core, uid uint32) bool {
	return uid == 0 || uid == c.SlurmUser || c.Config.Operators.Allows(uid)
}

// InTurn returns the calls in the order in which the core answers them.
func InTurn(c *state.Core) []*state.OpenCall {
	since := func(k *state.OpenCall) uint64 {
		if k.Change == nil || trusts(c, k.UID) {
			return 0
		}
		return c.Tries.Of[k.UID].Number
	}
	all := slices.Clone(c.Calling)
	slices.SortStableFunc(all, func(a, b *state.OpenCall) int { return cmp.Compare(since(a), since(b)) })
	return all
}

// TooMany returns why a change cannot wait beside its user's other changes, or nil if it can.
func TooMany(c *state.Core, in msg.Call) error {
	if in.Change == nil || trusts(c, in.UID) {
		return nil
	}
	n := 0
	for _, k := range c.Calling {
		if k.Change != nil && k.UID == in.UID {
			n++
		}
	}
	if n < MostWaiting {
		return nil
	}
	return api.Errorf(api.ErrUnavailable, "%d changes of yours wait, and each cycle plans one: try again", n)
}

// basisOf returns the basis of an attempt that begins now.
func basisOf(c *state.Core, j *state.Job) *state.Basis {
	return &state.Basis{Cycle: c.Tries.Cycle, Changed: c.Tries.Changed, State: j.State, Step: j.Step, Changes: len(j.Changes), Touched: j.Touched, Nodes: j.Nodes()}
}

// same reports whether nothing has changed since an attempt began.
func same(b, now *state.Basis) bool {
	return b.Cycle == now.Cycle && b.Changed == now.Changed && b.State == now.State && b.Step == now.Step && b.Changes == now.Changes &&
		b.Touched.Equal(now.Touched) && slices.Equal(b.Nodes, now.Nodes)
}

// outdated reports whether anything that the attempt of a call depends on has changed.
func outdated(c *state.Core, k *state.OpenCall, j *state.Job) bool {
	return k.Basis == nil || !same(k.Basis, basisOf(c, j))
}

// CopyAll returns a copy of the core that shares no changing state with the original. The copy
// lacks everything that plans do not depend on.
func CopyAll(c *state.Core) *state.Core {
	n := &state.Core{Site: c.Site, Config: c.Config, Now: c.Now, Clock: c.Clock, Observed: c.Observed, Strategy: c.Strategy, Started: c.Started, Quiet: c.Quiet, Awake: c.Awake, Stepped: c.Stepped,
		Handling: &msg.Handling{}}
	n.Log.C = n
	n.Snapshot = c.Snapshot.Copied()
	n.Survey, n.SurveyOf = nil, nil
	n.Doubts = maps.Clone(c.Doubts)
	n.Suspect, n.Leaks, n.Leaked, n.ParksIn = maps.Clone(c.Suspect), maps.Clone(c.Leaks), slices.Clone(c.Leaked), maps.Clone(c.ParksIn)
	n.Shrunk = maps.Clone(c.Shrunk)
	n.Epilogs = slurm.CopiedEpilogs(c)
	n.Power.Since, n.Power.Asked, n.Power.Kept = maps.Clone(c.Power.Since), maps.Clone(c.Power.Asked), maps.Clone(c.Power.Kept)
	n.Power.ByPlan.Naps, n.Power.ByPlan.Reserve = maps.Clone(c.Power.ByPlan.Naps), maps.Clone(c.Power.ByPlan.Reserve)
	n.Power.Arrivals = power.CopiedArrivals(c)
	n.Jobs = state.Jobs{Coming: maps.Clone(c.Coming), Scripts: maps.Clone(c.Scripts), EventsOf: maps.Clone(c.EventsOf), MutedOf: maps.Clone(c.MutedOf), Aside: maps.Clone(c.Aside), Asked: maps.Clone(c.Asked), Unsaved: map[*state.Job]bool{}}
	copies := make(map[*state.Job]*state.Job, len(c.Active))
	for _, j := range c.Active {
		copies[j] = j.Copy()
		n.Active = append(n.Active, copies[j])
	}
	n.ByID = make(map[slurmctl.JobID]*state.Job, len(c.ByID))
	for id, j := range c.ByID {
		n.ByID[id] = cmp.Or(copies[j], j)
	}
	n.Holds = state.Holds{Reservations: maps.Clone(c.Reservations), StuckHolds: maps.Clone(c.StuckHolds), HeldSince: maps.Clone(c.HeldSince), Ours: slices.Clone(c.Ours),
		HoldNames: maps.Clone(c.HoldNames), HoldChanged: maps.Clone(c.HoldChanged), Unwilling: maps.Clone(c.Unwilling), HoldsOpen: c.HoldsOpen, Intruders: maps.Clone(c.Intruders), Opened: maps.Clone(c.Opened), Delays: c.Delays.Copied()}
	n.Pressing = c.Pressing
	n.Work = state.NewWork()
	return n
}
