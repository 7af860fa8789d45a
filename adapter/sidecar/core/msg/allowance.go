package msg

import "time"

// Allowance bounds how often chores use slurmctld, and lets some of them through at once.
type Allowance struct {
	Left float64
	At   time.Time
}

const (
	// choresAtFullShare is how many far holds or mirrored starts a share of 1 allows in a second. It is a rate, not
	// what one costs on some machine: each makes Slurm's backfill scheduler start over where it yields, which it
	// does every 2 s. With the default share of 0.01, one comes in 4 s, so that every other yield goes on.
	choresAtFullShare = 25
	// choresSaved is how many chores may come at once after a quiet time.
	choresSaved = 50
)

// Take uses one unit of the allowance, if one is left. The share of slurmctld's time decides how fast units come back.
func (a *Allowance) Take(now time.Time, share float64) bool {
	if a.At.IsZero() {
		a.Left = choresSaved
	} else if passed := now.Sub(a.At); passed > 0 {
		a.Left = min(a.Left+passed.Seconds()*share*choresAtFullShare, choresSaved)
	}
	a.At = now
	if a.Left < 1 {
		return false
	}
	a.Left--
	return true
}

// Quota counts events by the time at which all are forgotten; zero: none was written recently.
type Quota time.Time

// Take reports whether one more event may be written, with at most `most` at once and one per interval.
func (q Quota) Take(now time.Time, most int, every time.Duration) (Quota, bool) {
	after := Later(time.Time(q), now).Add(every)
	if after.Sub(now) > time.Duration(most)*every {
		return q, false
	}
	return Quota(after), true
}
