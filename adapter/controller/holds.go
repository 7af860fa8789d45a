package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// hold is a reservation for the nodes that a job is given at the start of a step.
type hold struct {
	job   *job
	step  int // 1-based
	nodes []string
	start int64 // Unix seconds
	end   int64
}

// holdFlags: our own node mapping has chosen the nodes, with the jobs in view that
// run there now (IGNORE_JOBS) and with all other holds. A node is held for one job
// after another, and a job's time limit reaches beyond the time at which the plan
// has it give a node back: with OVERLAP Slurm lets holds share nodes, and starts a
// job in its own hold in spite of others' later ones. Administrators' reservations
// are not in their way. A job that waits for a hold is not to be held when it ends.
var holdFlags = []string{"IGNORE_JOBS", "OVERLAP", "NO_HOLD_JOBS_AFTER_END"}

// Names of holds and expanders carry job, step and attempt, so that what is left
// of a crashed sidecar can be found again.
var namePattern = regexp.MustCompile(`^evo_([0-9]+)_([0-9]+)_([0-9]+)$`)

type ownName struct {
	job     slurmctl.JobID
	step    int
	attempt int
}

func (n ownName) String() string { return fmt.Sprintf("evo_%d_%d_%d", n.job, n.step, n.attempt) }

func parseHoldName(name string) (ownName, bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil {
		return ownName{}, false
	}
	id, err1 := strconv.ParseUint(m[1], 10, 32)
	step, err2 := strconv.Atoi(m[2])
	attempt, err3 := strconv.Atoi(m[3])
	if errors.Join(err1, err2, err3) != nil {
		return ownName{}, false
	}
	return ownName{slurmctl.JobID(id), step, attempt}, true
}

// wantedHolds lists the holds that the plan needs: all coming growths of jobs that
// have begun, however far away they are (nodes that are not held are given to
// others), and starts and growths of the queued jobs whose start is near.
func (c *Controller) wantedHolds(now int64) []hold {
	var all []hold
	ahead := now + int64(c.cfg.HoldAhead/time.Second)
	for _, j := range c.active {
		switch {
		case j.runs(), j.State == store.Starting, j.State == store.Queued && len(j.plan) > 0 && j.plan[0].start <= ahead:
			all = append(all, c.holdsOf(j, now)...)
		}
	}
	// the most urgent first, promises of running jobs before all
	slices.SortStableFunc(all, func(a, b hold) int {
		if a.job.runs() != b.job.runs() {
			if a.job.runs() {
				return -1
			}
			return 1
		}
		return int(a.start - b.start)
	})
	if len(all) > c.cfg.MaxHolds {
		all = c.wholeJobs(all)
	}
	return all
}

// wholeJobs cuts the list of holds at the site's bound: queued jobs are left out
// as a whole, since one must not start with a part of its growths held. What is
// promised to running jobs stays.
func (c *Controller) wholeJobs(all []hold) []hold {
	count := map[*job]int{}
	for _, h := range all {
		count[h.job]++
	}
	taken, room := map[*job]bool{}, c.cfg.MaxHolds
	return slices.DeleteFunc(all, func(h hold) bool {
		if in, seen := taken[h.job]; seen {
			return !in
		}
		in := h.job.runs() || h.job.State == store.Starting || count[h.job] <= room
		taken[h.job] = in
		if in {
			room -= count[h.job]
		}
		return !in
	})
}

// holdsOf lists a job's holds: one for each step at which it gets nodes.
func (c *Controller) holdsOf(j *job, now int64) []hold {
	var all []hold
	grace := int64(c.cfg.Grace / time.Second)
	for i := j.Step; i < len(j.plan); i++ {
		added := j.plan[i].nodes
		switch {
		case j.isChain(): // every step is a job of its own, with all its nodes
		case i == j.Step && i > 0:
			added = without(added, j.nodes())
		case i > 0:
			added = without(added, j.plan[i-1].nodes)
		}
		if len(added) == 0 {
			continue
		}
		// until the first of them is planned to be released
		end := j.plan[i].end
		for k := i + 1; k < len(j.plan) && !j.isChain() && len(without(added, j.plan[k].nodes)) == 0; k++ {
			end = j.plan[k].end
		}
		start := j.plan[i].start
		all = append(all, hold{job: j, step: i + 1, nodes: added, start: start, end: max(end, now) + max(grace, 60)})
	}
	return all
}

// holdKey tells holds apart: a job has one for each step that brings it nodes.
type holdKey struct {
	job  slurmctl.JobID
	step int
}

// syncHolds makes Slurm's reservations those that the plan needs. What is new or
// changes comes first, what is not needed any more goes last: a node that changes
// hands is held all the time.
func (c *Controller) syncHolds(ctx context.Context, s *snapshot) {
	begun := time.Now()
	now := begun.Unix()
	needed := map[holdKey]hold{}
	for _, h := range c.wantedHolds(now) {
		needed[holdKey{h.job.id(), h.step}] = h
	}
	var surplus []string
	existing := map[holdKey]bool{}
	for _, name := range sortedKeys(c.reservations) {
		own, ours := parseHoldName(name)
		if !ours {
			continue
		}
		k := holdKey{own.job, own.step}
		if j := c.byID[own.job]; j != nil && (j.busy || j.touched.After(s.taken)) {
			existing[k] = true // an action may be using it; look again when it is over
			continue
		}
		h, want := needed[k]
		if want && !existing[k] && h.far(now) && time.Since(begun) > holdsTime {
			existing[k] = true // as good as it is; changed in one of the next cycles
			continue
		}
		if !want || existing[k] || c.stale(c.reservations[name], h, now) || !c.adjustHold(ctx, c.reservations[name], h, now) {
			surplus = append(surplus, name)
			continue
		}
		existing[k] = true
	}
	for _, h := range c.wantedHolds(now) {
		if h.far(now) && time.Since(begun) > holdsTime {
			continue
		}
		if !existing[holdKey{h.job.id(), h.step}] && !h.job.busy {
			c.createHold(ctx, s, h)
		}
	}
	for _, name := range surplus {
		c.deleteHold(ctx, s, name)
	}
}

