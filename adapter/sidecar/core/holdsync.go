package core

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// takeReservations takes over the reservations that a poll has shown, save where
// something was done since it began.
func (c *Core) takeReservations(s *snapshot) {
	seen := maps.Clone(s.reservations)
	for name, at := range c.holdChanged {
		if !at.After(s.taken) {
			delete(c.holdChanged, name)
			continue
		}
		if r, ok := c.reservations[name]; ok {
			seen[name] = r
		} else {
			delete(seen, name)
		}
	}
	c.takeStuckHolds(s, seen)
	c.reservations = seen
	for name := range c.unwilling {
		if _, ok := seen[name]; !ok {
			delete(c.unwilling, name)
		}
	}
	c.nameHolds()
}

// nameHolds finds out which reservation is whose hold.
func (c *Core) nameHolds() {
	clear(c.holdNames)
	c.ours = c.ours[:0]
	for name, r := range c.reservations {
		if own, ours := parseHold(r); ours {
			c.ours = append(c.ours, ownHold{name, own})
		}
	}
	slices.SortFunc(c.ours, func(a, b ownHold) int { return strings.Compare(a.name, b.name) })
	for _, h := range c.ours {
		if k := (holdKey{h.own.job, h.own.step}); c.holdNames[k] == "" {
			c.holdNames[k] = h.name
		}
	}
}

// ownHold is a reservation's name, read.
type ownHold struct {
	name string
	own  ownName
}

// setHold is called when a hold was made or changed.
func (c *Core) setHold(r slurmctl.Reservation) {
	c.reservations[r.Name], c.holdChanged[r.Name] = r, c.now
	c.nameHolds()
}

// forgetHold is called when a hold was given up.
func (c *Core) forgetHold(name string) {
	c.holdChanged[name] = c.now
	delete(c.reservations, name)
	delete(c.heldSince, name)
	delete(c.unwilling, name)
	c.nameHolds()
}

// syncHolds makes Slurm's reservations those that the plan needs, the most urgent
// first. A node that changes hands is held all the time: what is not needed any more is
// kept while something that is soon to hold one of its nodes is not in place.
func (c *Core) syncHolds(s *snapshot) {
	now := c.now.Unix()
	wanted := c.wantedHolds(now)
	needed := make(map[holdKey]hold, len(wanted))
	for _, h := range wanted {
		needed[holdKey{h.job.id(), h.step}] = h
	}
	existing := map[holdKey]string{}
	var surplus []string
	for _, h := range c.ours {
		name, own := h.name, h.own
		k := holdKey{own.job, own.step}
		if j := c.byID[own.job]; j != nil && j.busy {
			existing[k] = "" // an action may be using it; look again when it is over
			continue
		}
		if c.isComing(own.job) {
			existing[k] = "" // its job is about to be adopted again, and the hold tells in which step it is
			continue
		}
		h, want := needed[k]
		if _, twice := existing[k]; !want || twice || c.unwilling[name] || c.stale(c.reservations[name], h, now) {
			surplus = append(surplus, name)
			continue
		}
		existing[k] = name
	}
	missing := map[slurmctl.JobID]set{} // nodes of holds that are to be made, by job
	for _, h := range wanted {
		if id := h.job.id(); existing[holdKey{id, h.step}] == "" && !h.far(now) {
			if missing[id] == nil {
				missing[id] = set{}
			}
			missing[id].add(h.nodes)
		}
	}
	exact := c.stockWaits(s)
	open := set{} // nodes of holds that are soon to be in place and are not
	for _, h := range wanted {
		name, exists := existing[holdKey{h.job.id(), h.step}]
		r, u, change := adjusted(c.reservations[name], h, now, exact)
		if exists && (name == "" || !change) {
			continue
		}
		if !h.far(now) {
			open.add(h.nodes)
		}
		switch {
		case h.job.busy || h.job.holdRetry.After(c.now):
		case exists && u.Nodes != nil && missing[h.job.id()].any(Without(c.reservations[name].Nodes, h.nodes)):
			// its steps have other numbers: what it lets go is held by another one first
		case exists:
			c.adjustHold(r, u, h, now)
		default:
			c.createHold(h)
		}
	}
	for _, name := range surplus {
		if !open.any(c.reservations[name].Nodes) {
			c.deleteHold(s, name)
		}
	}
}

