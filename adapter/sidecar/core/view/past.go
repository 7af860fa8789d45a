package view

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Past returns an ended job of the database as the API shows it. It does not expand lists of nodes.
func Past(c *state.Core, b msg.BookedJob) api.Job {
	a := Describe(c, state.Restored(&b.Job, b.Past, nil))
	for i, p := range b.Plan {
		if i < len(b.Job.Profile) {
			a.Plan = append(a.Plan, api.Span{Step: i + 1, Start: p.Start, End: p.End, Nodes: b.Job.Profile[i].Nodes, NodeList: p.NodeList})
		}
	}
	return shown(c, a)
}
