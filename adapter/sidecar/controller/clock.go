package controller

import (
	"context"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
)

// clock is the core's clock: it begins with Slurm's clock and then runs evenly, whatever is
// done to the machine's.
type clock struct {
	begun time.Time     // with its monotonic reading
	from  time.Duration // lead of Slurm's clock at the start
	skew  time.Duration // lead of Slurm's clock, as last reported
}

func startClock() *clock { return &clock{begun: time.Now()} }

// now returns the time. It is safe for concurrent use.
func (c *clock) now() time.Time { return c.begun.Add(time.Since(c.begun) + c.from).Round(0) }

// set returns the change of Slurm's clock since the last call, or 0. It shows that time now.
func (c *clock) set(slurms time.Time) time.Duration {
	by := slurms.Round(0).Sub(c.now()) - c.skew
	if by.Abs() < drive.ClockSlack {
		return 0
	}
	by = by.Round(time.Second)
	c.skew += by
	return by
}

// clockPatience is how long the start waits for slurmctld's time.
const clockPatience = 5 * time.Second

// readClock sets the core's clock by slurmctld's, in which the database has its times.
func (c *Controller) readClock() {
	ctx, done := context.WithTimeout(context.Background(), clockPatience)
	defer done()
	by, err := c.driver.ReadClock(ctx)
	if c.clock.from = by; err != nil {
		c.log.WithError(err).Info("slurmctld's clock is not known yet")
	}
}

// misread returns an error if times of the database were read by another clock than slurmctld's.
func (c *Controller) misread() error {
	if !c.view.Load().LastCycle.IsZero() {
		return nil
	}
	return c.driver.Misread()
}
