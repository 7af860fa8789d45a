package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The sidecar retries a failed action less and less often, but a growth not forever. When it gives
// up a growth, the job stays in its step with its nodes, and nothing is held for it. Evosctl next
// reports that to the script. The next call of evosctl next makes the core plan the growth again.

const (
	// mostPause limits the pause after a failed action. If Slurm or its
	// database does not answer, outagePause limits it, so that due actions follow soon after
	// the outage.
	mostPause   = 5 * time.Minute
	outagePause = 30 * time.Second
)

// outage reports whether an action failed for a reason unrelated to the job.
func outage(err error) bool {
	return transient(err) || errors.Is(err, slurmctl.ErrNoSlurmdbd) || errors.Is(err, slurmctl.ErrDBIndex)
}

// failed counts a failed action of the job, and sets when to try it again.
func (j *job) failed(action string, err error, now time.Time, wall func(time.Time) time.Time) {
	j.failures++
	most := mostPause
	if outage(err) {
		most = outagePause
	} else if j.failing.IsZero() {
		j.failing = now
	}
	pause := min(250*time.Millisecond<<min(j.failures, 11), most)
	j.retryAt = now.Add(pause)
	j.reason = reason{kind: whyFailed, what: action, tries: j.failures, at: wall(j.retryAt), text: err.Error()}
}

// mayGiveUp gives up the growth to a number of nodes if it has failed for too long, or will
// always fail.
func (c *Core) mayGiveUp(j *job, to int, err error) {
	if err == nil || !errors.Is(err, ErrNeverMerged) && (j.failing.IsZero() || c.now.Sub(j.failing) < c.cfg.GiveUp) {
		return
	}
	text := fmt.Sprintf("the growth to %d nodes was given up: %v", to, err)
	c.event(j, "given up", map[string]any{"nodes": to, "failures": j.failures, "error": err.Error()})
	c.logJob(j).WithError(err).Warn("giving up a growth: the job keeps its nodes")
	if len(j.expanders) > 0 && c.cancelBeside("an expander", j.expanders...) {
		j.expanders = nil
	}
	j.kept = &keptBack{text: text + "; it is tried again when the job's script calls evosctl next", givenUp: true}
	j.failures, j.failing, j.retryAt, j.reason = 0, time.Time{}, time.Time{}, saying(whyKeptBack, j.kept.text)
	if j.State != row.Waiting {
		return // it only replaced lost nodes: no call waits
	}
	j.State, j.StepEnded = row.Running, time.Time{}
	c.save(j)
	j.denials++
	if j.denied = text; c.waitedFor(j) {
		j.denied = "" // the waiting calls report it
	}
	j.denial = text
	c.notify(j)
}
