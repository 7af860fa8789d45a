package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// mainPass is a pass of the main scheduler (_schedule of job_scheduler.c). It starts jobs in order
// until a job does not get its nodes. Then the other jobs of that partition wait, and no job gets
// the partition's nodes.
func mainPass(c *Cluster, whole bool) {
	l := &c.Loop
	if whole {
		l.Seen, l.Quiet = l.Version, nextTurn(c)
	}
	c.room.queue = append(c.room.queue[:0], inOrder(c)...)
	p := pass{Cluster: c, whole: whole, avail: append(c.room.avail[:0], c.Up...), stuck: c.room.stuck[:0]}
	c.room.avail = p.avail
	defer func() { c.room.stuck = p.stuck }()
	for _, j := range c.room.queue {
		if len(p.stuck) == len(c.Partitions) && !c.Watched && len(c.Reservations) == 0 {
			return // no job can start any more, and reasons are not watched
		}
		if j.State != slurmctl.Pending || !independent(c, j) {
			continue
		}
		if len(j.Parts) == 0 {
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

// try starts a job in its partition if it can, or all tasks of an array for which there is room. It
// reports whether the job started.
func (p *pass) try(j *job) bool {
	if !partitionAdmits(p.Cluster, j) {
		return false
	}
	for more := true; more && j.State == slurmctl.Pending; {
		if p.tested++; p.enough() {
			return false
		}
		more = p.tryTask(j)
	}
	return j.State != slurmctl.Pending
}

// tryTask starts a job, or the next task of an array, if it can. Otherwise other jobs may have to
// wait behind it. It reports whether to try a further task.
func (p *pass) tryTask(j *job) bool {
	if p.waits(j) {
		return false
	}
	if p.avail.common(j.Part.Set) < j.NumNodes {
		p.why(j, "Resources")
		p.stop(j)
		return false
	}
	more := j.ArrayTasks > 1
	fails := false
	switch tryNow(p.Cluster, j, p.avail) {
	case fine:
		return more
	case busy:
		fails = true
	case reserved, notUsable:
		if r := p.Reservations.of(j.Reservation); r != nil {
			p.avail.minus(r.Set)
		}
	}
	if j.Required != nil && j.Required.count() >= j.NumNodes {
		p.avail.minus(j.Required)
	} else if fails {
		p.stop(j)
	}
	return false
}

// waits reports whether a job waits behind another one in its partition or reservation.
func (p *pass) waits(j *job) bool {
	if j.Reservation != "" {
		if !slices.Contains(p.full, j.Reservation) {
			return false
		}
		p.why(j, "Priority")
		return true
	}
	if !slices.Contains(p.stuck, j.Part) {
		return false
	}
	if j.Reason == "None" || j.Reason == "Resources" {
		p.why(j, "Priority")
	}
	return true
}

// stop lets the following jobs wait behind this one.
func (p *pass) stop(j *job) {
	if j.Reservation != "" {
		p.full = append(p.full, j.Reservation)
		return
	}
	p.stuck = append(p.stuck, j.Part)
	p.avail.minus(j.Part.Set)
}
