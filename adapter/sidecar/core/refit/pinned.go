package refit

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// heedPinned replans a job that must keep a node that it was planned to give back.
func heedPinned(c *state.Core, s *state.Snapshot, j *state.Job, now int64) {
	at := slurm.Pinned(j)
	detail := map[string]any{"why": slurm.WhyBound(j, []string{at})}
	if p := slurm.Floored(j); !slices.Equal(p, j.Profile) {
		detail["profile"] = p.String()
		j.Floor(p)
		ChangeProfile(c, j)
		c.Save(j)
	}
	c.LogJob(j).WithField("node", at).Warn("a node stays with the job to its end: " + slurm.WhyBound(j, []string{at}))
	c.Event(j, "node kept", detail)
	if j.Lapsed() {
		return
	}
	if Refit(c, s, j, now, "slurmctld does not let "+at+" go") != "" {
		c.StorePlan(j, nil) // the plan does not match the profile now: FollowPlans plans it once that is possible
	}
}
