package core

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// takeReservations takes over the reservations of a poll, except holds that were changed since the
// poll began.
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

// nameHolds finds out which job and step each hold belongs to.
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

// ownHold holds the name of one of our reservations, and its parsed form.
type ownHold struct {
	name string
	own  ownName
}

// setHold records that a hold was created or changed.
func (c *Core) setHold(r slurmctl.Reservation) {
	c.reservations[r.Name], c.holdChanged[r.Name] = r, c.now
	c.nameHolds()
}

// forgetHold records that a hold was given up.
func (c *Core) forgetHold(name string) {
	c.holdChanged[name] = c.now
	delete(c.reservations, name)
	delete(c.heldSince, name)
	delete(c.unwilling, name)
	c.nameHolds()
}

// syncHolds creates, changes and deletes reservations in Slurm to match the plan, the most urgent
// first. A node that changes hands stays held all the time: the sidecar keeps a surplus hold while
// a hold that soon needs one of its nodes is not in place.
func (c *Core) syncHolds(s *snapshot) {
	now := c.now.Unix()
	wanted := c.wantedHolds(now)
	needed := make(map[holdKey]hold, len(wanted))
	for _, h := range wanted {
		needed[holdKey{h.job.id(), h.step}] = h
	}
	existing, surplus := c.matchHolds(needed, now)
	open := c.changeHolds(wanted, existing, now, c.stockWaits(s))
	for _, name := range surplus {
		if !open.any(c.reservations[name].Nodes) {
			c.deleteHold(s, name)
		}
	}
}

// matchHolds returns the names of the holds that exist for the needed ones, and the names of the surplus
// holds. The name is "" for a hold that must stay as it is at present.
func (c *Core) matchHolds(needed map[holdKey]hold, now int64) (existing map[holdKey]string, surplus []string) {
	existing = map[holdKey]string{}
	for _, h := range c.ours {
		name, own := h.name, h.own
		k := holdKey{own.job, own.step}
		if j := c.byID[own.job]; j != nil && j.busy {
			existing[k] = "" // an action may be using it; look again after the action
			continue
		}
		if c.isComing(own.job) {
			existing[k] = "" // its job will soon be adopted again, and the hold shows which step it is in
			continue
		}
		h, want := needed[k]
		if _, twice := existing[k]; !want || twice || c.unwilling[name] || c.stale(c.reservations[name], h, now) {
			surplus = append(surplus, name)
			continue
		}
		existing[k] = name
	}
	return existing, surplus
}

// changeHolds creates and changes holds. It returns the nodes of holds that must soon be in place and are not.
// See adjusted for exact.
func (c *Core) changeHolds(wanted []hold, existing map[holdKey]string, now int64, exact bool) (open set) {
	missing := missingNodes(wanted, existing, now)
	open = set{}
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
			// its steps were renumbered: another hold must take over the released nodes first
		case exists:
			c.adjustHold(r, u, h, now)
		default:
			c.createHold(h)
		}
	}
	return open
}

// missingNodes returns the nodes of holds to create soon, by job.
func missingNodes(wanted []hold, existing map[holdKey]string, now int64) map[slurmctl.JobID]set {
	missing := map[slurmctl.JobID]set{}
	for _, h := range wanted {
		if id := h.job.id(); existing[holdKey{id, h.step}] == "" && !h.far(now) {
			if missing[id] == nil {
				missing[id] = set{}
			}
			missing[id].add(h.nodes)
		}
	}
	return missing
}

// changeHold asks for a change of a hold, after which the hold is r. It returns false if there is no
// room, or if the hold is far away and the allowance for such holds is used up.
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

// holdWaits reports whether a change of a hold was postponed because slurmctld would have delayed it.
func (c *Core) holdWaits(j *job, err error) bool {
	if !errors.Is(err, ErrBackfilling) {
		return false
	}
	j.holdRetry = c.now.Add(time.Second)
	return true
}

// keepsFreed reports whether a change removes a hold from nodes for which promises gave way. Until
// that change, Slurm does not start the stock job that should get the nodes.
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

// soon is how far ahead of its time a hold is changed even if the change must wait.
const soon = 8 * time.Second

// stockWaits reports whether jobs that are not ours wait for nodes. If a job is planned to end exactly
// at a hold, Slurm does not start it while the hold begins any earlier. If the hold's job in turn
// waits for that job, both would wait forever.
func (c *Core) stockWaits(s *snapshot) bool {
	return slices.ContainsFunc(s.jobs, func(r slurmctl.Job) bool {
		return r.State == slurmctl.Pending && c.byID[r.ID] == nil && queues(&r)
	})
}

