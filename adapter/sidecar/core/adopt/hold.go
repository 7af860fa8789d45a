package adopt

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// The nodes of a growth are promised to a job that keeps to its profile. Once a step overruns by more than
// grace, the promise lapses: the sidecar holds nothing for the coming steps, and other jobs may have the
// nodes. The plan then ends with the current step, which is also how the database records it. When the job
// ends its step, the sidecar replans the rest.
//
// A planned step may last longer than its profile says (expand limits). An application that goes on until then
// is not late, since no other job waits for it. The later of two times counts: the profile's end, and the
// plan's end before the step exceeded it.
//
// A promise also lapses when an operator cancels the holds to use the nodes for something else, and when it
// cannot be kept beside the plan of a job that began before (refit).

// Lapsed reports whether a job is promised nothing except the nodes that it has.
func Lapsed(j *state.Job) bool {
	return j.State == row.Running && !j.Last() && j.Step > 0 && len(j.Plan) == j.Step
}
