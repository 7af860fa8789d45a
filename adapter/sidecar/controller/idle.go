package controller

import (
	"context"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

const (
	// idleWritten is how often the database gets the nodes that were idle.
	idleWritten = time.Minute
	// mostUnseen is the longest time between two cycles that counts.
	mostUnseen = 10 * time.Minute
)

// idleTime adds up nodes that are awake without a job.
type idleTime struct {
	now   msg.Idle  // since then
	since time.Time // zero: nothing is known
	from  time.Time // of what is not written yet
	sum   store.Idle
}

// sees takes the nodes that are idle from now on. It returns what must be written at present, and whether there is any.
func (t *idleTime) sees(idle msg.Idle, now time.Time) (store.Idle, bool) {
	if took := now.Sub(t.since); !t.since.IsZero() && took > 0 && took <= mostUnseen {
		t.sum.Seconds += took.Seconds() * float64(t.now.Nodes)
		t.sum.Joules += took.Seconds() * t.now.Watts
	}
	t.now, t.since = idle, now
	if due := now.Sub(t.from); due >= 0 && due < idleWritten {
		return store.Idle{}, false
	}
	sum := t.sum
	t.sum, t.from = store.Idle{}, now
	return sum, sum.Seconds > 0
}

// countIdle writes which nodes were idle.
func (c *Controller) countIdle(now time.Time) {
	if sum, due := c.idle.sees(c.view.Load().Idle, now); due {
		if err := c.store.AddIdle(context.WithoutCancel(c.ctx), now, sum); err != nil {
			c.log.WithError(err).Warn("cannot record idle nodes")
		}
	}
}
