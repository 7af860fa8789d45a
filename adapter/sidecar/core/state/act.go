package state

import (
	"errors"
	"maps"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Actions holds the actions on a job: what is under way, what came of it, and what to avoid. Owner: act.
type Actions struct {
	Busy      bool                 // an action is under way
	Touched   time.Time            // when the last action ended, or was seen under way: older observations do not count
	RetryAt   time.Time            // after a failed action
	Failures  int                  // in a row
	Failing   time.Time            // since when actions fail, except those that failed because Slurm was away
	Denials   int                  // growths that the sidecar gave up
	Denial    string               // why it gave up the last one
	Denied    string               // the same, until the script has received it
	LetGo     slurmctl.JobID       // the chain's job that was last released to start
	Readied   slurmctl.JobID       // the chain's job that Slurm starts once the job before it has ended: see readyLink
	Gave      []string             // nodes that it gave back last, by GaveAt
	GaveAt    time.Time            //
	Unopened  bool                 // slurmdbd may open no row for its next run by itself: see slurmctl.ForgetsRequeued
	Shunned   map[string]time.Time // nodes on which Slurm did not start it, and until when it avoids them
	RefusedIn map[string]Refusal   // by partition
}

// TouchedAt records that an action ended, or was seen under way, at a time.
func (a *Actions) TouchedAt(at time.Time) { a.Touched = at }

// WaitUntil lets no further action begin before a time.
func (a *Actions) WaitUntil(at time.Time) { a.RetryAt = at }

// Succeeded forgets the actions that failed.
func (a *Actions) Succeeded() { a.Failures, a.Failing, a.RetryAt = 0, time.Time{}, time.Time{} }

// GaveBack records nodes that the job gave back.
func (a *Actions) GaveBack(nodes []string, at time.Time) { a.Gave, a.GaveAt = nodes, at }

// Deny records that a growth was given up, and whether the script still has to receive why.
func (a *Actions) Deny(why string, unheard bool) {
	a.Denials++
	a.Denial, a.Denied = why, ""
	if unheard {
		a.Denied = why
	}
}

// DenialHeard records that the script has received why its growth was given up.
func (a *Actions) DenialHeard() { a.Denied = "" }

// Readmit removes nodes whose time is up.
func (a *Actions) Readmit(c *Core, now time.Time) {
	maps.DeleteFunc(a.Shunned, func(_ string, until time.Time) bool { return c.Passed(now, until) })
}

// Limits holds whether a job's time limits are long enough for its plan. Owner: act.
type Limits struct {
	Extend  bool   // the plan is new and may end after the time limit
	Short   string // why its time limit cannot be as long as its plan, in words
	LastEnd int64  // then the latest Unix second at which it ends; 0: its limit is long enough
}

// MayExtend records that the plan is new, and may end after the time limit.
func (l *Limits) MayExtend() { l.Extend = true }

// The sidecar retries a failed action less and less often, but a growth not forever. When it gives
// up a growth, the job stays in its step with its nodes, and nothing is held for it. Evosctl next
// reports that to the script. The next call of evosctl next makes the core plan the growth again.

const (
	// MostPause limits the pause after a failed action. If Slurm or its
	// database does not answer, outagePause limits it, so that due actions follow soon after
	// the outage.
	MostPause   = 5 * time.Minute
	outagePause = 30 * time.Second
)

// Outage reports whether an action failed for a reason unrelated to the job.
func Outage(err error) bool {
	return Transient(err) || errors.Is(err, slurmctl.ErrNoSlurmdbd) || errors.Is(err, slurmctl.ErrDBIndex)
}

// Failed counts a failed action of the job, and sets when to try it again.
func (j *Job) Failed(action string, err error, now time.Time, wall func(time.Time) time.Time) {
	j.Failures++
	most := MostPause
	if Outage(err) {
		most = outagePause
	} else if j.Failing.IsZero() {
		j.Failing = now
	}
	pause := min(250*time.Millisecond<<min(j.Failures, 11), most)
	j.RetryAt = now.Add(pause)
	j.WaitsFor(Reason{Kind: WhyFailed, What: action, Tries: j.Failures, At: wall(j.RetryAt), Text: err.Error()})
}

// ParksKey identifies whose expanders are parked, and where. The core learns that from the output of a user's
// process, so it applies to no other user.
type ParksKey struct {
	UID            uint32
	Partition, QOS string
}
