package follow

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// preferred lists the nodes on which its coming steps should run: first the nodes that it has beyond its plan,
// then the nodes of its plan so far. If these nodes are enough for its next step, that step needs no other
// ones. With others, the job would have more than it may until it has given as many back.
func preferred(j *state.Job) []string {
	lent, planned := Lent(j), j.Planned()
	if next := j.Next(); next != nil && len(lent) > 0 && j.State == row.Waiting {
		if have := j.Nodes(); len(have) >= len(next.Nodes) {
			planned = msg.Without(planned, msg.Without(next.Nodes, have))
		}
	}
	return append(lent, msg.Without(planned, lent)...)
}
