package injob

import (
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// mostSteps bounds the number of steps that a rigid job's environment may name.
const mostSteps = 2000

// Rigid returns what a job has that evosbatch --rigid submitted: its nodes, in every step. It reports false for other
// jobs. The sidecar knows nothing of such a job.
func Rigid(job uint32, getenv func(string) string) (api.Allocation, bool) {
	id := strconv.FormatUint(uint64(job), 10)
	steps, err := strconv.Atoi(getenv(request.VarRigid))
	nodes, bad := slurmctl.ExpandNodes(getenv("SLURM_JOB_NODELIST"))
	if err != nil || steps < 1 || steps > mostSteps || getenv("SLURM_JOB_ID") != id || bad != nil || len(nodes) == 0 {
		return api.Allocation{}, false
	}
	step := min(max(PresentStep(job, getenv), 1), steps)
	a := api.Allocation{Ready: true, Job: job, Step: step, Steps: steps, Drive: string(drivemode.Merge), Nodes: len(nodes),
		Parts: []api.Part{{Job: job, NodeList: nodes, CPUs: cpusPerNode(getenv("SLURM_JOB_CPUS_PER_NODE"), len(nodes))}}}
	if step < steps {
		a.Coming = &api.Coming{Step: step + 1, Nodes: len(nodes)}
	}
	return a, true
}

// NextRigid returns what a rigid job has after the step that it is in.
func NextRigid(a api.Allocation) api.Allocation {
	if a.Coming == nil {
		a.Done = true
		return a
	}
	if a.Step++; a.Step == a.Steps {
		a.Coming = nil
		return a
	}
	a.Coming = &api.Coming{Step: a.Step + 1, Nodes: a.Nodes}
	return a
}

// cpusPerNode reads Slurm's "16(x3),8"; nodes that it does not name get one.
func cpusPerNode(text string, nodes int) []int {
	var all []int
	for item := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(item, "(x")
		cpus, err := strconv.Atoi(number)
		n := 1
		if repeated {
			n, _ = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		for ; err == nil && n > 0 && len(all) < nodes; n-- {
			all = append(all, max(cpus, 1))
		}
	}
	for len(all) < nodes {
		all = append(all, 1)
	}
	return all
}
