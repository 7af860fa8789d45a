package controller

import "time"

// clock is the core's clock: it begins with the machine's clock and then runs evenly, whatever is
// done to the machine's.
type clock struct {
	begun time.Time     // with its monotonic reading
	skew  time.Duration // lead of the machine's clock, as last reported
}

// clockSlack is how far both may drift apart: less is being slewed, not set.
const clockSlack = 2 * time.Second

func startClock() *clock { return &clock{begun: time.Now()} }

// now returns the time. It is safe for concurrent use.
func (c *clock) now() time.Time { return c.begun.Add(time.Since(c.begun)).Round(0) }

// set returns the change of the machine's clock since the last call, or 0.
func (c *clock) set() time.Duration {
	by := time.Now().Round(0).Sub(c.now()) - c.skew
	if by.Abs() < clockSlack {
		return 0
	}
	by = by.Round(time.Second)
	c.skew += by
	return by
}
