package outcome

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
)

// Energy holds what the nodes drew from the start to the last end.
type Energy struct {
	Drawn              // with the watts of nodes of no type
	Users []UserEnergy `json:"users"`           // most energy first
	Types []TypeEnergy `json:"types,omitempty"` // if nodes differ

	ByPlan *ByPlan `json:"by_plan,omitempty"` // if nodes stayed on
}

// Drawn holds what nodes drew, in kWh. KWh is the sum of Busy to Off.
type Drawn struct {
	Watts    map[string]float64 `json:"watts"` // by state
	KWh      float64            `json:"kwh"`
	Busy     float64            `json:"busy"` // nodes with jobs
	Idle     float64            `json:"idle"`
	HeldIdle float64            `json:"held_idle"` // part of Idle, on held nodes
	Boot     float64            `json:"boot"`
	Shutdown float64            `json:"shutdown"`
	Off      float64            `json:"off"`
}

// TypeEnergy holds what the nodes of a type drew.
type TypeEnergy struct {
	Type  string `json:"type"` // its nodes or feature; the last is "others"
	Nodes int    `json:"nodes"`
	Drawn
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

// NewEnergy returns the energy of users' jobs, for [Energy.Add].
func NewEnergy(users map[int]float64) *Energy {
	e := new(Energy)
	for u, kwh := range users {
		e.Users = append(e.Users, UserEnergy{u, kwh})
	}
	slices.SortFunc(e.Users, func(a, b UserEnergy) int { return cmp.Or(cmp.Compare(b.KWh, a.KWh), cmp.Compare(a.User, b.User)) })
	return e
}

// Add adds the energy of a type of nodes: of their node-seconds in each state, and of these on held and idle nodes.
func (e *Energy) Add(name string, nodes int, w energy.Watts, drawn energy.Seconds, heldIdle int64) {
	one := Drawn{Watts: w.ByName(), KWh: w.KWh(drawn), HeldIdle: w[energy.Idle] * float64(heldIdle) / 3.6e6}
	for s, part := range one.parts() {
		*part = w[s] * float64(drawn[s]) / 3.6e6
	}
	e.Watts, e.KWh, e.HeldIdle = one.Watts, e.KWh+one.KWh, e.HeldIdle+one.HeldIdle
	for s, part := range e.parts() {
		*part += *one.parts()[s]
	}
	e.Types = append(e.Types, TypeEnergy{name, nodes, one})
}

// parts returns what was drawn, by state.
func (d *Drawn) parts() []*float64 { return []*float64{&d.Busy, &d.Idle, &d.Boot, &d.Shutdown, &d.Off} }

// AddByPlan adds the energy of a type of nodes, with these uses up to second end, if a plan switched them off in every gap in which
// that saves energy, and booted them before it ends. No job waits for that: it is a bound for plans, which do not know all jobs.
func (e *Energy) AddByPlan(w energy.Watts, nodes int, end int64, uses []Use, shutdown, boot int64) {
	if e.ByPlan == nil {
		e.ByPlan = new(ByPlan)
	}
	var total energy.Seconds
	for _, u := range uses {
		total[energy.Busy] += int64(u.Nodes) * (u.To - u.From)
	}
	for _, g := range Gaps(nodes, end, uses) {
		boots := boot
		if g.Last {
			boots = 0
		}
		spent := w.Gap(g.Length, shutdown, boots)
		total.Add(spent, g.Nodes)
		if spent[energy.Boot] > 0 {
			e.ByPlan.Boots += g.Nodes
		}
	}
	e.ByPlan.KWh += w.KWh(total)
}

// String returns it for people.
func (d *Drawn) String() string {
	return fmt.Sprintf("%.2f: %.2f with jobs, %.2f idle (%.2f of it held), %.2f booting, %.2f shutting down, %.2f off",
		d.KWh, d.Busy, d.Idle, d.HeldIdle, d.Boot, d.Shutdown, d.Off)
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
	_, err := fmt.Fprintf(out, "kWh: %s\nkWh by user: %s\n", &e.Drawn, strings.Join(shown, ", "))
	for _, t := range e.Types {
		if err == nil {
			_, err = fmt.Fprintf(out, "kWh of %d nodes of type %s: %s\n", t.Nodes, t.Type, &t.Drawn)
		}
	}
	if err == nil && e.ByPlan != nil {
		_, err = fmt.Fprintf(out, "kWh if a plan that knows all jobs switched idle nodes off: %.2f, with %d boots\n", e.ByPlan.KWh, e.ByPlan.Boots)
	}
	return err
}
