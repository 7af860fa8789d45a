package controller

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Whatever changes Slurm runs beside the loop: slurmctld may let a command wait for
// seconds, while its backfill scheduler holds the locks, and nobody's growth is to
// wait for the StartTime of somebody who has hours. There is no queue: what is to be
// done is found anew from the present state each time something has ended, most
// urgent first, and begun if there is room. A job has one change at a time.

const (
	// atOnce bounds how many changes run at once; holds may take half of that, so that
	// there is always room for starts, growths and shrinks.
	atOnce = 16
	// chorePause is the least time between two of those that can wait (far holds, and
	// the plan's mirror): after each, slurmctld's scheduler holds the locks.
	chorePause = 250 * time.Millisecond
	// againAfter is when what failed is tried again, unless its job says.
	againAfter = 2 * time.Second
)

// work is what runs beside the loop.
type work struct {
	all     sync.WaitGroup
	running int
	chore   bool                 // one of what can wait runs
	chored  time.Time            // when the last one ended
	keys    map[string]bool      // of what runs and is of no job
	retry   map[string]time.Time // and is not tried before
}

// room says whether one more change may begin.
func (w *work) room() bool { return w.running < atOnce }

// roomForHolds says the same of one that starts, growths and shrinks go before.
func (w *work) roomForHolds() bool { return w.running < atOnce/2 }

// beside runs run beside the loop, then result on its goroutine. Until then the job, if
// there is one, is busy; what is of no job has a key by which it runs once at a time,
// and after a failure not at once again.
//
// It says false where that is so.
func (c *Controller) beside(j *job, key string, run func(context.Context) error, result func(error)) bool {
	if j != nil {
		j.busy = true
	} else if c.work.keys[key] || time.Now().Before(c.work.retry[key]) {
		return false
	} else {
		c.work.keys[key] = true
	}
	c.work.running++
	c.work.all.Add(1)
	go func() {
		defer c.work.all.Done()
		err := run(c.ctx)
		c.post(func() {
			c.work.running--
			switch {
			case j != nil:
				j.busy = false
			case err != nil:
				c.work.retry[key] = time.Now().Add(againAfter)
				delete(c.work.keys, key)
			default:
				delete(c.work.retry, key)
				delete(c.work.keys, key)
			}
			result(err)
		})
	}()
	return true
}

// do runs one action on a job beside the loop. The intent is written before, and
// settled with the outcome after; then result runs on the loop's goroutine. A
// failed action is tried again later, less and less often. It says false where
// the intent cannot be written: what cannot be written down is not done.
func (c *Controller) do(j *job, action, detail string, run func(context.Context) error, result func(error)) bool {
	intent, ok := c.intend(j, action, detail)
	if !ok {
		return false
	}
	begun := time.Now()
	c.beside(j, "", run, func(err error) {
		j.touched = time.Now()
		entry := c.logJob(j).WithField("action", action).WithField("seconds", time.Since(begun).Seconds())
		c.together(func() {
			c.settle(intent, err)
			if err != nil {
				j.failed(action, err, time.Now())
				c.event(j, "failed", map[string]any{"action": action, "detail": detail, "error": err.Error()})
				entry.WithError(err).Warn("an action failed; it will be tried again")
			} else {
				j.failures, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
				entry.Debug(detail)
			}
			result(err)
		})
		c.nextCycle = time.Now() // see what came of it
	})
	return true
}

// chore is beside for what can wait: one at a time, and not while slurmctld would let it
// wait (errBackfilling). It says false where it cannot begin yet.
func (c *Controller) chore(kind *allowance, j *job, run func(context.Context) error, result func(error)) bool {
	w, now := &c.work, time.Now()
	if w.chore || !w.roomForHolds() || now.Before(w.nextChore(c.pace.gated)) || !kind.take(now, c.cfg.Slurm.Share) {
		return false
	}
	w.chore = true
	c.beside(j, "", c.gently(run), func(err error) {
		w.chore, w.chored = false, time.Now()
		if errors.Is(err, errBackfilling) {
			w.chored = w.chored.Add(againAfter)
			return
		}
		result(err)
	})
	return true
}

// nextChore is the earliest time of the next chore.
func (w *work) nextChore(gated bool) time.Time {
	if !gated {
		return w.chored
	}
	return w.chored.Add(chorePause)
}

// An allowance bounds how often slurmctld is bothered with what can wait, and lets
// some of it by at once.
type allowance struct {
	left float64
	at   time.Time
}

const (
	// choreCost is what a far hold or a mirrored start is taken to cost slurmctld: 1 ms
	// itself, and 20 ms in its scheduler, which it makes start over.
	choreCost = 20 * time.Millisecond
	// choresSaved is how many may come at once after a quiet time.
	choresSaved = 50
)

// take uses the allowance up by one, if there is one left. Half of share, a part of
// slurmctld's time, may go into it.
func (a *allowance) take(now time.Time, share float64) bool {
	if a.at.IsZero() {
		a.left = choresSaved
	} else if passed := now.Sub(a.at); passed > 0 {
		a.left = min(a.left+passed.Seconds()*share/2/choreCost.Seconds(), choresSaved)
	}
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}
