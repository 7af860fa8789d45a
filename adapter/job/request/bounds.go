package request

import (
	"fmt"

	"github.com/evoslurm/evoslurm/planner"
)

// MaxSteps bounds the steps of a job over its life, including changes. Slurm keeps a job's request
// in 1,024 bytes of comment, or in a script of megabytes, so without a bound a few bytes would cost
// the sidecar megabytes.
const MaxSteps = 2000

// maxLength is the longest time, in seconds, of all steps of a job together: about 68 years, which
// fits every time limit of Slurm and every sum of times.
const maxLength = planner.MaxDuration

// CheckSteps returns why a job cannot have that many steps or last that long, or nil.
func CheckSteps(p planner.Profile) error {
	if len(p) > MaxSteps {
		return fmt.Errorf("the profile has %d steps, and a job may have %d at most: join short steps, or submit the rest as a further job with --dependency=afterok", len(p), MaxSteps)
	}
	if seconds := p.Duration(); seconds > maxLength {
		return fmt.Errorf("the profile lasts %d seconds, and a job may last %d at most: shorten its steps", seconds, maxLength)
	}
	return nil
}

// Beyond returns why a cluster with that many nodes can never serve the request, whatever the job's
// state, or "". Call it before anything allocates or loops by a number of nodes.
func (r Request) Beyond(nodes int) string {
	most, what := r.Profile.Peak(), "the profile goes up to"
	if r.MaxNodes > most {
		most, what = r.MaxNodes, "its claim (--max-nodes) is"
	}
	if r.Malleable != nil {
		for _, n := range r.Malleable.Max {
			if n > most {
				most, what = n, "its bounds go up to"
			}
		}
	}
	if r.Reached != nil && max(r.Reached.First, r.Reached.Peak) > most {
		most, what = max(r.Reached.First, r.Reached.Peak), "the steps that are over went up to"
	}
	if most <= nodes {
		return ""
	}
	return fmt.Sprintf("%s %d nodes, and the cluster has %d: ask for fewer", what, most, nodes)
}
