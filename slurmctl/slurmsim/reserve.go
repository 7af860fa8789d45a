package slurmsim

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// createReservation creates a reservation.
func createReservation(c *Cluster, q slurmctl.ReservationRequest) error {
	r := &reservation{Used: c.Now()}
	r.Reservation = slurmctl.Reservation{Name: q.Name, Start: q.Start, End: q.End, Nodes: slices.Clone(q.Nodes), Users: q.Users, Accounts: q.Accounts,
		Partition: q.Partition, Flags: slices.Clone(q.Flags)}
	if r.Start.IsZero() {
		r.Start = c.second()
	}
	if r.Start.Before(c.Now().Add(-limitsEvery)) {
		return refusal("Error creating the reservation: Requested reservation start time is in the past (Invalid time specified)")
	}
	if q.NodeCount > 0 {
		for n := range c.Nodes {
			if len(r.Nodes) < q.NodeCount && c.Up.has(n) && spare(c, n, r) {
				r.Nodes = append(r.Nodes, c.Nodes[n].Name)
			}
		}
		if len(r.Nodes) < q.NodeCount && !r.has("IGNORE_JOBS") {
			return refusal("Error creating the reservation: Requested nodes are busy")
		}
	}
	if err := admit(c, r, ""); err != nil {
		return err
	}
	if c.Reservations.named(q.Name) != nil {
		return refusal("Error creating the reservation: Duplicate reservation name")
	}
	c.Reservations = append(c.Reservations, r)
	c.changed()
	c.kick()
	return nil
}

// spare reports whether neither a job's limit nor another reservation reaches into the reservation
// on that node.
func spare(c *Cluster, n int, r *reservation) bool {
	for _, j := range c.Active {
		if j.Ends > r.Start.Unix() && slices.Contains(j.Nodes, n) {
			return false
		}
	}
	return !slices.ContainsFunc(c.Reservations, func(o *reservation) bool { return o.Set.has(n) && o.overlaps(r.Start, r.End) })
}

// admit refuses a reservation that conflicts with others or with jobs (_resv_overlap, _job_overlap
// of reservation.c). self is the name that it replaces.
func admit(c *Cluster, r *reservation, self string) error {
	r.Set = newNodeSet(len(c.Nodes))
	for _, name := range r.Nodes {
		n, ok := c.index[name]
		if !ok || c.Nodes[n].Gone {
			return refusal("Invalid node name specified")
		}
		r.Set.add(n)
	}
	if c.Reservations.clashes(r, self) {
		return refusal("Error creating the reservation: Requested reservation overlaps with another reservation")
	}
	if r.has("IGNORE_JOBS") || r.has("MAINT") {
		return nil
	}
	for _, j := range c.Active {
		if j.Reservation != r.Name && j.Ends > r.Start.Unix() && slices.ContainsFunc(j.Nodes, r.Set.has) {
			return refusal("Requested nodes are busy")
		}
	}
	return nil
}

// updateReservation applies all changes to a reservation, or none.
func updateReservation(c *Cluster, name string, u slurmctl.ReservationUpdate) error {
	r := c.Reservations.named(name)
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
	if err := admit(c, &changed, name); err != nil {
		return err
	}
	*r = changed
	c.changed()
	c.kick()
	return nil
}

// deleteReservation deletes a reservation that no job refers to.
func deleteReservation(c *Cluster, name string) error {
	r := c.Reservations.named(name)
	if r == nil {
		return refusal("Error deleting the reservation: Requested reservation is invalid")
	}
	if c.refersTo(name) {
		return refusal("Error deleting the reservation: Requested reservation is in use")
	}
	c.Reservations = slices.DeleteFunc(c.Reservations, func(o *reservation) bool { return o == r })
	c.changed()
	c.kick()
	return nil
}

// dropReservations deletes ended reservations, and those with PURGE_COMP that have been unused for
// that long.
func dropReservations(c *Cluster) {
	before := len(c.Reservations)
	c.Reservations = slices.DeleteFunc(c.Reservations, func(r *reservation) bool {
		return !c.refersTo(r.Name) && (c.Now().After(r.End) || r.purged(c.Now()))
	})
	if len(c.Reservations) != before {
		c.changed()
		c.kick()
	}
}

func (r *reservation) purged(now time.Time) bool {
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
		return now.Sub(r.Start) > after && now.Sub(r.Used) > after
	}
	return false
}
