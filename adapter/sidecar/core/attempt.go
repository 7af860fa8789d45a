package core

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Finding out whether a change is possible takes as long as planning all queued jobs. So the
// change is planned outside the core, on a copy of everything it depends on. The effect [Try]
// hands the copy to the shell, and [Tried] brings back the result. Steps continue meanwhile. If
// the job, any plan or the snapshot has changed by then, the change is planned again.
//
// The core plans one change at a time, and one per user in a cycle; the other changes wait. Root
// and operators go first, and as often as they want. After them goes the user with the longest
// time since the last change.

const (
	mostWaiting = 16 // waiting changes of a user; the caller of a further one must ask again
	mostTries   = 3  // how often a change is planned for one request
)

// Attempt is a change of a job to be planned on a copy of everything it depends on.
type Attempt interface {
	// Run plans the change. It changes only the copy.
	Run() Tried
}

// attempt is the core's [Attempt].
type attempt struct {
	core   *Core // a copy
	job    *job  // in the copy
	target *target

	snapshot *snapshot // the snapshot that was copied
	was      job       // the job before the attempt
	changed  uint64    // number of plan changes before the attempt
}

// Try asks the shell to run an attempt at a change, and to pass back [Tried] as an input.
type Try struct {
	ID      uint64 // of the call
	Attempt Attempt
}

func (Try) effect() {}

// Tried brings back the result of an attempt.
type Tried struct {
	ID       uint64
	Refused  string // why the change is not possible; "" if it is
	Earliest int64  // Unix second at which the next step could begin; 0 if never, as things are
	Nodes    int    // nodes of the step to which the job grows
	Behind   bool   // the job goes behind all other waiting jobs
	Plan     []PlannedStep
}

func (Tried) input() {}

// tries holds the attempts of users.
type tries struct {
	underway uint64               // the call being tried; 0 if none
	cycle    uint64               // number of the current cycle
	last     uint64               // number of the last attempt
	of       map[uint32]attempted // users that had an attempt
	changed  uint64               // how many plans have changed so far
}

// attempted identifies the last attempt of a user.
type attempted struct{ number, cycle uint64 }

// Run plans the change.
func (e Try) Run() Tried {
	out := e.Attempt.Run()
	out.ID = e.ID
	return out
}

// Run implements [Attempt].
func (a *attempt) Run() Tried {
	r := a.core.tryChange(a.core.snapshot, a.job, a.target)
	out := Tried{Refused: r.refused, Earliest: r.earliest, Behind: r.behind}
	if r.grown > 0 {
		out.Nodes = r.Profile[r.grown].Nodes
	}
	for _, step := range r.plan {
		out.Plan = append(out.Plan, PlannedStep{Start: step.start, End: step.end, Nodes: step.nodes, at: step.at})
	}
	return out
}

// try asks for an attempt at the change that a call requests.
func (c *Core) try(k *call, j *job, t *target) {
	all := c.copied()
	own := *t
	own.job = t.job.copied()
	k.attempt = &attempt{core: all, job: all.byID[j.id()], target: &own, snapshot: c.snapshot, was: *j, changed: c.tries.changed}
	k.target, k.attempts = t, k.attempts+1
	c.tries.underway = k.ID
	c.tries.last++
	if c.tries.of == nil {
		c.tries.of = map[uint32]attempted{}
	}
	c.tries.of[k.UID] = attempted{c.tries.last, c.tries.cycle}
	c.emit(Try{ID: k.ID, Attempt: k.attempt})
}

// takeTried takes over the result of an attempt.
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

// nextTries begins a cycle, in which each user may have one attempt. It deletes users without
// a recent attempt.
func (c *Core) nextTries() {
	c.tries.cycle++
	maps.DeleteFunc(c.tries.of, func(_ uint32, t attempted) bool { return t.cycle+1 < c.tries.cycle })
}

// isNext reports whether the change of a call may be planned now.
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

// inTurn returns the calls in the order in which the core answers them.
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

// tooMany returns why a change cannot wait beside its user's other changes, or nil if it can.
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

// outdated reports whether anything that the attempt of a call depends on has changed.
func (c *Core) outdated(k *call, j *job) bool {
	a, tried := k.attempt.(*attempt)
	if !tried {
		return true
	}
	was := &a.was
	return a.snapshot != c.snapshot || a.changed != c.tries.changed || was.Step != j.Step || was.State != j.State ||
		!was.touched.Equal(j.touched) || len(was.Changes) != len(j.Changes) || !slices.Equal(was.nodes(), j.nodes())
}

// result returns a call's target with the result of its attempt.
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

// forget deletes a call's attempt.
func (k *call) forget() { k.tried, k.attempt, k.target = nil, nil, nil }

// copied returns a copy of the core that shares no changing state with the original. The copy
// lacks everything that plans do not depend on.
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

// copied returns a copy of a snapshot, which stores separately what is computed from it.
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
