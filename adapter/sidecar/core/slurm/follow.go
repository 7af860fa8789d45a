package slurm

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Promised returns the current and coming steps of a job, with its own nodes. A job that is kept back keeps
// the nodes that it has, for as long as if it were planned now.
func Promised(c *state.Core, j *state.Job, now int64) []msg.PlannedStep {
	steps := j.Plan[min(max(j.Step-1, 0), len(j.Plan)):]
	if j.Kept == nil || !j.Runs() {
		return steps
	}
	have, late := j.Nodes(), int64(0)
	if next := j.Next(); next != nil {
		late = c.Until(now, next.Start) - next.Start
	}
	all := make([]msg.PlannedStep, len(steps))
	for i, step := range steps {
		all[i] = msg.PlannedStep{Start: step.Start, End: step.End + late, Nodes: msg.Common(have, step.Nodes)}
	}
	return all
}

// Local translates node names to their positions in a pool (ascending indices into the cluster's nodes). It
// leaves out names that are not in the pool.
func Local(s *state.Snapshot, pool []int, names []string) []int {
	var all []int
	for _, name := range names {
		if i, ok := s.Index[name]; ok {
			if at, ok := slices.BinarySearch(pool, i); ok {
				all = append(all, at)
			}
		}
	}
	return all
}

// Free reports whether no job holds any of these nodes and all are usable at once.
func Free(s *state.Snapshot, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		i, ok := s.Index[name]
		return !ok || !Idle(s, i)
	})
}

// Idle reports whether no job holds a node and it is usable at once.
func Idle(s *state.Snapshot, i int) bool {
	n := &s.Nodes[i]
	return !s.InUse[n.Name] && (n.Awake() || s.LeftToSlurm && n.Usable() && n.Power() == slurmctl.PoweredDown)
}
