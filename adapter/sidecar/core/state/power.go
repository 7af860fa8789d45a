package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm switches off unused nodes, including held ones, and switches them on for a job, which is CONFIGURING
// until they are up. That would delay a growth. So nodes that are off count as free from the latest time at
// which they can be up, and the nodes of a hold are switched on that long before. That applies to a start as
// well, but a start is replanned with every poll: it comes as soon as the nodes are up. The sidecar keeps
// nodes on that could no longer be switched off and on in time.
//
// If the sidecar may not switch nodes on (as an operator), Slurm does: a job that begins on nodes that are off
// is late by the time that they take.

// PowerCycle is how often slurmctld checks the nodes' power: every ten seconds, whatever the timeouts.
const PowerCycle = 10 * time.Second

// Power holds what is known about nodes that are switched off and on.
type Power struct {
	Saving slurmctl.PowerSaving
	On     bool                 // Slurm saves power
	Since  map[string]PowerSeen // nodes that are not simply on
	Asked  map[string]time.Time // when nodes were last requested to come up
	Kept   map[string]time.Time // when nodes were last kept on
	Denied time.Time            // no requests before this time
	Failed []string             // nodes that the latest poll shows not to have come up
	Except slurmctl.PowerExceptions
	ByPlan PowerPlan

	Arrivals Arrivals
}

// HoursOfWeek is how many hours a week has.
const HoursOfWeek = 168

// Arrivals holds what was learnt of jobs that nobody planned. Owner: power.
type Arrivals struct {
	Hours   map[string][]ArrivalHour // by partition: the hours of the week, in UTC, from Monday 0:00
	Hour    int                      // the present one
	Entered time.Time                // since when it is watched; zero: it is not
	Begun   time.Time                // of the present period
	Taken   map[string]int           // nodes that jobs took in it, by partition
}

// ArrivalHour holds what was learnt of an hour of the week.
type ArrivalHour struct {
	Weeks int   // in which the hour was watched
	Nodes []int // nodes that jobs took in the last periods with such jobs, oldest first
}

// PowerPlan holds which idle nodes are off by plan, or would be, and what that saves. Owner: power.
type PowerPlan struct {
	Naps    map[string]Nap
	Reserve map[string]int // nodes that stay awake without a planned use, by partition
	As      config.PowerMode
	Why     string    // why no node goes off by plan at present; "" if nodes may
	Looked  time.Time // when the idle nodes were last judged
	Sent    time.Time // when nodes were last requested to go off
	Woken   time.Time // when nodes were last requested to come up for the reserve
	Told    time.Time // when the figures were last logged

	From, Counted time.Time // the period of the figures
	Joules        float64   // saved, or that would have been saved
	Boots         int       // of nodes that were off by plan, or would have been

	Failures []time.Time // when nodes did not come up, of the last hour
	Paused   time.Time   // until when no node goes off
	Because  string      // why it is paused
}

// Nap is the time for which a node is off by plan, or would be.
type Nap struct {
	Since time.Time
	Until int64 // its first planned use, in Unix seconds; planner.Forever if there is none
	IsOff bool  // Slurm has shown it so
}

// PowerSeen holds the power state of a node, and since when it has been seen.
type PowerSeen struct {
	Power slurmctl.Power
	Since time.Time
}

// SetSaving is called when Slurm's configuration was read.
func (p *Power) SetSaving(cfg slurmctl.Config) {
	p.Saving, p.On = cfg.PowerSaving()
	p.Except = cfg.PowerExceptions()
	if p.Since == nil {
		p.Since, p.Asked, p.Kept = map[string]PowerSeen{}, map[string]time.Time{}, map[string]time.Time{}
		p.ByPlan.Naps, p.ByPlan.Reserve = map[string]Nap{}, map[string]int{}
		p.Arrivals.Hours, p.Arrivals.Taken = map[string][]ArrivalHour{}, map[string]int{}
	}
}

// Up returns how long a node that is off may take to come up, from the request on.
func (p *Power) Up() time.Duration { return p.Saving.ResumeTimeout + PowerCycle }

// Down returns how long a node that goes off cannot be requested to come up.
func (p *Power) Down() time.Duration { return p.Saving.SuspendTimeout + PowerCycle }

// Wave returns how much longer it takes until so many nodes are up, because Slurm powers up only some at a time (ResumeRate).
func (p *Power) Wave(nodes int) time.Duration {
	if p.Saving.ResumeRate == 0 {
		return 0
	}
	return time.Duration(nodes) * time.Minute / time.Duration(p.Saving.ResumeRate)
}

// Leaves reports whether Slurm must switch nodes on, since the sidecar may not.
func (p *Power) Leaves(now time.Time) bool { return now.Before(p.Denied) }
