package outcome

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
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

	ByPlan *ByPlan `json:"by_plan,omitempty"` // if nodes stayed on
}

// Others returns the kWh of nodes without jobs.
func (e *Energy) Others() float64 { return e.KWh - e.Busy }

// ByPlan holds what the same jobs, at the same times, would take if a plan that knows them all switched idle nodes off.
type ByPlan struct {
	KWh   float64 `json:"kwh"`
	Boots int     `json:"boots"`
}

// UserEnergy holds the kWh of a user's jobs.
type UserEnergy struct {
	User int     `json:"user"`
	KWh  float64 `json:"kwh"`
}

// NewEnergy returns the energy of node-seconds in each state, of these on held and idle nodes, and of users' jobs.
func NewEnergy(w energy.Watts, drawn energy.Seconds, heldIdle float64, users map[int]float64) *Energy {
	e := &Energy{Watts: w.ByName(), KWh: w.KWh(drawn), HeldIdle: w[energy.Idle] * heldIdle / 3.6e6}
	for s, part := range []*float64{&e.Busy, &e.Idle, &e.Boot, &e.Shutdown, &e.Off} {
		*part = w[s] * float64(drawn[s]) / 3.6e6
	}
	for u, kwh := range users {
		e.Users = append(e.Users, UserEnergy{u, kwh})
	}
	slices.SortFunc(e.Users, func(a, b UserEnergy) int { return cmp.Or(cmp.Compare(b.KWh, a.KWh), cmp.Compare(a.User, b.User)) })
	return e
}

// OffByPlan returns the energy of a run, up to second end, whose idle nodes go off in every gap in which that saves energy, and boot
// before it ends. No job waits for that: it is a bound for plans, which do not know all jobs.
func (r *Run) OffByPlan(w energy.Watts, end, shutdown, boot int64) *ByPlan {
	var total energy.Seconds
	p := new(ByPlan)
	for _, u := range r.Uses(end) {
		total[energy.Busy] += int64(u.Nodes) * (u.To - u.From)
	}
	for _, g := range Gaps(r.Nodes, end, r.Uses(end)) {
		boots := boot
		if g.Last {
			boots = 0
		}
		spent := w.Gap(g.Length, shutdown, boots)
		total.Add(spent, g.Nodes)
		if spent[energy.Boot] > 0 {
			p.Boots += g.Nodes
		}
	}
	p.KWh = w.KWh(total)
	return p
}

// mostUsersShown bounds the users in a table.
const mostUsersShown = 10

// Table writes it for people.
func (e *Energy) Table(out io.Writer) error {
	var shown []string
	for _, u := range e.Users[:min(len(e.Users), mostUsersShown)] {
		shown = append(shown, fmt.Sprintf("%d: %.2f", u.User, u.KWh))
	}
	if more := len(e.Users) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	_, err := fmt.Fprintf(out, "kWh: %.2f: %.2f with jobs, %.2f idle (%.2f of it held), %.2f booting, %.2f shutting down, %.2f off\nkWh by user: %s\n",
		e.KWh, e.Busy, e.Idle, e.HeldIdle, e.Boot, e.Shutdown, e.Off, strings.Join(shown, ", "))
	if err == nil && e.ByPlan != nil {
		_, err = fmt.Fprintf(out, "kWh if a plan that knows all jobs switched idle nodes off: %.2f, with %d boots\n", e.ByPlan.KWh, e.ByPlan.Boots)
	}
	return err
}
