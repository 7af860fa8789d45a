package talk

import (
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// answerLetGo answers a call for a job that was let go with what it has, and that nothing more comes. It reports false
// for other jobs.
func answerLetGo(c *state.Core, k *state.OpenCall) bool {
	in := c.Refused[slurmctl.JobID(k.Job)]
	if c.Snapshot == nil || !in.LetGo && !(in.Drained && c.Releases()) {
		return false
	}
	a := api.Allocation{Ready: true, Done: true, Note: adopt.LetGoWords, Job: k.Job, Step: max(in.Step, 1), Drive: in.Drive, Parts: []api.Part{}}
	if k.Next != nil {
		a.Step = k.Next.From
	}
	a.Steps = a.Step
	base := c.Snapshot.ByID[slurmctl.JobID(k.Job)]
	if base == nil || len(base.NodeList) == 0 {
		c.NextCycle = c.Now
		c.Emit(msg.Reply{ID: k.ID, Err: api.Errorf(api.ErrUnavailable, "%s is not running yet", msg.JobNumber(k.Job))})
		return true
	}
	a.Parts = append(a.Parts, lend.Part(c, base.ID, base.NodeList))
	for i := range c.Snapshot.Jobs {
		r := &c.Snapshot.Jobs[i]
		if own, ours := state.ParseHoldName(r.Name); ours && own.Job == base.ID && r.UID == base.UID && r.State == slurmctl.Running && strings.Contains(r.Comment, request.ExpanderMark) {
			a.Parts = append(a.Parts, lend.Part(c, r.ID, r.NodeList))
		}
	}
	for _, p := range a.Parts {
		a.Nodes += len(p.NodeList)
	}
	c.Emit(msg.Reply{ID: k.ID, Allocation: a})
	return true
}