// holdsTime is how long a cycle may go on making and changing the holds of jobs that
// are not about to start.
const holdsTime = 200 * time.Millisecond

// far says whether the hold's job neither runs nor starts within a minute.
func (h hold) far(now int64) bool {
	return h.job.State == store.Queued && len(h.job.plan) > 0 && h.job.plan[0].start > now+60
}

// earlier is by how many seconds a hold may begin before its step does without
// being worth a change: nodes in plans shift by seconds all the time.
const earlier = 10

// slack is by how much a time written into Slurm may be off while it is so far
// away: plans drift with every job that starts late or ends early, and each change
// costs slurmctld milliseconds.
func slack(ahead time.Duration) time.Duration { return max(ahead, 0) / 10 }

// stale says whether a reservation cannot be made to be the hold by changing it: it
// has begun though the hold is to come.
func (c *Controller) stale(r slurmctl.Reservation, h hold, now int64) bool {
	return r.Start.Unix() <= now && h.start > now+earlier
}

// adjustHold changes a reservation's start, end and nodes where they are off; false
// if Slurm refuses.
func (c *Controller) adjustHold(ctx context.Context, r slurmctl.Reservation, h hold, now int64) bool {
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
	if u.Start.IsZero() && !u.StartNow && u.End.IsZero() && !moved {
		return true
	}
	if err := c.slurm.UpdateReservation(ctx, r.Name, u); err != nil {
		c.logJob(h.job).WithError(err).Warn("a hold could not be changed; it is made anew")
		return false
	}
	if moved {
		c.heldSince[r.Name] = time.Now()
	}
	c.reservations[r.Name] = r
	return true
}

func (c *Controller) createHold(ctx context.Context, s *snapshot, h hold) {
	now := time.Now().Unix()
	if h.job.holdRetry.After(time.Now()) {
		return
	}
	name := c.nextName(h.job, h.step).String()
	start := time.Unix(max(h.start, now), 0)
	request := slurmctl.ReservationRequest{Name: name, Start: start, End: time.Unix(h.end, 0),
		Nodes: h.nodes, Users: c.holdUsers(h.job), Flags: holdFlags}
	if h.start <= now {
		request.Start = time.Time{} // now: Slurm's own clock decides
	}
	if err := c.slurm.CreateReservation(ctx, request); err != nil {
		h.job.holdRetry = time.Now().Add(2 * time.Second)
		c.logJob(h.job).WithError(err).Warn("nodes of a coming step could not be held")
		return
	}
	c.reservations[name] = slurmctl.Reservation{Name: name, Start: start, End: time.Unix(h.end, 0), Nodes: h.nodes}
	c.heldSince[name] = time.Now()
	c.logJob(h.job).WithField("hold", name).WithField("nodes", slurmctl.CompressNodes(h.nodes)).Debug("nodes held")
}

// deleteHold gives a hold up. Slurm deletes no reservation that jobs refer to:
// pending ones are taken out of it, running ones must be detached before.
func (c *Controller) deleteHold(ctx context.Context, s *snapshot, name string) {
	for i := range s.jobs {
		r := &s.jobs[i]
		if j := c.owner(r.ID); j != nil && j.record.ID == r.ID {
			r = &j.record // knows of what was done since the snapshot
		}
		if r.Reservation != name {
			continue
		}
		if r.State != slurmctl.Pending || isExpander(r) {
			return
		}
		none := ""
		if err := c.slurm.UpdateJob(ctx, r.ID, slurmctl.JobUpdate{Reservation: &none}); err != nil {
			c.log.WithError(err).WithField("hold", name).Warn("a pending job could not be taken out of its hold")
			return
		}
		r.Reservation = ""
	}
	if err := c.slurm.DeleteReservation(ctx, name); err != nil && !errors.Is(err, slurmctl.ErrUnknownReservation) {
		c.log.WithError(err).WithField("hold", name).Warn("a hold could not be given up")
		return
	}
	c.forgetHold(name)
}

// holdUsers are those who may use a hold: the job's user, and whoever the sidecar
// runs as where it must submit expanders in its own name.
func (c *Controller) holdUsers(j *job) []string {
	users := []string{j.User}
	if c.self != "" && c.self != j.User && !c.root {
		users = append(users, c.self)
	}
	return users
}

// holdFor finds the reservation for a job's step.
func (c *Controller) holdFor(j *job, step int) (slurmctl.Reservation, bool) {
	for _, name := range sortedKeys(c.reservations) {
		if own, ours := parseHoldName(name); ours && own.job == j.id() && own.step == step {
			return c.reservations[name], true
		}
	}
	return slurmctl.Reservation{}, false
}

// confirmed says whether all that a queued job needs is held, and whether an
// observation has been made since: then nobody can have slipped in between.
func (c *Controller) confirmed(s *snapshot, j *job, now int64) bool {
	for _, h := range c.holdsOf(j, now) {
		r, ok := c.holdFor(j, h.step)
		if !ok || !sameSet(r.Nodes, h.nodes) || r.Start.Unix() > max(h.start, now) || !s.taken.After(c.heldSince[r.Name]) {
			return false
		}
	}
	return true
}

// nextName is a new name for a hold or an expander.
func (c *Controller) nextName(j *job, step int) ownName {
	j.attempt++
	return ownName{j.id(), step, j.attempt}
}
