package slurmctl

import (
	"context"
	"errors"
	"slices"
)

// MayAllocate finds out whether the site's plugins would accept the request, without allocating
// anything. A job_submit plugin sees `srun --test-only` as it sees salloc: a job without a script
// (slurmctld's _slurm_rpc_job_will_run calls the plugins as well). The error is a refusal that
// Slurm itself has no reason for, or that access is denied. Everything else, such as limits or busy
// nodes, is no error. It does not try ExpandJob, Reservation, and NodeList.
func (c *Client) MayAllocate(ctx context.Context, q AllocateRequest) error {
	q.ExpandJob, q.Reservation, q.NodeList, q.Parked = 0, "", nil, false
	args, err := q.args()
	if err != nil {
		return err
	}
	args = slices.DeleteFunc(args, func(a string) bool { return a == "--no-shell" })
	_, _, err = c.run(ctx, command{name: "srun", args: append(args, "--test-only", "true"), user: q.User})
	var failed *CommandError
	if errors.As(err, &failed) && failed.ExitCode > 0 && (failed.Is(ErrUnspecified) || failed.Is(ErrAccessDenied)) {
		return err
	}
	return nil
}
