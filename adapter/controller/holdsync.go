package controller

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// takeReservations takes over the reservations that a look has shown, save where
// something was done since it began.
func (c *Controller) takeReservations(s *snapshot) {
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
	c.reservations = seen
	for name := range c.unwilling {
		if _, ok := seen[name]; !ok {
			delete(c.unwilling, name)
		}
	}
	c.nameHolds()
}

// nameHolds finds out which reservation is whose hold.
func (c *Controller) nameHolds() {
	clear(c.holdNames)
	for _, name := range sortedKeys(c.reservations) {
		if own, ours := parseHold(c.reservations[name]); ours {
			if k := (holdKey{own.job, own.step}); c.holdNames[k] == "" {
				c.holdNames[k] = name
			}
		}
	}
}

// setHold is called when a hold was made or changed.
func (c *Controller) setHold(r slurmctl.Reservation) {
	c.reservations[r.Name], c.holdChanged[r.Name] = r, time.Now()
	c.nameHolds()
}

// forgetHold is called when a hold was given up.
func (c *Controller) forgetHold(name string) {
	c.holdChanged[name] = time.Now()
	delete(c.reservations, name)
	delete(c.heldSince, name)
	delete(c.unwilling, name)
	c.nameHolds()
}

// syncHolds makes Slurm's reservations those that the plan needs, the most urgent
// first. A node that changes hands is held all the time: what is not needed any more is
// kept while something that is soon to hold one of its nodes is not in place.
func (c *Controller) syncHolds(s *snapshot) {
	now := time.Now().Unix()
	wanted := c.wantedHolds(now)
	needed := make(map[holdKey]hold, len(wanted))
	for _, h := range wanted {
		needed[holdKey{h.job.id(), h.step}] = h
	}
	existing := map[holdKey]string{}
	var surplus []string
	for _, name := range sortedKeys(c.reservations) {
		own, ours := parseHold(c.reservations[name])
		if !ours {
			continue
		}
		k := holdKey{own.job, own.step}
		if j := c.byID[own.job]; j != nil && j.busy {
			existing[k] = "" // an action may be using it; look again when it is over
			continue
		}
		h, want := needed[k]
		if _, twice := existing[k]; !want || twice || c.unwilling[name] || c.stale(c.reservations[name], h, now) {
			surplus = append(surplus, name)
			continue
		}
		existing[k] = name
	}
	open := set{} // nodes of holds that are soon to be in place and are not
	for _, h := range wanted {
		name, exists := existing[holdKey{h.job.id(), h.step}]
		r, u, change := adjusted(c.reservations[name], h, now)
		if exists && (name == "" || !change) {
			continue
		}
		if !h.far(now) {
			open.add(h.nodes)
		}
		switch {
		case h.job.busy || h.job.holdRetry.After(time.Now()):
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

// changeHold begins a change of a hold beside the loop, if there is room and, for what
// is far away, allowance: else it says false.
func (c *Controller) changeHold(h hold, now int64, run func(context.Context) error, result func(error)) bool {
	if h.far(now) {
		return c.chore(&c.pace.farHolds, h.job, run, result)
	}
	if h.start > now+int64(soon/time.Second) {
		run = c.gently(run)
	}
	return c.work.roomForHolds() && c.beside(h.job, "", run, func(err error) {
		if errors.Is(err, errBackfilling) {
			h.job.holdRetry = time.Now().Add(time.Second)
			return
		}
		result(err)
	})
}

// soon is how far ahead of its time a hold is made even if it has to wait.
const soon = 8 * time.Second

// adjusted is a reservation as it should be for a hold, and what is to change of it.
func adjusted(r slurmctl.Reservation, h hold, now int64) (slurmctl.Reservation, slurmctl.ReservationUpdate, bool) {
	var u slurmctl.ReservationUpdate
	start, end := r.Start.Unix(), r.End.Unix()
	early := max(earlier, int64(slack(time.Duration(h.start-now)*time.Second)/time.Second))
	switch want := max(h.start, now); {
	case start > now && want <= now:
		u.StartNow = true
		r.Start = time.Unix(now, 0)
	case start > want || start < h.start-early && start > now:
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

// adjustHold changes a reservation to be r. One that Slurm refuses to change is made
// anew.
func (c *Controller) adjustHold(r slurmctl.Reservation, u slurmctl.ReservationUpdate, h hold, now int64) {
	c.changeHold(h, now, func(ctx context.Context) error { return c.slurm.UpdateReservation(ctx, r.Name, u) }, func(err error) {
		if err != nil && u.Users != nil && c.cannotClose(err) {
			return
		}
		if err != nil {
			c.logJob(h.job).WithError(err).Warn("a hold could not be changed; it is made anew")
			c.unwilling[r.Name] = true
			return
		}
		if u.Nodes != nil {
			c.heldSince[r.Name] = time.Now()
		}
		c.setHold(r)
	})
}

func (c *Controller) createHold(h hold) {
	now := time.Now().Unix()
	start := time.Unix(max(h.start, now), 0)
	request := slurmctl.ReservationRequest{Start: start, End: time.Unix(h.end, 0), Nodes: h.nodes, Users: h.users, Flags: h.flags()}
	if h.start <= now {
		request.Start = time.Time{} // now: Slurm's own clock decides
	}
	request.Name = ownName{h.job.id(), h.step, h.job.attempt + 1}.String()
	if c.changeHold(h, now, func(ctx context.Context) error { return c.slurm.CreateReservation(ctx, request) }, func(err error) {
		if err != nil {
			if !h.toStartIn() && c.cannotClose(err) {
				return // the next one is open
			}
			h.job.holdRetry = time.Now().Add(againAfter)
			c.logJob(h.job).WithError(err).Warn("nodes of a coming step could not be held")
			return
		}
		c.heldSince[request.Name] = time.Now()
		c.setHold(slurmctl.Reservation{Name: request.Name, Start: start, End: request.End, Nodes: h.nodes, Users: h.users, Flags: h.flags()})
		c.logJob(h.job).WithField("hold", request.Name).WithField("nodes", slurmctl.CompressNodes(h.nodes)).Debug("nodes held")
	}) {
		h.job.attempt++
	}
}

// cannotClose says whether a hold was refused since Slurm takes nobody for its user. That is
// so where it wants associations (AccountingStorageEnforce) and the site has deleted root's.
// Holds are then open to the jobs' users, and who enters them is seen (intruders.go).
func (c *Controller) cannotClose(err error) bool {
	if c.holdsOpen || !errors.Is(err, slurmctl.ErrInvalidAccount) {
		return false
	}
	c.holdsOpen = true
	c.log.WithError(err).Warn("holds of growths cannot be closed to the jobs' users: Slurm knows no association of root (sacctmgr add user root account=root)")
	return true
}

// deleteHold gives a hold up. Slurm deletes no reservation that jobs refer to:
// pending ones are taken out of it, running ones must be detached before.
func (c *Controller) deleteHold(s *snapshot, name string) {
	own, _ := parseHoldName(name)
	owner := c.byID[own.job]
	if !c.work.roomForHolds() || owner != nil && (owner.busy || owner.holdRetry.After(time.Now())) {
		return
	}
	var inside []*slurmctl.Job
	rest := map[slurmctl.JobID]string{}
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
		inside = append(inside, r)
		rest[r.ID] = otherReservations(r, name)
	}
	c.beside(owner, name, func(ctx context.Context) error {
		for id, others := range rest {
			if err := c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{Reservation: &others}); err != nil {
				return err
			}
		}
		return ignoreUnknown(c.slurm.DeleteReservation(ctx, name))
	}, func(err error) {
		if err != nil {
			if owner != nil {
				owner.holdRetry = time.Now().Add(againAfter)
			}
			c.log.WithError(err).WithField("hold", name).Warn("a hold could not be given up")
			return
		}
		for _, r := range inside {
			r.Reservation = rest[r.ID]
		}
		c.forgetHold(name)
	})
}
