package core

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Whether a change can be had takes as long to find out as a plan of all queued jobs. So a
// change is planned outside the core, on a copy of what it rests on: the effect [Try] hands the
// copy to the shell, and [Tried] brings back what came of it. Steps go on meanwhile. If the
// job, any plan or the snapshot is another one by then, the change is planned again.
//
// One change is planned at a time, and one of a user in a cycle; the others wait. Root and
// operators go first, and as often as they want; then the user with the longest time since the last
// one.

const (
	mostWaiting = 16 // changes of a user that wait; the caller of another one asks again
	mostTries   = 3  // how often a change is planned for one request
)

// Attempt is a change of a job, with a copy of all that it rests on.
type Attempt struct {
	core   *Core // a copy
	job    *job  // of the copy
	target *target

	snapshot *snapshot // that was copied
	was      job       // the job, as it was
	changed  uint64    // plans that had changed by then
}

// Try asks for an attempt at a change, and for [Tried] as an input.
type Try struct {
	ID      uint64 // of the call
	Attempt *Attempt
}

func (Try) effect() {}

// Tried brings back what came of an attempt.
type Tried struct {
	ID       uint64
	Refused  string // what stands in the way; "": nothing
	Earliest int64  // Unix second at which the next step could begin; 0: as things are, never
	Nodes    int    // of the step to which the job grows
	Behind   bool   // it comes behind all others that wait
	Plan     []PlannedStep
}

func (Tried) input() {}

// tries are the attempts of users.
type tries struct {
	underway uint64               // the call that is tried; 0: none
	cycle    uint64               // number of the present cycle
	last     uint64               // number of the last attempt
	of       map[uint32]attempted // users that had one
	changed  uint64               // how many plans have changed
}

// attempted is the last attempt of a user.
type attempted struct{ number, cycle uint64 }

// Run plans the change. It changes nothing but the copy.
func (e Try) Run() Tried {
	a := e.Attempt
	r := a.core.tryChange(a.core.snapshot, a.job, a.target)
	out := Tried{ID: e.ID, Refused: r.refused, Earliest: r.earliest, Behind: r.behind}
	if r.grown > 0 {
		out.Nodes = r.Profile[r.grown].Nodes
	}
	for _, step := range r.plan {
		out.Plan = append(out.Plan, PlannedStep{Start: step.start, End: step.end, Nodes: step.nodes, at: step.at})
	}
	return out
}

// try asks for an attempt at a call's change.
func (c *Core) try(k *call, j *job, t *target) {
	all := c.copied()
	own := *t
	own.job = t.job.copied()
	k.attempt = &Attempt{core: all, job: all.byID[j.id()], target: &own, snapshot: c.snapshot, was: *j, changed: c.tries.changed}
	k.target, k.attempts = t, k.attempts+1
	c.tries.underway = k.ID
	c.tries.last++
	if c.tries.of == nil {
		c.tries.of = map[uint32]attempted{}
	}
	c.tries.of[k.UID] = attempted{c.tries.last, c.tries.cycle}
	c.emit(Try{ID: k.ID, Attempt: k.attempt})
}

// takeTried takes over what came of an attempt.
func (c *Core) takeTried(in Tried) {
	if c.tries.underway == in.ID {
		c.tries.underway = 0
	}
	for _, k := range c.calling {
		if k.ID == in.ID && k.target != nil {
			k.tried = &in
		}
	}
}

// nextTries begins a cycle, in which each user may have an attempt. Those who had none lately
// are forgotten.
func (c *Core) nextTries() {
	c.tries.cycle++
	maps.DeleteFunc(c.tries.of, func(_ uint32, t attempted) bool { return t.cycle+1 < c.tries.cycle })
}

// isNext reports whether a change may be planned now.
func (c *Core) isNext(k *call) bool {
	if c.tries.underway != 0 {
		return false
	}
	last, had := c.tries.of[k.UID]
	return !had || last.cycle < c.tries.cycle || k.attempts > 0 || c.trusts(k.UID)
}

// trusts reports whether a user is root or an operator.
func (c *Core) trusts(uid uint32) bool {
	return uid == 0 || uid == c.slurmUser || c.cfg.Operators.Allows(uid)
}

// inTurn returns the calls in the order in which they are answered.
func (c *Core) inTurn() []*call {
	since := func(k *call) uint64 {
		if k.Change == nil || c.trusts(k.UID) {
			return 0
		}
		return c.tries.of[k.UID].number
	}
	all := slices.Clone(c.calling)
	slices.SortStableFunc(all, func(a, b *call) int { return cmp.Compare(since(a), since(b)) })
	return all
}

