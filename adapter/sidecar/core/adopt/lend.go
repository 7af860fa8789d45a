package adopt

import "github.com/evoslurm/evoslurm/adapter/sidecar/core/state"

// The profile of a malleable job holds the smallest number of nodes of every step. These nodes, the job's own
// nodes, are planned and promised like those of any evolving job. Nodes beyond them are lent until another job
// needs them. Which nodes are lent follows from what the job has and what is planned for it. So it is known
// after a restart as well, whatever was under way.
//
// Other jobs are planned as if lent nodes were free after the time in which the job can be made to give them
// back (recall). So a planned start or growth may count on them, and the manager demands them in time
// (manage.go). offers.go describes how the application is asked.

// IsMalleable reports whether the job may have more nodes than its profile says.
func IsMalleable(j *state.Job) bool { return j.Malleable != nil && j.Mode.Resizes }

// MostOf returns how many nodes the job may have in a step, from 1.
func MostOf(j *state.Job, step int) int {
	if step < 1 || step > len(j.Profile) {
		return 0
	}
	if least := j.Profile[step-1].Nodes; IsMalleable(j) && step <= len(j.Malleable.Max) {
		return max(j.Malleable.Max[step-1], least)
	}
	return j.Profile[step-1].Nodes
}
