package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// reservation is a reservation of slurmctld.
type reservation struct {
	slurmctl.Reservation
	set   nodeSet   // of Nodes; never changed in place
	used  time.Time // last time a job referred to it
	state int       // as the scheduler last saw it: 0 future, 1 active, 2 ended
}

func (r *reservation) has(flag string) bool {
	for _, f := range r.Flags {
		if f == flag || len(f) > len(flag) && f[len(flag)] == '=' && f[:len(flag)] == flag {
			return true
		}
	}
	return false
}

func (r *reservation) allows(u User) bool {
	return slices.Contains(r.Users, u.Name) || u.Account != "" && slices.Contains(r.Accounts, u.Account)
}

// overlaps reports whether the reservation exists at that time.
func (r *reservation) overlaps(from, to time.Time) bool {
	return r.Start.Before(to) && r.End.After(from)
}

func cloneReservations(all []*reservation) []*reservation {
	copied := make([]*reservation, len(all))
	for i, r := range all {
		one := *r
		copied[i] = &one
	}
	return copied
}

// reservation returns the reservation of that name, or nil.
func (c *Cluster) reservation(name string) *reservation {
	if name == "" {
		return nil
	}
	for _, r := range c.reservations {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// reservationEnd returns the first end of a reservation from then on, rounded up, or 0
// (find_resv_end).
func (c *Cluster) reservationEnd(from, step int64) int64 {
	first := int64(0)
	for _, r := range c.reservations {
		if end := r.End.Unix(); end >= from && (first == 0 || end < first) {
			first = end
		}
	}
	return (first + step - 1) / step * step
}

// resvEvery is how often the loop checks for reservations that have begun or ended.
const resvEvery = 5 * time.Second

// reservationTurn returns when the loop will next see a reservation begin or end, or 0.
func (c *Cluster) reservationTurn() time.Duration {
	next := time.Duration(0)
	now := c.Now()
	for _, r := range c.reservations {
		for _, t := range []time.Time{r.Start, r.End} {
			at := c.now + t.Sub(now)
			if at = (at + resvEvery - 1).Truncate(resvEvery); at > c.now && (next == 0 || at < next) {
				next = at
			}
		}
	}
	return next
}

// verdict is why a job does not start, or that it can.
type verdict int

const (
	fine       verdict = iota
	busy               // its nodes are busy
	reserved           // other jobs' reservations are in its way
	notAvail           // its nodes are down, or there are too few
	notUsable          // its reservation cannot be used
	overLimits         // a limit blocks it
)

// permitted returns the nodes that reservations allow a job to start on at when or, with move,
// later (job_test_resv of reservation.c). overlap reports whether other jobs' reservations removed
// some.
func (c *Cluster) permitted(j *job, when time.Time, move bool) (nodes nodeSet, overlap bool, start time.Time, why verdict) {
	limit := j.TimeLimit
	if limit == slurmctl.Unlimited {
		limit = forever
	}
	nodes = newNodeSet(len(c.nodes))
	fill := func() {
		for i := range nodes {
			nodes[i] = ^uint64(0)
		}
	}
	if j.Reservation != "" {
		own := c.reservation(j.Reservation)
		switch {
		case own == nil, !own.allows(j.request.User):
			return nil, false, when, notUsable
		case own.has("FLEX"):
			fill()
		case when.Before(own.Start), !when.Before(own.End):
			return nil, false, when, notUsable
		case j.required != nil && !own.set.holds(j.required):
			return nil, false, when, notUsable
		default:
			nodes.or(own.set)
		}
		maint, over := own.has("MAINT"), own.has("OVERLAP")
		for _, r := range c.reservations {
			if maint || over && !r.has("MAINT") || r == own || !r.overlaps(when, when.Add(limit)) || !nodes.overlaps(r.set) {
				continue
			}
			overlap = true
			nodes.minus(r.set)
		}
		return nodes, overlap, when, fine
	}
	for tries := 0; ; tries++ {
		fill()
		why = fine
		for _, r := range c.reservations {
			if !r.overlaps(when, when.Add(limit)) {
				continue
			}
			if r.has("MAINT") && j.part.set.holds(r.set) {
				why = reserved
			} else if j.required != nil && j.required.overlaps(r.set) {
				why = busy
			}
			if why != fine {
				if move {
					when = r.End
				}
				break
			}
			nodes.minus(r.set)
			overlap = overlap || j.part.set.overlaps(r.set)
		}
		if why == fine || !move || tries == 10 {
			return nodes, overlap, when, why
		}
	}
}
