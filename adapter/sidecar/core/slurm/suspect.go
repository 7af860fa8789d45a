package slurm

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// suspectFor is how long all jobs avoid nodes that Slurm calls idle, but gives to no job. A node from which a
// job was shrunk is refused after each exclusive job that is killed on it, until it answers a ping: after a
// third of SlurmdTimeout at most (docs/slurm-bugs.md, 5). See act/miscount.go for the nodes that the sidecar knows.
const suspectFor = 40 * time.Second

// mostDoubts is how many expanders of a user in a row make all jobs avoid their nodes. The user may have
// caused further failures, and must not keep nodes from others that way.
const mostDoubts = 2

// SuspectNodes marks the nodes of a job's expander that Slurm did not start, unless it puts another job first.
func SuspectNodes(c *state.Core, j *state.Job, nodes []string, err error) {
	if err == nil {
		delete(c.Doubts, j.UID)
	}
	var pending *slurmctl.PendingError
	if !errors.As(err, &pending) || slurmctl.KindOf(pending.Reason) != slurmctl.NodesReason && pending.Reason != "" || pending.Reason == "Priority" || errors.Is(err, context.Canceled) {
		return
	}
	if c.Doubts[j.UID] >= mostDoubts {
		return
	}
	c.Doubts[j.UID]++
	for _, n := range nodes {
		c.Suspect[n] = c.Now.Add(suspectFor)
		Used(c, n) // perhaps, before the sidecar started
	}
	c.Log.WithField("nodes", slurmctl.CompressNodes(nodes)).Warn("Slurm starts nothing on these idle nodes, looking for others")
}

// IsSuspect reports whether any of the nodes must be avoided for now.
func IsSuspect(c *state.Core, nodes []string) bool {
	maps.DeleteFunc(c.Suspect, func(_ string, until time.Time) bool { return c.Passed(c.Now, until) })
	for _, n := range nodes {
		if _, ok := c.Suspect[n]; ok {
			return true
		}
	}
	return false
}
