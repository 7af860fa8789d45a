package slurmsim

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// reservation is a reservation of slurmctld.
type reservation struct {
	slurmctl.Reservation
	Set   nodeSet   // of Nodes; never changed in place
	Used  time.Time // last time a job referred to it
	State int       // as the scheduler last saw it: 0 future, 1 active, 2 ended
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

// reservations holds the reservations in the order of their creation.
type reservations []*reservation

// named returns the reservation of that name, or nil.
func (all reservations) named(name string) *reservation {
	if name == "" {
		return nil
	}
	for _, r := range all {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// of returns the first reservation of a job's list, or nil: a job that runs is in that one.
func (all reservations) of(list string) *reservation {
	name, _, _ := strings.Cut(list, ",")
	return all.named(name)
}

// open returns the first reservation of a list if the user may use all of them, and nil for "".
func (all reservations) open(list string, u User) (*reservation, error) {
	if list == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		r := all.named(name)
		if r == nil {
			return nil, refusal("Requested reservation is invalid")
		}
		if !r.allows(u) {
			return nil, refusal("Access denied to requested reservation")
		}
	}
	return all.of(list), nil
}

// clone returns copies of all.
func (all reservations) clone() reservations {
	copied := make(reservations, len(all))
	for i, r := range all {
		one := *r
		copied[i] = &one
	}
	return copied
}

// clashes reports whether a reservation would share nodes with another one, except self, though
// neither may.
func (all reservations) clashes(r *reservation, self string) bool {
	shares := func(r *reservation) bool { return r.has("MAINT") || r.has("OVERLAP") }
	return !shares(r) && slices.ContainsFunc(all, func(o *reservation) bool {
		return o.Name != self && !shares(o) && o.overlaps(r.Start, r.End) && o.Set.overlaps(r.Set)
	})
}

// nextEnd returns the first end of a reservation from then on, rounded up, or 0
// (find_resv_end).
func (all reservations) nextEnd(from, step int64) int64 {
	first := int64(0)
	for _, r := range all {
		if end := r.End.Unix(); end >= from && (first == 0 || end < first) {
			first = end
		}
	}
	return (first + step - 1) / step * step
}

// resvEvery is how often the loop checks for reservations that have begun or ended.
const resvEvery = 5 * time.Second

// nextTurn returns when the loop will next see a reservation begin or end, or 0. It is now by the
// clock, and elapsed since the cluster's start.
func (all reservations) nextTurn(now time.Time, elapsed time.Duration) time.Duration {
	next := time.Duration(0)
	for _, r := range all {
		for _, t := range []time.Time{r.Start, r.End} {
			at := elapsed + t.Sub(now)
			if at = (at + resvEvery - 1).Truncate(resvEvery); at > elapsed && (next == 0 || at < next) {
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

// allowance holds what reservations leave to a job.
type allowance struct {
	nodes   nodeSet
	overlap bool      // other jobs' reservations removed some
	start   time.Time // when it holds
	why     verdict
}

// reason returns the reason of a job that may have no nodes.
func (a *allowance) reason() string {
	switch a.why {
	case busy:
		return "Resources"
	case reserved:
		return "ReqNodeNotAvail, Reserved for maintenance"
	}
	return "Reservation"
}

// permitted returns which of that many nodes reservations allow a job to start on at when or, with
// move, later (job_test_resv of reservation.c).
func (all reservations) permitted(j *job, nodes int, when time.Time, move bool) allowance {
	a := allowance{nodes: newNodeSet(nodes), start: when}
	limit := j.TimeLimit
	if limit == slurmctl.Unlimited {
		limit = forever
	}
	if j.Reservation != "" {
		for name := range strings.SplitSeq(j.Reservation, ",") {
			a = allowance{nodes: newNodeSet(nodes), start: when}
			if all.permitInside(&a, j, limit, all.named(name)); a.why == fine {
				break
			}
		}
		return a
	}
	for tries := 0; ; tries++ {
		if all.permitOutside(&a, j, limit); a.why == fine || !move || tries == 10 {
			return a
		}
	}
}

// permitInside finds the nodes for a job in a reservation; nil: it is not there.
func (all reservations) permitInside(a *allowance, j *job, limit time.Duration, own *reservation) {
	switch {
	case own == nil, !own.allows(j.Request.User):
		a.why = notUsable
		return
	case own.has("FLEX"):
		a.nodes.fill()
	case a.start.Before(own.Start), !a.start.Before(own.End), j.Required != nil && !own.Set.holds(j.Required):
		a.why = notUsable
		return
	default:
		a.nodes.or(own.Set)
	}
	maint, over := own.has("MAINT"), own.has("OVERLAP")
	for _, r := range all {
		if maint || over && !r.has("MAINT") || r == own || !r.overlaps(a.start, a.start.Add(limit)) || !a.nodes.overlaps(r.Set) {
			continue
		}
		a.overlap = true
		a.nodes.minus(r.Set)
	}
}

// permitOutside finds the nodes for a job in no reservation. If a reservation excludes the job, the
// allowance's start moves to the reservation's end.
func (all reservations) permitOutside(a *allowance, j *job, limit time.Duration) {
	a.nodes.fill()
	a.why = fine
	for _, r := range all {
		if !r.overlaps(a.start, a.start.Add(limit)) {
			continue
		}
		if r.has("MAINT") && j.Part.Set.holds(r.Set) {
			a.why = reserved
		} else if j.Required != nil && j.Required.overlaps(r.Set) {
			a.why = busy
		}
		if a.why != fine {
			a.start = r.End
			return
		}
		a.nodes.minus(r.Set)
		a.overlap = a.overlap || j.Part.Set.overlaps(r.Set)
	}
}
