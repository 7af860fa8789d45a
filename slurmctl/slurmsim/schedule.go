package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// mainPass is a pass of the main scheduler (_schedule of job_scheduler.c). It starts jobs in order
// until a job does not get its nodes. Then the other jobs of that partition wait, and no job gets
// the partition's nodes.
func mainPass(c *Cluster, whole bool) {
	l := &c.loop
	if whole {
		l.seen, l.quiet = l.version, nextTurn(c)
	}
	c.room.queue = append(c.room.queue[:0], inOrder(c)...)
	p := pass{Cluster: c, whole: whole, avail: append(c.room.avail[:0], c.up...)}
	c.room.avail = p.avail
	for _, j := range c.room.queue {
		if len(p.stuck) == len(c.partitions) && !c.watched && len(c.reservations) == 0 {
			return // no job can start any more, and reasons are not watched
		}
		if j.State != slurmctl.Pending || !independent(c, j) {
			continue
		}
		if len(j.parts) == 0 {
			p.try(j)
		} else {
			j.somewhere(func() bool { return p.try(j) })
		}
		if p.enough() {
			return
		}
	}
}

// pass is a pass of the main scheduler.
type pass struct {
	*Cluster
	whole  bool
	avail  nodeSet
	stuck  []*partition
	full   []string // reservations
	tested int
}

// enough reports whether the pass stops trying jobs.
func (p *pass) enough() bool { return !p.whole && p.tested > p.options.QueueDepth+1 }

// try starts a job in its partition if it can, or all tasks of an array for which there is room.
// Otherwise other jobs may have to wait behind it. It reports whether the job started.
func (p *pass) try(j *job) bool {
	if !partitionAdmits(p.Cluster, j) {
		return false
	}
	for tasks := true; tasks && j.State == slurmctl.Pending; {
		tasks = false
		if p.tested++; p.enough() {
			return false
		}
		switch {
		case j.Reservation != "":
			if slices.Contains(p.full, j.Reservation) {
				p.why(j, "Priority")
				continue
			}
		case slices.Contains(p.stuck, j.part):
			if j.Reason == "None" || j.Reason == "Resources" {
				p.why(j, "Priority")
			}
			continue
		}
		fails := false
		if p.avail.common(j.part.set) < j.NumNodes {
			p.why(j, "Resources")
			fails = true
		} else {
			more := j.ArrayTasks > 1
			switch tryNow(p.Cluster, j, p.avail) {
			case fine:
				tasks = more
				continue
			case busy:
				fails = true
			case reserved, notUsable:
				if r := p.reservations.named(j.Reservation); r != nil {
					p.avail.minus(r.set)
				}
			}
			if j.required != nil && j.required.count() >= j.NumNodes {
				fails = false
				p.avail.minus(j.required)
			}
		}
		if fails && j.Reservation != "" {
			fails = false
			p.full = append(p.full, j.Reservation)
		}
		if fails {
			p.stuck = append(p.stuck, j.part)
			p.avail.minus(j.part.set)
		}
	}
	return j.State != slurmctl.Pending
}