// changeHold asks for a change of a hold, which is r then, if there is room and, for what is far away,
// allowance: else it reports false.
func (c *Core) changeHold(h hold, now int64, kind Kind, do Command, r slurmctl.Reservation) bool {
	args := Args{Hold: &r}
	if h.far(now) && !c.keepsFreed(do) {
		return c.chore(&c.pace.farHolds, h.job, kind, do, args)
	}
	task := Task{Command: do}
	if h.start > now+int64(soon/time.Second) {
		task = c.gently(do)
	}
	return c.work.roomForHolds() && c.ask(h.job, "", kind, task, args)
}

// holdWaits reports whether a hold was not changed since slurmctld would have let that wait.
func (c *Core) holdWaits(j *job, err error) bool {
	if !errors.Is(err, ErrBackfilling) {
		return false
	}
	j.holdRetry = c.now.Add(time.Second)
	return true
}

// keepsFreed reports whether a change takes a hold off nodes for which promises gave way: until then
// Slurm does not start the stock job that should have these.
func (c *Core) keepsFreed(do Command) bool {
	change, ok := do.(ChangeHold)
	if !ok || change.Change.Nodes == nil {
		return false
	}
	for _, h := range c.delays.jobs {
		if h.keepsNodes(c.now) && h.isFreed(c.now) && len(common(h.nodes, c.reservations[change.Name].Nodes)) > 0 {
			return true
		}
	}
	return false
}

// soon is how far ahead of its time a hold is made even if it has to wait.
const soon = 8 * time.Second

// stockWaits reports whether jobs that are not ours wait for nodes. One that is planned to end right
// at a hold is not started by Slurm while the hold begins any sooner; and where the hold's job waits
// for that one in turn, both would wait for ever.
func (c *Core) stockWaits(s *snapshot) bool {
	return slices.ContainsFunc(s.jobs, func(r slurmctl.Job) bool {
		return r.State == slurmctl.Pending && c.byID[r.ID] == nil && queues(&r)
	})
}

// adjusted is a reservation as it should be for a hold, and what is to change of it. That of a job
// that has not begun may be wanted exactly at its time, as far as plans leave time for stock jobs.
func adjusted(r slurmctl.Reservation, h hold, now int64, exact bool) (slurmctl.Reservation, slurmctl.ReservationUpdate, bool) {
	var u slurmctl.ReservationUpdate
	start, end := r.Start.Unix(), r.End.Unix()
	early := max(earlier, int64(slack(time.Duration(h.start-now)*time.Second)/time.Second))
	sooner := early // by so much it may begin before its time
	if exact && !h.job.runs() {
		sooner = min(early, untilLook/2)
	}
	switch want := max(h.start, now); {
	case start > now && want <= now:
		u.StartNow = true
		r.Start = time.Unix(now, 0)
	case start > want || start < h.start-sooner && start > now:
		u.Start = time.Unix(want, 0)
		r.Start = u.Start
	}
	if end < h.end-earlier || end > h.end+60+2*early {
		u.End = time.Unix(h.end+early, 0)
		r.End = u.End
	}
	moved := !sameSet(r.Nodes, h.nodes)
	if moved {
		u.Nodes, r.Nodes = h.nodes, h.nodes
	}
	closed := !sameSet(r.Users, h.users) // it was opened for an expander that did not come
	if closed {
		u.Users, r.Users = h.users, h.users
	}
	return r, u, moved || closed || u.StartNow || !u.Start.IsZero() || !u.End.IsZero()
}

// adjustHold changes a reservation to be r.
func (c *Core) adjustHold(r slurmctl.Reservation, u slurmctl.ReservationUpdate, h hold, now int64) {
	c.changeHold(h, now, KindAdjustHold, ChangeHold{r.Name, u}, r)
}

// settleAdjustHold is called when a hold was changed. If Slurm refused, another one takes its place.
func (c *Core) settleAdjustHold(j *job, p *Pending, o Outcome) {
	u := commandOf[ChangeHold](p).Change
	if p.Args.Hold == nil || c.holdWaits(j, o.Err) || o.Err != nil && u.Users != nil && c.cannotClose(o.Err) {
		return
	}
	r := *p.Args.Hold
	if o.Err != nil {
		c.logJob(j).WithError(o.Err).Warn("a hold could not be changed; it is made anew")
		c.unwilling[r.Name] = true
		return
	}
	if u.Nodes != nil {
		c.heldSince[r.Name] = c.now
	}
	c.setHold(r)
}

