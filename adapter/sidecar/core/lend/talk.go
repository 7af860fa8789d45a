package lend

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/couple"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A script, user or operator may change the coming steps of a job while the job waits or runs
// (evosctl update, grow, shrink). The core finds out whether the change is possible before it
// changes anything: it plans the job as the only job that may move (TryChange). An accepted
// change is one transaction of the database. Then the sidecar writes the change to Slurm: the
// marker in the job's comment and, if the job is queued, its size and time limit. When Slurm has
// accepted that, the sidecar answers the caller. If Slurm refuses, the sidecar undoes the change.
// If the sidecar is killed in between, it continues from the database. So a change is made only
// once, and the old request does not come back if the database is lost later.

// ChangeOf returns the request and plan of a job, for the answer to a change.
func ChangeOf(c *state.Core, j *state.Job) api.Change {
	a := api.Change{Job: j.SlurmID, Step: j.Step, Profile: j.Profile.String(), Plan: []api.Span{}}
	if adopt.IsMalleable(j) {
		a.Bounds = request.BoundsOf(j.Profile, j.Malleable.Max).String()
	}
	for i := max(j.Step-1, 0); i < len(j.Plan); i++ {
		p := j.Plan[i]
		a.Plan = append(a.Plan, api.Span{Step: i + 1, Start: c.Wall(time.Unix(p.Start, 0)), End: c.Wall(time.Unix(p.End, 0)),
			Nodes: j.Profile[i].Nodes, NodeList: slurmctl.CompressNodes(p.Nodes)})
	}
	return a
}

// Allocation returns what a job holds now, with the CPUs of its nodes: evolving jobs take whole nodes.
func Allocation(c *state.Core, j *state.Job) api.Allocation {
	a := api.Allocation{Ready: true, Job: j.SlurmID, Step: j.Step, Steps: len(j.Profile), Drive: j.Drive, CPUFreq: frequency(j), Nodes: len(j.Nodes()), Parts: []api.Part{},
		Lost: j.LostSince(j.Step), Restarts: j.Restarts}
	for _, p := range j.Held {
		a.Parts = append(a.Parts, Part(c, p.ID, p.Nodes))
	}
	for i, nodes := range couple.Present(j) {
		a.Components = append(a.Components, api.Component{Name: j.Components[i].Name, NodeList: nodes})
	}
	a.Coming, a.Demand = comingStep(c, j), demanded(c, j)
	return a
}

// frequency returns the CPU frequency of the job's present step, or "". A job with frequencies that only waits for its next
// step's nodes runs slowly.
func frequency(j *state.Job) string {
	switch {
	case j.Step < 1 || j.Step > len(j.Frequencies):
		return ""
	case j.State == row.Waiting:
		return request.LowFrequency
	}
	return j.Frequencies[j.Step-1]
}

// Part returns a Slurm job that has nodes, with their CPUs.
func Part(c *state.Core, id slurmctl.JobID, nodes []string) api.Part {
	part := api.Part{Job: uint32(id), NodeList: nodes, CPUs: make([]int, len(nodes))}
	for i, name := range nodes {
		if c.Snapshot != nil {
			if n, ok := c.Snapshot.Index[name]; ok {
				part.CPUs[i] = c.Snapshot.Nodes[n].CPUs
			}
		}
	}
	return part
}

// comingStep returns what the job's next step brings and takes, or nil after the last step.
func comingStep(c *state.Core, j *state.Job) *api.Coming {
	if j.Step < 1 || j.Last() {
		return nil
	}
	a := &api.Coming{Step: j.Step + 1, Nodes: j.Profile[j.Step].Nodes}
	if next := j.Next(); next != nil {
		a.At, a.Arriving, a.Leaving = c.Wall(time.Unix(next.Start, 0)), msg.Without(next.Nodes, j.Nodes()), msg.Without(j.Nodes(), next.Nodes)
		if !j.Mode.CarriesNodes {
			a.Arriving, a.Leaving = next.Nodes, j.Nodes()
		}
		a.Handing = couple.Handing(j, next.Nodes)
	}
	return a
}
