package slurmsim

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// reservation is one of slurmctld's.
type reservation struct {
	slurmctl.Reservation
	used time.Time // when a job last referred to it
}

func (r *reservation) has(flag string) bool {
	return slices.ContainsFunc(r.Flags, func(f string) bool { return f == flag || strings.HasPrefix(f, flag+"=") })
}

func (r *reservation) allows(u User) bool {
	return slices.Contains(r.Users, u.Name) || u.Account != "" && slices.Contains(r.Accounts, u.Account)
}

// reservation is the one of that name, nil if there is none.
func (c *Cluster) reservation(name string) *reservation {
	if name == "" {
		return nil
	}
	for i := range c.reservations {
		if c.reservations[i].Name == name {
			return &c.reservations[i]
		}
	}
	return nil
}

// reserve makes a reservation.
func (c *Cluster) reserve(q slurmctl.ReservationRequest) error {
	r := reservation{used: c.now}
	r.Reservation = slurmctl.Reservation{Name: q.Name, Start: q.Start, End: q.End, Nodes: slices.Clone(q.Nodes), Users: q.Users, Accounts: q.Accounts,
		Partition: q.Partition, Flags: slices.Clone(q.Flags)}
	if r.Start.IsZero() {
		r.Start = c.second()
	}
	if r.Start.Before(c.now.Add(-limitsEvery)) {
		return refusal("Error creating the reservation: Requested reservation start time is in the past (Invalid time specified)")
	}
	if q.NodeCount > 0 {
		for n := range c.nodes {
			if len(r.Nodes) < q.NodeCount && c.nodes[n].usable() && c.spare(n, &r) {
				r.Nodes = append(r.Nodes, c.nodes[n].name)
			}
		}
		if len(r.Nodes) < q.NodeCount && !r.has("IGNORE_JOBS") {
			return refusal("Error creating the reservation: Requested nodes are busy")
		}
	}
	if err := c.admit(&r, ""); err != nil {
		return err
	}
	if c.reservation(q.Name) != nil {
		return refusal("Error creating the reservation: Duplicate reservation name")
	}
	c.reservations = append(c.reservations, r)
	c.touch()
	c.kick()
	return nil
}

// spare says whether no job's limit reaches into the reservation on that node, and no
// other reservation does.
func (c *Cluster) spare(n int, r *reservation) bool {
	for _, id := range c.order {
		j := c.jobs[id]
		if j.active() && slices.Contains(j.nodes, n) && (j.EndTime.IsZero() || j.EndTime.After(r.Start)) {
			return false
		}
	}
	return !slices.ContainsFunc(c.reservations, func(o reservation) bool {
		return slices.Contains(o.Nodes, c.nodes[n].name) && o.Start.Before(r.End) && o.End.After(r.Start)
	})
}

// admit refuses a reservation that is in the way of others or of jobs (_resv_overlap,
// _job_overlap of reservation.c); self is the name that it replaces.
func (c *Cluster) admit(r *reservation, self string) error {
	for _, name := range r.Nodes {
		if _, ok := c.index[name]; !ok {
			return refusal("Invalid node name specified")
		}
	}
	if !r.has("MAINT") && !r.has("OVERLAP") {
		for i := range c.reservations {
			o := &c.reservations[i]
			if o.Name == self || o.has("MAINT") || o.has("OVERLAP") || !o.Start.Before(r.End) || !o.End.After(r.Start) {
				continue
			}
			if slices.ContainsFunc(r.Nodes, func(n string) bool { return slices.Contains(o.Nodes, n) }) {
				return refusal("Error creating the reservation: Requested reservation overlaps with another reservation")
			}
		}
	}
	if r.has("IGNORE_JOBS") || r.has("MAINT") {
		return nil
	}
	for _, id := range c.order {
		j := c.jobs[id]
		if !j.active() || j.Reservation == r.Name || !j.EndTime.IsZero() && !j.EndTime.After(r.Start) {
			continue
		}
		if slices.ContainsFunc(r.Nodes, func(n string) bool { return slices.Contains(j.nodes, c.index[n]) }) {
			return refusal("Requested nodes are busy")
		}
	}
	return nil
}

// alter changes a reservation, or nothing.
func (c *Cluster) alter(name string, u slurmctl.ReservationUpdate) error {
	r := c.reservation(name)
	if r == nil {
		return refusal("Error updating the reservation: Requested reservation is invalid")
	}
	changed := *r
	switch {
	case u.StartNow:
		changed.Start = c.second()
	case !u.Start.IsZero():
		if u.Start.Before(c.second()) || !r.Start.After(c.now) {
			return refusal("Error updating the reservation: Invalid time specified")
		}
		changed.Start = u.Start
	}
	orZero(&changed.End, u.End)
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
	c.touch()
	c.kick()
	return nil
}

// orZero sets what is given.
func orZero(value *time.Time, given time.Time) {
	if !given.IsZero() {
		*value = given
	}
}

// unreserve deletes a reservation that no job refers to.
func (c *Cluster) unreserve(name string) error {
	if c.reservation(name) == nil {
		return refusal("Error deleting the reservation: Requested reservation is invalid")
	}
	if c.refers(name) {
		return refusal("Error deleting the reservation: Requested reservation is in use")
	}
	c.reservations = slices.DeleteFunc(c.reservations, func(r reservation) bool { return r.Name == name })
	c.touch()
	c.kick()
	return nil
}

// refers says whether a pending or running job is in the reservation.
func (c *Cluster) refers(name string) bool {
	return slices.ContainsFunc(c.order, func(id slurmctl.JobID) bool { return c.jobs[id].Reservation == name })
}

// dropReservations forgets those that have ended, and those with PURGE_COMP that
// nobody has used for as long as that says.
func (c *Cluster) dropReservations() {
	before := len(c.reservations)
	c.reservations = slices.DeleteFunc(c.reservations, func(r reservation) bool {
		return !c.refers(r.Name) && (c.now.After(r.End) || c.purged(&r))
	})
	if len(c.reservations) != before {
		c.touch()
		c.kick()
	}
}

func (c *Cluster) purged(r *reservation) bool {
	for _, f := range r.Flags {
		if text, ok := strings.CutPrefix(f, "PURGE_COMP="); ok {
			after := time.Minute
			if n, err := time.ParseDuration(text + "m"); err == nil {
				after = n
			}
			return c.now.Sub(r.Start) > after && c.now.Sub(r.used) > after
		}
	}
	return false
}
