package submit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	if o, given := r.options.last("export"); given && o.HasValue {
		for name := range strings.SplitSeq(o.Value, ",") {
			if n := strings.ToUpper(name); n == "NONE" || n == "NIL" {
				return fmt.Errorf("%s: --on-grow, --on-shrink and --on-step reach the job in its environment: export something, if only HOME", o)
			}
		}
	}
	return nil
}

// hookExport adds the hooks' variables to the user's list of exported variables.
func (r submission) hookExport() []string {
	o, given := r.options.last("export")
	hooks := r.request.Hooks.Variables()
	if !given || !o.HasValue || len(hooks) == 0 || slices.Contains(strings.Split(strings.ToUpper(o.Value), ","), "ALL") {
		return nil
	}
	words := o.Value
	for _, v := range hooks {
		words += "," + v[0]
	}
	return []string{"--export=" + words}
}

// withHooks returns an environment with only these hooks, without what belongs to the submitting job.
func withHooks(environ []string, hooks request.Hooks) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return name == request.VarOnGrow || name == request.VarOnShrink || name == request.VarOnStep || name == request.VarRigid
	})
	for _, v := range hooks.Variables() {
		environ = append(environ, v[0]+"="+v[1])
	}
	return environ
}
