package follow

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// stateDenied is the end of an evolving job whose Slurm job goes on without the sidecar.
const stateDenied = "DENIED"

// Banish refuses queued jobs that the site's lists keep from evolving since they were adopted. Jobs that have
// begun go on as planned.
func Banish(c *state.Core, s *state.Snapshot) {
	for _, j := range slices.Clone(c.Active) {
		r := s.ByID[adopt.PresentJob(c, j)]
		if j.State != row.Queued || j.Busy || j.Touched.After(s.Taken) || r == nil || r.State != slurmctl.Pending {
			continue
		}
		if why := adopt.Denied(c, s, j); why != nil {
			end(c, j, slurmctl.Job{State: stateDenied})
			adopt.RefuseAdopted(c, r, why)
		}
	}
}
