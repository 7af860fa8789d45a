package drive

import (
	"context"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// slurmctld's backfill scheduler holds the locks that most commands wait for, for two seconds at a
// time, and then rests for its interval. Commands that can wait avoid it, and also the moment when
// it is about to begin: a command just before that would wait all the same.

// backfill tracks the scheduler. It is safe for concurrent use.
type backfill struct {
	mu sync.Mutex
	Rhythm
}

// Rhythm holds what is known of the scheduler's work and rest.
type Rhythm struct {
	Interval time.Duration // for which it rests
	Seen     time.Time     // at work, last
	Next     time.Time     // it does not begin again before
}

// Rhythm returns what the driver knows of the backfill scheduler.
func (d *Driver) Rhythm() Rhythm {
	d.backfill.mu.Lock()
	defer d.backfill.mu.Unlock()
	return d.backfill.Rhythm
}

// SetRhythm sets what the driver knows of the backfill scheduler, from that of another one.
func (d *Driver) SetRhythm(r Rhythm) {
	d.backfill.mu.Lock()
	defer d.backfill.mu.Unlock()
	d.backfill.Rhythm = r
}

// askAgain is how long the scheduler counts as busy once it was seen busy.
const askAgain = 500 * time.Millisecond

// rests reports whether the scheduler rests, as far as that is known without asking.
func (b *backfill) rests(now time.Time) (rests, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case now.Sub(b.Seen) < askAgain:
		return false, true
	case now.Before(b.Next):
		return true, true
	case now.Before(b.Next.Add(b.Interval / 10)): // about to begin
		return false, true
	}
	return true, false
}

// learn updates the state; ended is the earliest time at which its last cycle can have ended.
func (b *backfill) learn(now time.Time, busy bool, ended time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if busy {
		b.Seen = now
		return
	}
	b.Next = msg.Later(ended, b.Seen).Add(b.Interval)
	if latest := now.Add(b.Interval); b.Next.After(latest) { // by a clock that is ahead
		b.Next = latest
	}
}

func (b *backfill) setInterval(interval time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Interval = interval
}

// resting returns nil if slurmctld's backfill scheduler is not busy, or this is unknown.
func (d *Driver) resting(ctx context.Context) error {
	rests, known := d.backfill.rests(d.Clock())
	if !known {
		if busy, ended, err := d.Slurm.Backfill(ctx); err == nil {
			d.backfill.learn(d.Clock(), busy, ended)
			rests, _ = d.backfill.rests(d.Clock())
		}
	}
	if !rests {
		return msg.ErrBackfilling
	}
	return nil
}
