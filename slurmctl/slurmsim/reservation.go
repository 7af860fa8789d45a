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

// reserve creates a reservation.
func (c *Cluster) reserve(q slurmctl.ReservationRequest) error {
	r := &reservation{used: c.Now()}
	r.Reservation = slurmctl.Reservation{Name: q.Name, Start: q.Start, End: q.End, Nodes: slices.Clone(q.Nodes), Users: q.Users, Accounts: q.Accounts,
		Partition: q.Partition, Flags: slices.Clone(q.Flags)}
	if r.Start.IsZero() {
		r.Start = c.second()
	}
	if r.Start.Before(c.Now().Add(-limitsEvery)) {
		return refusal("Error creating the reservation: Requested reservation start time is in the past (Invalid time specified)")
	}
	if q.NodeCount > 0 {
		for n := range c.nodes {
			if len(r.Nodes) < q.NodeCount && c.up.has(n) && c.spare(n, r) {
				r.Nodes = append(r.Nodes, c.nodes[n].Name)
			}
		}
		if len(r.Nodes) < q.NodeCount && !r.has("IGNORE_JOBS") {
			return refusal("Error creating the reservation: Requested nodes are busy")
		}
	}
	if err := c.admit(r, ""); err != nil {
		return err
	}
	if c.reservation(q.Name) != nil {
		return refusal("Error creating the reservation: Duplicate reservation name")
	}
	c.reservations = append(c.reservations, r)
	c.changed()
	c.kick()
	return nil
}

// spare reports whether neither a job's limit nor another reservation reaches into the reservation
// on that node.
func (c *Cluster) spare(n int, r *reservation) bool {
	for _, j := range c.active {
		if j.ends > r.Start.Unix() && slices.Contains(j.nodes, n) {
			return false
		}
	}
	return !slices.ContainsFunc(c.reservations, func(o *reservation) bool { return o.set.has(n) && o.overlaps(r.Start, r.End) })
}

// admit refuses a reservation that conflicts with others or with jobs (_resv_overlap, _job_overlap
// of reservation.c). self is the name that it replaces.
func (c *Cluster) admit(r *reservation, self string) error {
	r.set = newNodeSet(len(c.nodes))
	for _, name := range r.Nodes {
		n, ok := c.index[name]
		if !ok {
			return refusal("Invalid node name specified")
		}
		r.set.add(n)
	}
	if !r.has("MAINT") && !r.has("OVERLAP") {
		for _, o := range c.reservations {
			if o.Name != self && !o.has("MAINT") && !o.has("OVERLAP") && o.overlaps(r.Start, r.End) && o.set.overlaps(r.set) {
				return refusal("Error creating the reservation: Requested reservation overlaps with another reservation")
			}
		}
	}
	if r.has("IGNORE_JOBS") || r.has("MAINT") {
		return nil
	}
	for _, j := range c.active {
		if j.Reservation != r.Name && j.ends > r.Start.Unix() && slices.ContainsFunc(j.nodes, r.set.has) {
			return refusal("Requested nodes are busy")
		}
	}
	return nil
}

// alter applies all changes to a reservation, or none.
func (c *Cluster) alter(name string, u slurmctl.ReservationUpdate) error {
	r := c.reservation(name)
	if r == nil {
		return refusal("Error updating the reservation: Requested reservation is invalid")
	}
	changed := *r
	switch {
	case u.StartNow && !r.Start.After(c.Now()): // slurmctl.Client notices that it has begun
	case u.StartNow:
		changed.Start = c.second()
	case !u.Start.IsZero():
		if !r.Start.After(c.Now()) {
			return refusal("Error updating the reservation: Reservation already started")
		}
		if u.Start.Before(c.second()) {
			return refusal("Error updating the reservation: Invalid time specified")
		}
		changed.Start = u.Start
	}
	if !u.End.IsZero() {
		changed.End = u.End
	}
	if u.Nodes != nil {
		changed.Nodes = slices.Clone(u.Nodes)
	}
	if u.Users != nil {
		changed.Users = u.Users
	}
	if u.Accounts != nil {
		changed.Accounts = u.Accounts
	}
	changed.Flags = slices.Concat(changed.Flags, u.Flags)
	if err := c.admit(&changed, name); err != nil {
		return err
	}
	*r = changed
	c.changed()
	c.kick()
	return nil
}

// unreserve deletes a reservation that no job refers to.
func (c *Cluster) unreserve(name string) error {
	r := c.reservation(name)
	if r == nil {
		return refusal("Error deleting the reservation: Requested reservation is invalid")
	}
	if c.refers(name) {
		return refusal("Error deleting the reservation: Requested reservation is in use")
	}
	c.reservations = slices.DeleteFunc(c.reservations, func(o *reservation) bool { return o == r })
	c.changed()
	c.kick()
	return nil
}

// refers reports whether a pending or running job uses the reservation.
func (c *Cluster) refers(name string) bool {
	in := func(j *job) bool { return j.Reservation == name }
	return slices.ContainsFunc(c.pending, in) || slices.ContainsFunc(c.active, in)
}

// resvEvery is how often the loop checks for reservations that have begun or ended.
const resvEvery = 5 * time.Second

// reservationsDue runs the scheduler if a reservation has begun or ended.
func (c *Cluster) reservationsDue() {
	if len(c.reservations) == 0 || c.now/resvEvery == c.loop.looked/resvEvery {
		return
	}
	c.loop.looked = c.now
	for _, r := range c.reservations {
		state := 0
		switch now := c.Now(); {
		case !now.Before(r.End):
			state = 2
		case !now.Before(r.Start):
			state = 1
		}
		if state != r.state {
			r.state = state
			c.loop.asked = true
			c.changed()
		}
	}
}

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

// dropReservations deletes ended reservations, and those with PURGE_COMP that have been unused for
// that long.
func (c *Cluster) dropReservations() {
	before := len(c.reservations)
	c.reservations = slices.DeleteFunc(c.reservations, func(r *reservation) bool {
		return !c.refers(r.Name) && (c.Now().After(r.End) || c.purged(r))
	})
	if len(c.reservations) != before {
		c.changed()
		c.kick()
	}
}

func (c *Cluster) purged(r *reservation) bool {
	for _, f := range r.Flags {
		text, ok := strings.CutPrefix(f, "PURGE_COMP")
		if !ok {
			continue
		}
		after := 5 * time.Minute
		if n, err := time.ParseDuration(strings.TrimPrefix(text, "=") + "m"); err == nil {
			after = n
		} else if t, err := time.Parse("15:04:05", strings.TrimPrefix(text, "=")); err == nil {
			after = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
		}
		return c.Now().Sub(r.Start) > after && c.Now().Sub(r.used) > after
	}
	return false
}

// Idle returns how many nodes a job of that length could have now: without the reservations with
// that name prefix, and with them.
func (c *Cluster) Idle(lasts time.Duration, prefix string) (without, with int) {
	set := append(nodeSet(nil), c.usage.idle...)
	set.and(c.up)
	set.minus(c.completing)
	now := c.Now()
	reserved := func(named bool) {
		for _, r := range c.reservations {
			if strings.HasPrefix(r.Name, prefix) == named && r.Start.Before(now.Add(lasts)) && r.End.After(now) {
				set.minus(r.set)
			}
		}
	}
	reserved(false)
	without = set.count()
	reserved(true)
	return without, set.count()
}
