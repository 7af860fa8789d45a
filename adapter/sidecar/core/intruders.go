package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A hold is a reservation, and a user who may use a reservation may run any job in it. So a hold to grow in
// stays closed until the sidecar submits its expander. A hold to start in cannot be closed: the user of the
// job that starts there may send other jobs there, past the queue. The sidecar sees such jobs in the next
// cycle. It sends a pending job back to the queue. It takes a running job out of the hold, so that Slurm does
// not end the job when the hold ends. That job keeps its nodes until its own end, and the sidecar plans other
// nodes for the owner of the hold.

// intrusion describes a job in a hold of another job.
type intrusion struct {
	job  *job // owner of the hold, nil if it is not known any more
	step int  // of the hold
	text string
}

// refersTo reports whether a Slurm job asks for a reservation, perhaps among others.
func refersTo(r *slurmctl.Job, name string) bool {
	for other := range strings.SplitSeq(r.Reservation, ",") {
		if other == name {
			return true
		}
	}
	return false
}

// otherReservations returns the reservations that a Slurm job asks for, except one.
func otherReservations(r *slurmctl.Job, name string) string {
	var rest []string
	for other := range strings.SplitSeq(r.Reservation, ",") {
		if other != name {
			rest = append(rest, other)
		}
	}
	return strings.Join(rest, ",")
}

// holdNamed does what parseHold does, for a name that a job refers to.
func (c *Core) holdNamed(name string) (ownName, bool) {
	if r, known := c.reservations[name]; known {
		return parseHold(r)
	}
	return parseHoldName(name)
}

// watchIntruders removes jobs from holds of other jobs.
func (c *Core) watchIntruders(s *snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.intruders)) {
		r, in := s.byID[id], c.intruders[id]
		if in.job != nil {
			in.job.note = ""
		}
		if r == nil || r.Ended() || r.State == slurmctl.Completing || in.job != nil && (in.job.State == row.Ended || in.job.Step >= in.step) {
			delete(c.intruders, id)
		}
	}
	c.sendIntruders(s)
	for _, id := range slices.Sorted(maps.Keys(c.intruders)) {
		if in := c.intruders[id]; in.job != nil {
			in.job.note = in.text
		}
	}
}

// sendIntruders sends every job away from a hold that is not for it.
func (c *Core) sendIntruders(s *snapshot) {
	for i := range s.jobs {
		r := &s.jobs[i]
		if r.Reservation == "" || r.Ended() || r.State == slurmctl.Completing {
			continue
		}
		for name := range strings.SplitSeq(r.Reservation, ",") {
			if own, ours := c.holdNamed(name); ours && !c.isFor(own, r) {
				c.sendAway(s, r, name, own)
				break // the other reservations follow in the next cycle
			}
		}
	}
}

// isFor reports whether a hold is for a Slurm job, as far as the core knows. If a job refers to the wrong one
// of several holds, mirror and act correct that.
func (c *Core) isFor(own ownName, r *slurmctl.Job) bool {
	if c.owner(r.ID) != nil && !c.isExpander(r) {
		return true
	}
	j := c.byID[own.job]
	if c.isExpander(r) {
		name, _ := parseHoldName(r.Name)
		return name.job == own.job && (j == nil || c.mayBring(r, j))
	}
	if j != nil {
		return false
	}
	_, marked, err := c.mark(r) // it may not be adopted yet
	return marked || err != nil || r.ID == own.job
}

// sendAway takes a Slurm job out of a hold that is not for it.
func (c *Core) sendAway(s *snapshot, r *slurmctl.Job, name string, own ownName) {
	j, rest, runs := c.byID[own.job], otherReservations(r, name), r.State != slurmctl.Pending
	if _, known := c.intruders[r.ID]; !known {
		in := intrusion{job: j, step: own.step, text: fmt.Sprintf("job %d of %s was sent into nodes held for it (%s)", r.ID, r.User, name)}
		if runs {
			in.text = fmt.Sprintf("job %d of %s was sent into nodes held for it and runs on %s: others are looked for",
				r.ID, r.User, slurmctl.CompressNodes(r.NodeList))
		}
		c.intruders[r.ID] = in
		c.event(j, "intruder", map[string]any{"slurm_id": r.ID, "user": r.User, "hold": name, "state": r.State, "nodes": slurmctl.CompressNodes(r.NodeList)})
		c.log.WithField("job", own.job).WithField("hold", name).WithField("intruder", r.ID).WithField("user", r.User).WithField("state", r.State).
			Warn("a job is in a hold that is for another one; it is taken out of it")
	}
	if !c.work.room() {
		return // in the next cycle
	}
	c.ask(nil, fmt.Sprint("send away ", r.ID), KindSendAway, Task{Command: Update{Job: r.ID, Change: slurmctl.JobUpdate{Reservation: &rest}}}, Args{Seen: s.taken})
	if runs && j != nil && own.step == 1 && j.State == row.Starting && !j.busy && !j.touched.After(s.taken) {
		c.takeBack(j, j.record.ID, c.intruders[r.ID].text, KindEvict, Args{State: row.Queued})
	}
}

// settleSendAway is called when an intruder was taken out of a hold, or when that failed.
func (c *Core) settleSendAway(j *job, p *Pending, o Outcome) {
	do := commandOf[Update](p)
	if o.Err != nil {
		c.log.WithError(o.Err).WithField("intruder", do.Job).Warn("cannot take a job out of another job's hold")
	} else if do.Change.Reservation != nil {
		c.recordOf(j, p, do.Job).Reservation = *do.Change.Reservation
	}
}

// settleEvict is called when a job was parked because an intruder has its nodes. The job is planned again at
// once.
func (c *Core) settleEvict(j *job, p *Pending, o Outcome) {
	if c.tookBack(j, p, o) {
		j.kept = &keptBack{text: p.Task.Intent.Detail}
	}
}