// adjusted returns a reservation as it should be for a hold, and the change that it needs. With exact,
// the hold of a job that does not run yet may begin only a little before its time (untilLook).
func adjusted(r slurmctl.Reservation, h hold, now int64, exact bool) (slurmctl.Reservation, slurmctl.ReservationUpdate, bool) {
	var u slurmctl.ReservationUpdate
	start, end := r.Start.Unix(), r.End.Unix()
	early := max(earlier, int64(slack(time.Duration(h.start-now)*time.Second)/time.Second))
	sooner := early // how much before its time it may begin
	if exact && !h.job.runs() {
		sooner = min(early, untilLook/2)
	}
	change := false
	switch want := max(h.start, now); {
	case start > now && want <= now:
		u.StartNow, change = true, true
		r.Start = time.Unix(now, 0)
	case start > want || start < h.start-sooner && start > now:
		u.Start, change = time.Unix(want, 0), true
		r.Start = u.Start
	}
	if end < h.end-earlier || end > h.end+60+2*early {
		u.End, change = time.Unix(h.end+early, 0), true
		r.End = u.End
	}
	if !sameSet(r.Nodes, h.nodes) {
		u.Nodes, r.Nodes, change = h.nodes, h.nodes, true
	}
	if !sameSet(r.Users, h.users) { // it was opened for an expander that did not come
		u.Users, r.Users, change = h.users, h.users, true
	}
	return r, u, change
}

// adjustHold changes a reservation so that it becomes r.
func (c *Core) adjustHold(r slurmctl.Reservation, u slurmctl.ReservationUpdate, h hold, now int64) {
	c.changeHold(h, now, KindAdjustHold, ChangeHold{r.Name, u}, r)
}

// settleAdjustHold handles the outcome of changing a hold. If Slurm refused, the hold will be recreated.
func (c *Core) settleAdjustHold(j *job, p *Pending, o Outcome) {
	u := commandOf[ChangeHold](p).Change
	if p.Args.Hold == nil || c.holdWaits(j, o.Err) || o.Err != nil && u.Users != nil && c.cannotClose(o.Err) {
		return
	}
	r := *p.Args.Hold
	if o.Err != nil {
		c.logJob(j).WithError(o.Err).Warn("cannot change hold, recreating it")
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
		request.Start = time.Time{} // now, by Slurm's own clock
	}
	request.Name = ownName{h.job.id(), h.step, h.job.attempt + 1}.String()
	r := slurmctl.Reservation{Name: request.Name, Start: start, End: request.End, Nodes: h.nodes, Users: h.users, Flags: request.Flags}
	if c.changeHold(h, now, KindCreateHold, Reserve{request}, r) {
		h.job.attempt++
	}
}

// settleCreateHold handles the outcome of creating a hold.
func (c *Core) settleCreateHold(j *job, p *Pending, o Outcome) {
	if p.Args.Hold == nil || c.holdWaits(j, o.Err) {
		return
	}
	r := *p.Args.Hold
	if o.Err != nil {
		own, _ := parseHoldName(r.Name)
		if h := (hold{job: j, step: own.step}); !h.toStartIn() && c.cannotClose(o.Err) {
			return // the next attempt creates an open hold
		}
		j.holdRetry = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("cannot hold nodes of a coming step")
		return
	}
	c.heldSince[r.Name] = c.now
	c.setHold(r)
	c.logJob(j).WithField("hold", r.Name).WithField("nodes", slurmctl.CompressNodes(r.Nodes)).Debug("nodes held")
}

// cannotClose reports whether Slurm refused a hold because it does not accept `nobody` as its user. That
// happens if Slurm requires associations (AccountingStorageEnforce) and the site deleted root's. Then
// holds are open to the jobs' users, and the sidecar detects jobs that enter them (intruders.go).
func (c *Core) cannotClose(err error) bool {
	if c.holdsOpen || !errors.Is(err, slurmctl.ErrInvalidAccount) {
		return false
	}
	c.holdsOpen = true
	c.log.WithError(err).Warn("holds of growths cannot be closed to the jobs' users: Slurm knows no association of root (sacctmgr add user root account=root)")
	return true
}

// deleteHold gives a hold up. Slurm deletes no reservation that jobs refer to. The command first moves pending
// jobs out of the reservation. Running jobs must be detached before.
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
			r = &j.record // includes changes made since the snapshot
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

// settleDeleteHold handles the outcome of giving up a hold.
func (c *Core) settleDeleteHold(j *job, p *Pending, o Outcome) {
	do := commandOf[GiveUpHold](p)
	if o.Err != nil {
		if j != nil {
			j.holdRetry = c.now.Add(againAfter)
		}
		c.log.WithError(o.Err).WithField("hold", do.Name).Warn("cannot give up a hold")
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
