package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// profilers lists the values of sbatch's own --profile, which selects what accounting samples. No
// evolution profile looks like them.
var profilers = []string{"all", "none", "energy", "task", "lustre", "filesystem", "network"}

// isEvolution reports whether an option named profile is an evolution profile, not a value for
// sbatch's own option of that name.
func isEvolution(o getopt.Option) bool {
	if o.Name != "profile" || o.Source != "" {
		return false // on #SBATCH lines and in SBATCH_PROFILE it is always sbatch's
	}
	for name := range strings.SplitSeq(o.Value, ",") {
		if !slices.Contains(profilers, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// isOwn reports whether an option of the command line is not for sbatch.
func isOwn(o getopt.Option) bool {
	switch o.Name {
	case "expand-limit", "drive", "max-nodes", "on-grow", "on-shrink", "on-step", "dry-run", "require-profile", "moldable", "moldable-by", "malleable", "size", "grace", "speedup":
		return true
	}
	return isEvolution(o)
}

// variableError is a variable that cannot be read.
type variableError struct{ error }

func (e *variableError) Unwrap() error { return e.error }

// requested returns the request of the command line, completed from the environment.
func requested(l layers) (request.Request, error) {
	var s request.Request
	shape := slices.ContainsFunc(l.command, func(o getopt.Option) bool { return isOwn(o) && slices.Contains(shapes, o.Name) })
	if err := request.Contradiction(func(name string) bool {
		return !shape && slices.ContainsFunc(l.own, func(o getopt.Option) bool { return o.Name == name })
	}); err != nil {
		return request.Request{}, fmt.Errorf("in EVOSBATCH_ variables: %w", err)
	}
	for _, o := range l.own {
		if isShape := slices.Contains(shapes, o.Name); isShape && shape || !isShape && l.has(o.Name) {
			continue
		}
		if err := s.Set(o.Name, o.Value); err != nil {
			return request.Request{}, &variableError{fmt.Errorf("%s: %w", o.Source, err)}
		}
	}
	for _, o := range l.command {
		if asksToEvolve(o) {
			if err := s.Set(o.Name, o.Value); err != nil {
				return request.Request{}, err
			}
		}
	}
	return s, nil
}