// tooMany returns why a change cannot wait beside its user's others; nil: it can.
func (c *Core) tooMany(in Call) error {
	if in.Change == nil || c.trusts(in.UID) {
		return nil
	}
	n := 0
	for _, k := range c.calling {
		if k.Change != nil && k.UID == in.UID {
			n++
		}
	}
	if n < mostWaiting {
		return nil
	}
	return api.Errorf(api.ErrUnavailable, "%d changes of yours wait, and each cycle plans one: try again", n)
}

// outdated reports whether what an attempt rests on has changed.
func (c *Core) outdated(a *Attempt, j *job) bool {
	was := &a.was
	return a.snapshot != c.snapshot || a.changed != c.tries.changed || was.Step != j.Step || was.State != j.State ||
		!was.touched.Equal(j.touched) || len(was.Changes) != len(j.Changes) || !slices.Equal(was.nodes(), j.nodes())
}

// result is a call's target with what came of planning it.
func (k *call) result() tried {
	r := tried{target: k.target, refused: k.tried.Refused, earliest: k.tried.Earliest}
	r.behind, r.plan = k.tried.Behind, nil
	if r.grown > 0 {
		r.Profile = slices.Clone(r.Profile)
		r.Profile[r.grown].Nodes = k.tried.Nodes
	}
	for _, step := range k.tried.Plan {
		r.plan = append(r.plan, plannedStep{start: step.Start, end: step.End, nodes: step.Nodes, at: step.at})
	}
	return r
}

// forget ends a call's attempt.
func (k *call) forget() { k.tried, k.attempt, k.target = nil, nil, nil }

// copied returns a copy of the core that shares nothing with it that changes: what happens to
// the one does not change the other. What no plan rests on is left out.
func (c *Core) copied() *Core {
	n := &Core{site: c.site, cfg: c.cfg, now: c.now, skew: c.skew, cluster: c.cluster, strategy: c.strategy, started: c.started, quiet: c.quiet, awake: c.awake, stepped: c.stepped,
		handling: &Handling{}}
	n.log.c = n
	n.snapshot = c.snapshot.copied()
	n.survey, n.surveyOf = nil, nil
	n.doubts = maps.Clone(c.doubts)
	n.suspect, n.leaks, n.leaked, n.parksIn = maps.Clone(c.suspect), maps.Clone(c.leaks), slices.Clone(c.leaked), maps.Clone(c.parksIn)
	n.power.since, n.power.asked, n.power.kept = maps.Clone(c.power.since), maps.Clone(c.power.asked), maps.Clone(c.power.kept)
	n.jobs = jobs{coming: maps.Clone(c.coming), scripts: maps.Clone(c.scripts), eventsOf: maps.Clone(c.eventsOf), aside: maps.Clone(c.aside), asked: maps.Clone(c.asked), unsaved: map[*job]bool{}}
	copies := make(map[*job]*job, len(c.active))
	for _, j := range c.active {
		copies[j] = j.copied()
		n.active = append(n.active, copies[j])
	}
	n.byID = make(map[slurmctl.JobID]*job, len(c.byID))
	for id, j := range c.byID {
		n.byID[id] = cmp.Or(copies[j], j)
	}
	n.holds = holds{reservations: maps.Clone(c.reservations), stuckHolds: maps.Clone(c.stuckHolds), heldSince: maps.Clone(c.heldSince), ours: slices.Clone(c.ours),
		holdNames: maps.Clone(c.holdNames), holdChanged: maps.Clone(c.holdChanged), unwilling: maps.Clone(c.unwilling), holdsOpen: c.holdsOpen, intruders: maps.Clone(c.intruders), delays: c.delays.copied()}
	n.pressing = c.pressing
	n.work = newWork()
	return n
}

// copied returns a copy of a snapshot, which remembers for itself what is found out from it.
func (s *snapshot) copied() *snapshot {
	n := *s
	n.reservations, n.inUse, n.holders, n.eligibles = maps.Clone(s.reservations), maps.Clone(s.inUse), maps.Clone(s.holders), maps.Clone(s.eligibles)
	return &n
}

// copied returns a copy of a job.
func (j *job) copied() *job {
	n, values := *j, *j.Job
	n.Job = &values
	values.Moldable, values.Malleable, values.Progress = copyOf(j.Moldable), copyOf(j.Malleable), copyOf(j.Progress)
	n.kept, n.unheld, n.undo = copyOf(j.kept), copyOf(j.unheld), nil
	n.shunned, n.refusedIn, n.refusedAs, n.marked, n.forbidden = maps.Clone(j.shunned), maps.Clone(j.refusedIn), maps.Clone(j.refusedAs), maps.Clone(j.marked), maps.Clone(j.forbidden)
	return &n
}

// copyOf returns a pointer to a copy.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	n := *p
	return &n
}
