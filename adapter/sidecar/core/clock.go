package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// stillSlack is how late a call of the core may be before the core suspects that the machine slept.
const stillSlack = 10 * time.Second

// watchStill finds out whether the sidecar stood still although the core should have been called.
func watchStill(c *state.Core, now time.Time) {
	last := c.Tick
	c.Tick = now
	if last.IsZero() {
		c.Awake = now
		return
	}
	if still := now.Sub(last) - max(c.Wait, 0); still >= stillSlack {
		c.Log.WithField("seconds", int(still.Seconds())).Warn("the sidecar was stopped; counting overruns from now on")
		c.Event(nil, "stood still", map[string]any{"seconds": int(still.Seconds())})
		c.Awake = now
	}
}

// clockSet takes over that Slurm's clock was set.
func clockSet(c *state.Core, by time.Duration) {
	c.Skew += by
	entry := c.Log.WithField("seconds", int(by.Seconds()))
	entry.Warn("system clock changed, replanning all jobs")
	if by < 0 {
		entry.Warn("slurmctld starts no queued job until the clock reaches the old time or slurmctld restarts")
	}
	c.Event(nil, "clock stepped", map[string]any{"seconds": int(by.Seconds())})
	back := msg.Clock{Skew: by}.In // for times that were read from the old clock
	for _, j := range c.Active {
		j.ClockSet(by)
		c.Save(j)
		c.Unsaved[j] = true
	}
	for id, known := range c.Known { // or a job would not be known again
		back(&known.Submitted)
		c.Known[id] = known
	}
	c.Tries.Changed++ // times of the snapshot and of jobs
	pace.ClockSet(c, by)
	for _, all := range []map[string]slurmctl.Reservation{c.Reservations, c.StuckHolds} {
		for name, r := range all {
			back(&r.Start, &r.End)
			all[name] = r
		}
	}
	c.Delays.Seen = 0
	if back(&c.CountsFrom); by < 0 {
		c.CountsFrom = msg.Later(c.CountsFrom, c.Now.Add(-by))
	}
	c.NextCycle, c.Stepped, c.Pace.Pause, c.Pace.Debt = c.Now, c.Now, 0, 0
}

// noteLead records how far slurmctld's clock is ahead of this host's. The shell goes by slurmctld's.
func noteLead(c *state.Core, lead time.Duration) {
	if (lead == 0) == (c.Lead == 0) && (lead-c.Lead).Abs() <= state.ClockSlack {
		return
	}
	if c.Lead = lead; lead == 0 {
		c.Log.Info("slurmctld's clock agrees with this host's again")
		return
	}
	c.Log.WithField("seconds", int(lead.Seconds())).Warn("slurmctld's clock differs from this host's: going by slurmctld's; set the clocks (NTP), MUNGE refuses 300 s")
}
