package injob

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// frequencyExports returns the exports that make srun ask for the CPU frequency of the present step. What the user set
// stays, and what evosbatch set for this step of a chain: the sidecar may not have seen its start.
func frequencyExports(a api.Allocation, getenv func(string) string) (e Exports) {
	if request.OwnFrequency(getenv) || drivemode.Mode(a.Drive).Means().StepsAreJobs && getenv(VarStep) != "" {
		return e
	}
	if a.CPUFreq == "" && getenv(request.VarFrequency) != "" {
		e.Unset = []string{request.VarSrunFrequency, request.VarFrequency}
	}
	for _, v := range request.FrequencyVariables(a.CPUFreq) {
		e.Set = append(e.Set, Var{v[0], v[1]})
	}
	return e
}

// checkFrequency refuses a frequency that no step has.
func checkFrequency(a api.Allocation) error {
	if a.CPUFreq == "" {
		return nil
	}
	if err := request.CheckFrequency(a.CPUFreq); err != nil {
		return fmt.Errorf("the sidecar's answer about job %d: %w", a.Job, err)
	}
	return nil
}

// atFrequency returns an environment in which srun asks for the CPU frequency of the present step.
func atFrequency(a api.Allocation, environ []string) []string {
	return frequencyExports(a, func(name string) string { return lookup(environ, name) }).Apply(environ)
}
