package submit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// checkHooks sees that the job's hooks can reach it.
func (r submission) checkHooks() error {
	if len(r.request.Hooks.Variables()) == 0 {
		return nil
	}
	if r.request.Drive.Means().StepsAreJobs {
		return errors.New("--on-grow, --on-shrink and --on-step are for jobs that change while they run: in a chain every step begins with the script")
	}
	if o := r.exportsNothing(); o != nil {
		return fmt.Errorf("%s: --on-grow, --on-shrink and --on-step reach the job in its environment: export something, if only HOME", o)
	}
	return nil
}

// exportsNothing returns the option by which the user exports no variable to the job, or nil.
func (r submission) exportsNothing() *getopt.Option {
	o, given := r.options.last("export")
	names := strings.Split(strings.ToUpper(o.Value), ",")
	if !given || !slices.Contains(names, "NONE") && !slices.Contains(names, "NIL") {
		return nil
	}
	return &o
}

// variables returns the variables that the job gets in its environment: its hooks, and the CPU frequency of its first step. Those
// of a chain's steps differ (stepVariables).
func (r submission) variables() [][2]string {
	if r.request.Drive.Means().StepsAreJobs {
		return r.request.Hooks.Variables()
	}
	return append(r.request.Hooks.Variables(), r.frequencyVariables(0)...)
}

// frequencyVariables returns the variables for the CPU frequency of a step, from 0.
func (r submission) frequencyVariables(i int) [][2]string {
	if r.request.Frequencies == nil || r.ownFrequency || r.exportsNothing() != nil {
		return nil
	}
	return request.FrequencyVariables(r.request.Frequencies[i])
}

// checkFrequencies returns an error if the job cannot have its steps' CPU frequencies.
func (r submission) checkFrequencies() error {
	if o, given := r.options.last("cpu-freq"); given && r.request.Frequencies != nil {
		return fmt.Errorf("%s: the profile says the CPU frequency of its steps; leave one of them out", o)
	}
	return r.request.CheckFrequencies()
}

// variableExport adds the job's variables to the user's list of exported variables.
func (r submission) variableExport() []string {
	o, given := r.options.last("export")
	variables := r.variables()
	if !given || !o.HasValue || len(variables) == 0 || slices.Contains(strings.Split(strings.ToUpper(o.Value), ","), "ALL") {
		return nil
	}
	words := o.Value
	for _, v := range variables {
		words += "," + v[0]
	}
	return []string{"--export=" + words}
}

// withVariables returns an environment with these variables of the job, without what belongs to the submitting job.
func withVariables(environ []string, variables [][2]string) []string {
	inherited := []string{request.VarOnGrow, request.VarOnShrink, request.VarOnStep, request.VarRigid, request.VarFrequency}
	if !ownFrequency(environ) {
		inherited = append(inherited, request.VarSrunFrequency)
	}
	environ = slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(inherited, name)
	})
	for _, v := range variables {
		environ = append(environ, v[0]+"="+v[1])
	}
	return environ
}

// ownFrequency reports whether the user set a CPU frequency for srun in an environment.
func ownFrequency(environ []string) bool {
	values := valuesOf(environ)
	return request.OwnFrequency(func(name string) string { return values[name] })
}
