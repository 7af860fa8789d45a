package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// promise is the core's word that polls decide nothing until a time if nothing happens (core.Core.Still). It is
// checked where all polls are made.
type promise struct {
	until   time.Time      // zero: no promise
	version uint64         // the cluster's
	jobs    []slurmctl.Job // in the last poll
	kept    bool           // it was given before the last step, and kept in it
}

// showsSame reports whether two polls show the same of a job, as far as that may change without a new version of
// the cluster.
func showsSame(a, b slurmctl.Job) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.Reason == b.Reason && a.StartTime.Equal(b.StartTime)
}

// mayCheckPromise reports whether promises can be checked: all polls are made, and what Slurm shows changes only at the
// seconds of the sidecar's clock.
func (h *history) mayCheckPromise() bool { return !h.s.Skip && h.s.Skewed == 0 }

// checkPromise checks the effects of a step against the promise, and then takes the next one.
func (h *history) checkPromise(now time.Time, inputs []msg.Input, effects []msg.Effect) {
	p, version := &h.promise, h.s.Cluster.Version()
	quiet := true
	for _, in := range inputs {
		switch in := in.(type) {
		case msg.Observation:
			quiet = quiet && in.Err == nil && slices.EqualFunc(p.jobs, in.Jobs, showsSame)
			p.jobs = in.Jobs
		case msg.Planned, msg.Tick:
		default:
			quiet = false
		}
	}
	p.kept = false
	if !quiet || p.version != version || !now.Before(p.until) {
		p.until = time.Time{}
	}
	for _, e := range effects {
		switch e.(type) {
		case msg.Poll, msg.PollNodes, msg.Plan, msg.Resize, msg.Wake, msg.SaveDelay: // what is measured is no decision
			continue
		}
		if !p.until.IsZero() {
			h.blame(fmt.Errorf("the core promised to decide nothing until %s, and decides %v", stamp(p.until.Sub(h.s.Base)), e))
		}
		p.until = time.Time{}
		return
	}
	p.kept = !p.until.IsZero()
	if !p.kept && h.s.Seen == version && !h.s.core.PutOff() {
		p.until, p.version = h.s.core.Still(), version
	}
}
