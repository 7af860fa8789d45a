package adopt

import (
	"errors"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// A sidecar that only observes adopts no job. Jobs of an earlier run stay in the database as they are, and their
// Slurm jobs count as stock jobs. A later start in mode act continues with them.

// ErrObserving is why no job is driven.
var ErrObserving = errors.New("the sidecar only observes (mode: observe): evolving jobs are not driven yet")

// restoreUndriven does what Restore does while the sidecar only observes.
func restoreUndriven(c *state.Core, books msg.Books) {
	for _, b := range books.Ended {
		c.Ended = append(c.Ended, restored(c, b))
	}
	slurm.RestoreEpilogs(c, books.Epilogs)
	if n := len(books.Active); n > 0 {
		c.Log.WithField("jobs", n).Warn("jobs of an earlier run are not driven while the sidecar only observes; their scripts wait for its next start in mode act")
	}
	c.Event(nil, "sidecar started", map[string]any{"version": c.Site.Version, "jobs": 0, "mode": string(c.Config.Mode)})
}

// Observe names each job with a marker once, and leaves it as it is.
func Observe(c *state.Core, s *state.Snapshot) {
	state.UnmuteAll(c)
	forgetRead(c, s)
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if !isStranger(c, r) {
			continue
		}
		if _, asked, err := plan.Mark(c, r); !asked && err == nil {
			continue
		}
		c.Refused[r.ID] = state.Refused{Job: Stranger(r, ErrObserving.Error()), Since: c.Now}
		c.WarnOf(r.UID, c.Log.WithField("job", r.ID).WithField("user", r.User), "an evolving job is not driven, and stays as it is: the sidecar only observes",
			"not driven", map[string]any{"slurm_id": r.ID, "uid": r.UID, "user": r.User, "mode": string(c.Config.Mode)})
	}
}