func (c *Core) createHold(h hold) {
	now := c.now.Unix()
	start := time.Unix(max(h.start, now), 0)
	request := slurmctl.ReservationRequest{Start: start, End: time.Unix(h.end, 0), Nodes: h.nodes, Users: h.users, Flags: h.flags()}
	if h.start <= now {
		request.Start = time.Time{} // now: Slurm's own clock decides
	}
	request.Name = ownName{h.job.id(), h.step, h.job.attempt + 1}.String()
	r := slurmctl.Reservation{Name: request.Name, Start: start, End: request.End, Nodes: h.nodes, Users: h.users, Flags: request.Flags}
	if c.changeHold(h, now, KindCreateHold, Reserve{request}, r) {
		h.job.attempt++
	}
}

// settleCreateHold is called when a hold was made, or was not.
func (c *Core) settleCreateHold(j *job, p *Pending, o Outcome) {
	if p.Args.Hold == nil || c.holdWaits(j, o.Err) {
		return
	}
	r := *p.Args.Hold
	if o.Err != nil {
		own, _ := parseHoldName(r.Name)
		if h := (hold{job: j, step: own.step}); !h.toStartIn() && c.cannotClose(o.Err) {
			return // the next one is open
		}
		j.holdRetry = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("nodes of a coming step could not be held")
		return
	}
	c.heldSince[r.Name] = c.now
	c.setHold(r)
	c.logJob(j).WithField("hold", r.Name).WithField("nodes", slurmctl.CompressNodes(r.Nodes)).Debug("nodes held")
}

// cannotClose reports whether a hold was refused since Slurm takes nobody for its user. That is
// so where it wants associations (AccountingStorageEnforce) and the site has deleted root's.
// Holds are then open to the jobs' users, and who enters them is seen (intruders.go).
func (c *Core) cannotClose(err error) bool {
	if c.holdsOpen || !errors.Is(err, slurmctl.ErrInvalidAccount) {
		return false
	}
	c.holdsOpen = true
	c.log.WithError(err).Warn("holds of growths cannot be closed to the jobs' users: Slurm knows no association of root (sacctmgr add user root account=root)")
	return true
}

// deleteHold gives a hold up. Slurm deletes no reservation that jobs refer to:
// pending ones are taken out of it, running ones must be detached before.
func (c *Core) deleteHold(s *snapshot, name string) {
	own, _ := parseHoldName(name)
	owner := c.byID[own.job]
	if !c.work.roomForHolds() || owner != nil && (owner.busy || owner.holdRetry.After(c.now)) {
		return
	}
	var out []TakenOut
	for i := range s.jobs {
		r := &s.jobs[i]
		if j := c.owner(r.ID); j != nil && j.record.ID == r.ID {
			r = &j.record // knows of what was done since the snapshot
		}
		if !refersTo(r, name) {
			continue
		}
		if r.State != slurmctl.Pending || c.isExpander(r) {
			return
		}
		out = append(out, TakenOut{r.ID, otherReservations(r, name)})
	}
	c.ask(owner, name, KindDeleteHold, Task{Command: GiveUpHold{name, out}}, Args{Seen: s.taken})
}

// settleDeleteHold is called when a hold was given up, or was not.
func (c *Core) settleDeleteHold(j *job, p *Pending, o Outcome) {
	do := commandOf[GiveUpHold](p)
	if o.Err != nil {
		if j != nil {
			j.holdRetry = c.now.Add(againAfter)
		}
		c.log.WithError(o.Err).WithField("hold", do.Name).Warn("a hold could not be given up")
		return
	}
	for _, out := range do.TakeOut {
		if other := c.owner(out.Job); other != nil && other.record.ID == out.Job {
			other.record.Reservation = out.Rest
		} else {
			c.recordOf(j, p, out.Job).Reservation = out.Rest
		}
	}
	c.forgetHold(do.Name)
}
