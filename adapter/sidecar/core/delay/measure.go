package delay

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Which stock jobs start later because of holds, and how many seconds, is found by planning the waiting jobs twice, in
// Slurm's order: beside the holds, and without them. Nothing is decided by it. It happens at most once a minute, and
// only while holds of growths are there and stock jobs wait. Plans count on time limits, so a delay that was planned
// is cut to what the job waited in the end.

// leastDelay is the shortest delay that counts: Slurm starts jobs in cycles of up to half a minute.
const leastDelay = stock.UntilLook

// Measure plans the waiting jobs with and without holds, and books the stock jobs that are planned later with
// them.
func Measure(c *state.Core, s *state.Snapshot) {
	s = pace.SwitchedOn(s)
	settleDelays(c, s)
	if c.Now.Before(c.Delays.Measured.Add(plan.DelaysAgain)) || !slices.ContainsFunc(c.Active, func(j *state.Job) bool { return holdsAny(c, j) }) {
		return
	}
	c.Delays.Measured = c.Now
	now := s.Taken.Unix()
	without := slurmOrder(c, s, now, len(s.Nodes), 0)
	if without == nil {
		return
	}
	from := heldFrom(c, s)
	place(c, s, without, from, now, func(*state.Job) bool { return false })
	with := placeBeside(c, s, without, from, now)
	for i := range without {
		if p := &without[i]; p.Stock && p.Start < planner.Forever && with[i].Start < planner.Forever {
			bookDelay(c, s, p, with[i].Start-p.Start)
		}
	}
}

// bookDelay books that a stock job is planned later by some seconds because of holds.
func bookDelay(c *state.Core, s *state.Snapshot, p *slurm.Placed, seconds int64) {
	r := p.Record
	d := c.Delays.Late[r.ID]
	switch {
	case seconds < leastDelay, d != nil && seconds < d.Seconds+leastDelay:
		return
	case d == nil:
		if len(c.Delays.Late) >= plan.MostHeldUp || lateOf(c, r.UID) >= stock.MostOfUser {
			return
		}
		d = &row.Delay{Since: s.Taken, Stock: row.Stock{SlurmID: uint32(r.ID), Submitted: r.SubmitTime, User: r.User, UID: r.UID, Account: r.Account, QOS: r.QOS, Partition: r.Partition}}
		c.Delays.Late[r.ID] = d
	}
	d.Seconds, d.Could = seconds, time.Unix(p.Start, 0)
	d.Hold, d.Job = inTheWay(c, s, p)
	c.Emit(msg.SaveDelay{*d})
}

// lateOf counts a user's jobs that are booked and wait.
func lateOf(c *state.Core, uid uint32) (n int) {
	for _, d := range c.Delays.Late {
		if d.UID == uid {
			n++
		}
	}
	return n
}

// inTheWay returns the first hold on the nodes that a job would get without holds, and the row of the hold's job.
func inTheWay(c *state.Core, s *state.Snapshot, p *slurm.Placed) (name string, job int64) {
	first := p.Start + p.Profile[0].Duration
	for _, h := range c.Ours {
		r, j := c.Reservations[h.Name], c.ByID[h.Own.Job]
		if start := r.Start.Unix(); j != nil && start < first && slices.ContainsFunc(p.At, func(n int) bool { return slices.Contains(r.Nodes, s.Nodes[n].Name) }) {
			name, job, first = h.Name, j.ID, start
		}
	}
	return name, job
}

// settleDelays closes the rows of jobs that no longer wait.
func settleDelays(c *state.Core, s *state.Snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.Delays.Late)) {
		d, r := c.Delays.Late[id], s.ByID[id]
		if r != nil && r.State == slurmctl.Pending && r.SubmitTime.Equal(d.Submitted) {
			continue
		}
		d.Settled = s.Taken
		if r != nil && r.SubmitTime.Equal(d.Submitted) && !r.StartTime.IsZero() && r.StartTime.Before(d.Settled) {
			d.Settled = r.StartTime
		}
		d.Seconds = max(min(d.Seconds, int64(d.Settled.Sub(d.Could)/time.Second)), 0)
		delete(c.Delays.Late, id)
		c.Emit(msg.SaveDelay{*d})
	}
}
