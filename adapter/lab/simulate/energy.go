package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Energy holds what the nodes drew from the start to the last end, in kWh. KWh is the sum of Busy to Off.
type Energy struct {
	Watts    map[string]float64 `json:"watts"` // by state
	KWh      float64            `json:"kwh"`
	Busy     float64            `json:"busy"` // nodes with jobs
	Idle     float64            `json:"idle"`
	HeldIdle float64            `json:"held_idle"` // part of Idle, on held nodes
	Boot     float64            `json:"boot"`
	Shutdown float64            `json:"shutdown"`
	Off      float64            `json:"off"`
	Users    []UserEnergy       `json:"users"` // most energy first
}

// UserEnergy holds the kWh of a user's jobs.
type UserEnergy struct {
	User int     `json:"user"`
	KWh  float64 `json:"kwh"`
}

// drawing counts the nodes in each state.
func drawing(c *slurmsim.Cluster) energy.Seconds {
	all, busy := c.Powers()
	return energy.Seconds{
		energy.Busy: int64(busy[slurmctl.PowerOn]), energy.Idle: int64(all[slurmctl.PowerOn] - busy[slurmctl.PowerOn]),
		energy.Boot: int64(all[slurmctl.PowerUp]), energy.Shutdown: int64(all[slurmctl.PowerDown]), energy.Off: int64(all[slurmctl.PoweredDown]),
	}
}

// Account computes the energy of the run, its jobs, and its users. A job draws what a busy node does on every node that it
// has, from its start. What its expanders draw until they are merged counts for the run only.
func (r *Result) Account(w energy.Watts) {
	m := &r.Metrics
	drawn := r.Drawn
	if drawn == (energy.Seconds{}) {
		drawn = energy.Seconds{energy.Busy: int64(m.Allocated), energy.Idle: int64(max(m.Idle, 0))}
	}
	kwh := func(s energy.State, seconds float64) float64 { return w[s] * seconds / 3.6e6 }
	e := &Energy{Watts: w.ByName(), KWh: w.KWh(drawn), HeldIdle: kwh(energy.Idle, m.HeldIdle)}
	users := map[int]float64{}
	for s, part := range []*float64{&e.Busy, &e.Idle, &e.Boot, &e.Shutdown, &e.Off} {
		*part = kwh(energy.State(s), float64(drawn[s]))
	}
	for i, o := range r.Outcome() {
		if o.Start < 0 {
			continue
		}
		if o.End < 0 {
			o.End = m.Makespan
		}
		j := &r.Jobs[i]
		j.KWh = kwh(energy.Busy, sinceStart(o))
		users[j.User] += j.KWh
	}
	for u, kwh := range users {
		e.Users = append(e.Users, UserEnergy{u, kwh})
	}
	slices.SortFunc(e.Users, func(a, b UserEnergy) int { return cmp.Or(cmp.Compare(b.KWh, a.KWh), cmp.Compare(a.User, b.User)) })
	m.Energy = e
}

// sinceStart returns the node-seconds that the job had from its start: without the time for which its nodes booted.
func sinceStart(j outcome.Job) (seconds float64) {
	for i, s := range j.Sizes {
		end := j.End
		if i+1 < len(j.Sizes) {
			end = j.Sizes[i+1].At
		}
		seconds += float64(s.Nodes) * float64(max(end-max(s.At, j.Start), 0))
	}
	return seconds
}

// mostUsersShown bounds the users in a table.
const mostUsersShown = 10

// table writes it for people.
func (e *Energy) table(out io.Writer) error {
	var shown []string
	for _, u := range e.Users[:min(len(e.Users), mostUsersShown)] {
		shown = append(shown, fmt.Sprintf("%d: %.2f", u.User, u.KWh))
	}
	if more := len(e.Users) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	_, err := fmt.Fprintf(out, "kWh: %.2f: %.2f with jobs, %.2f idle (%.2f of it held), %.2f booting, %.2f shutting down, %.2f off\nkWh by user: %s\n",
		e.KWh, e.Busy, e.Idle, e.HeldIdle, e.Boot, e.Shutdown, e.Off, strings.Join(shown, ", "))
	return err
}
