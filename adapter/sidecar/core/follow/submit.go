package follow

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Submits reports whether the caller of a call can submit what brings nodes to a job. Who only reports, or changes later
// steps, may be anywhere, and does not wait.
func Submits(j *state.Job, k *state.OpenCall) bool {
	waits := k.Next != nil || k.Offer != nil || k.Answer != nil || k.Change != nil && k.Change.Grow != nil && !k.Change.DryRun
	return waits && k.Hands.Submits && k.UID == j.UID
}

// MayNotGrow returns why a job cannot grow by a call, or nil.
func MayNotGrow(j *state.Job, k *state.OpenCall) error {
	if !j.Mode.AsksJob || j.Mode.MergesGrowths || Submits(j, k) {
		return nil
	}
	who := "this client is too old for that: install evoslurm-client of the sidecar's version on the nodes"
	if k.UID != j.UID {
		who = "only a process of " + j.User + " can do that: call it in the job"
	}
	return api.Errorf(api.ErrConflict, "the sidecar is not root, so a process of the job must submit the jobs that bring its nodes, and %s", who)
}
