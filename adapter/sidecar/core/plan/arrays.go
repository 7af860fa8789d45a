package plan

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// underWay counts the running tasks of arrays with a limit.
func underWay(c *state.Core) map[slurmctl.JobID]int {
	under := map[slurmctl.JobID]int{}
	for _, j := range c.Active {
		if of := j.Record.ArrayJobID; j.State != row.Queued && c.Arrays[of].Most > 0 {
			under[of]++
		}
	}
	return under
}

// throttled counts a queued task of an array as one that runs next, or drops its plan if as many others come first as
// may run at once.
func throttled(c *state.Core, j *state.Job, under map[slurmctl.JobID]int) bool {
	of := j.Record.ArrayJobID
	most := c.Arrays[of].Most
	if most == 0 {
		return false
	}
	if under[of] >= most {
		dropPlan(c, j, fmt.Sprintf("waits for other tasks: at most %d of its array run at once", most))
		return true
	}
	under[of]++
	return false
}
