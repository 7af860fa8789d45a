package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// resolution is bf_resolution: starts in the future are of whole minutes.
const resolution = time.Minute

// span is a time during which a node is taken.
type span struct{ from, to time.Time }

// backfillCycle is a cycle of the backfill scheduler: every pending job in order gets
// the earliest place that delays nobody before it, and starts if that is now.
func (c *Cluster) backfillCycle() {
	c.at(c.now.Add(c.options.BackfillInterval), c.backfillCycle)
	c.filled = c.now
	if !c.changed && len(c.reservations) == 0 && !c.begins() {
		return
	}
	c.changed = false
	queue := c.queue()
	if len(queue) == 0 {
		return
	}
	horizon := c.now.Add(c.options.BackfillWindow)
	taken := c.taken(horizon)
	clear(c.planned)
	for i, j := range queue {
		if i >= c.options.BackfillJobs {
			break
		}
		for tasks := j.ArrayTasks; tasks > 0 && j.State == slurmctl.Pending && c.eligible(j); tasks-- {
			at, nodes, ok := c.place(j, taken, horizon)
			if !ok {
				break
			}
			end := horizon
			if j.TimeLimit != slurmctl.Unlimited {
				end = at.Add(j.TimeLimit)
			}
			for _, n := range nodes {
				taken[n] = append(taken[n], span{at, end})
			}
			if at.Equal(c.now) {
				c.begin(j, nodes)
			} else {
				c.planned[j.ID] = at
				break // further tasks come later
			}
		}
	}
}

// begins says whether a begin time has come since the last cycle.
func (c *Cluster) begins() bool {
	for _, id := range c.order {
		j := c.jobs[id]
		if b := j.request.Begin; j.State == slurmctl.Pending && !b.IsZero() && !b.After(c.now) && j.Reason == "BeginTime" {
			return true
		}
	}
	return false
}

// taken is when every node is in use by what runs.
func (c *Cluster) taken(horizon time.Time) [][]span {
	taken := make([][]span, len(c.nodes))
	for n := range c.nodes {
		if !c.nodes[n].usable() {
			taken[n] = append(taken[n], span{c.now, horizon})
		}
	}
	for _, id := range c.order {
		j := c.jobs[id]
		if !j.active() {
			continue
		}
		end := horizon
		if !j.EndTime.IsZero() && j.State == slurmctl.Running {
			end = j.EndTime
			if !end.After(c.now) {
				end = c.now.Add(resolution)
			}
		}
		for _, n := range j.nodes {
			if j.Exclusive || c.nodes[n].used >= c.options.CPUs {
				taken[n] = append(taken[n], span{c.now, end})
			}
		}
	}
	return taken
}

// place is the earliest time at which a job has its nodes until its limit.
func (c *Cluster) place(j *job, taken [][]span, horizon time.Time) (time.Time, []int, bool) {
	times := []time.Time{c.now}
	later := func(t time.Time) {
		if t.After(c.now) && t.Before(horizon) {
			times = append(times, c.now.Add((t.Sub(c.now) + resolution - 1).Truncate(resolution)))
		}
	}
	for _, spans := range taken {
		for _, s := range spans {
			later(s.to)
		}
	}
	for i := range c.reservations {
		later(c.reservations[i].End)
		later(c.reservations[i].Start)
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.Compact(times)
	for _, at := range times {
		if r := c.reservation(j.Reservation); r != nil && at.Before(r.Start) {
			continue
		}
		end := horizon
		if j.TimeLimit != slurmctl.Unlimited {
			end = at.Add(j.TimeLimit)
		}
		allowed := c.allowed(j, at)
		nodes, ok := c.pick(j, func(n int) bool {
			if !allowed[n] || at.Equal(c.now) && !c.fits(j, n) {
				return false
			}
			for _, s := range taken[n] {
				if s.from.Before(end) && s.to.After(at) {
					return false
				}
			}
			return true
		})
		if ok {
			return at, nodes, true
		}
	}
	return time.Time{}, nil, false
}
