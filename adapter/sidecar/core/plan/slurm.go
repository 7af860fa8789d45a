package plan

import (
	"errors"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// MayEver checks that limits do not exclude a parked job with its profile forever in all of its partitions. It
// returns the request without the alternatives that limits never let run. It reports false while that is not
// known.
func MayEver(c *state.Core, r *slurmctl.Job, sp request.Request, chain bool, asked *slurmctl.JobRequest) (_ request.Request, err error, known bool) {
	if r.State != slurmctl.Pending || len(sp.Profile) == 0 {
		return sp, nil, true
	}
	// The cycle that follows the answer must find the answer recent enough, however slow Slurm is, and however far apart polls come.
	limits, known := slurm.RulesSince(c, c.Now.Add(-slurm.LimitsFor-pace.Apart(&c.Pace)-c.Rules.Took-c.Now.Sub(c.Snapshot.Taken)))
	if !known || limits == nil {
		return sp, nil, known
	}
	may, never := neverOf(c, limits, r, sp, chain, asked)
	if len(never) == 0 && may.Same(sp) {
		return sp, nil, true
	}
	if limits, known = slurm.RulesSince(c, r.SubmitTime); !known || limits == nil {
		return sp, nil, known
	}
	if may, never = neverOf(c, limits, r, sp, chain, asked); len(never) == 0 {
		return may, nil, true
	}
	return sp, errors.New(strings.Join(never, "; ")), true
}

// neverOf returns which limits never let a job run, and for a moldable job the request with the remaining
// alternatives.
func neverOf(c *state.Core, limits *slurmctl.Limits, r *slurmctl.Job, sp request.Request, chain bool, asked *slurmctl.JobRequest) (request.Request, []string) {
	never := func(sp request.Request) []string { return slurm.Never(c, limits, r, sp.Claimed(), chain, asked) }
	if sp.Moldable == nil {
		return sp, never(sp)
	}
	return FeasibleAlternatives(sp, never)
}
