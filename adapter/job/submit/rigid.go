package submit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// sendRigid submits the job as an ordinary one that has the peak of its profile for the whole time. Slurm alone judges
// whether it fits. evosctl next in it goes from step to step without the sidecar.
func (p sbatch) sendRigid(r submission) error {
	if r.request.Drive.Means().StepsAreJobs {
		return errors.New("--rigid does not go with --drive=chain, where each step is a job: leave one of them out")
	}
	if len(r.request.Components) > 0 {
		return errors.New("--rigid does not go with --component: the sidecar says which nodes a component has; leave one of them out")
	}
	if r.request.Frequencies != nil {
		return errors.New("--rigid does not go with a step's CPU frequency, which the sidecar says; leave one of them out")
	}
	if r.request.BestEffort() {
		return errors.New("--rigid does not go with --best-effort: only the sidecar gives nodes back when they are wanted; leave one of them out")
	}
	words := r.words(r.rigidCall())
	if r.options.has("dry-run") {
		p.show(words, append(r.request.Hooks.Variables(), [2]string{request.VarRigid, r.rigidSteps()})...)
		return nil
	}
	return p.become(words, r.script)
}

// rigidCall submits the peak of the profile, not parked and without a marker. A malleable job gets its minimum, and a
// moldable one its first alternative.
func (r submission) rigidCall() call {
	c := call{rigid: true, extra: r.rigidExport()}
	for _, step := range r.request.Profile {
		c.nodes = max(c.nodes, step.Nodes)
	}
	if r.userTime == 0 && !r.request.Endless() { // it waits for no nodes
		c.time = timeLimit(r.request.Profile, 1)
	}
	return c
}

func (r submission) rigidSteps() string { return strconv.Itoa(len(r.request.Profile)) }

// rigidExport adds that variable to the user's list of exported variables.
func (r submission) rigidExport() []string {
	words := r.variableExport()
	value := ""
	if o, given := r.options.last("export"); len(words) > 0 {
		value = strings.TrimPrefix(words[0], "--export=")
	} else if given && o.HasValue {
		value = o.Value
	}
	for name := range strings.SplitSeq(strings.ToUpper(value), ",") {
		if name == "" || name == "ALL" || name == "NONE" || name == "NIL" {
			return nil
		}
	}
	return []string{"--export=" + value + "," + request.VarRigid}
}
