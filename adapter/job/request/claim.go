package request

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

func parseClaim(value string) (int, error) {
	n, err := parseNumber(value, planner.MaxNodes)
	return int(n), err
}

// CheckClaim sees that the claim, if there is one, agrees with the rest.
func (r Request) CheckClaim() error {
	switch {
	case r.MaxNodes == 0:
		return nil
	case r.Drive.Means().StepsAreJobs:
		return fmt.Errorf("--max-nodes=%d: a chain cannot grow on demand, its steps are Slurm jobs of their own", r.MaxNodes)
	case r.MaxNodes < r.Profile.Peak():
		return fmt.Errorf("--max-nodes=%d: the profile goes up to %d nodes", r.MaxNodes, r.Profile.Peak())
	}
	return nil
}

// Claimed returns the profile with its largest step raised to the claim: if that is infeasible, so
// is the claim.
func (r Request) Claimed() planner.Profile {
	peak := r.Profile.Peak()
	if r.MaxNodes <= peak {
		return r.Profile
	}
	p := slices.Clone(r.Profile)
	for i := range p {
		if p[i].Nodes == peak {
			p[i].Nodes = r.MaxNodes
			break
		}
	}
	return p
}
