package slurmctl

import (
	"context"
	"errors"
	"slices"
)

// MayAllocate sees whether the site's plugins would let the request pass, without asking for
// anything: `srun --test-only` is to a job_submit plugin what salloc is, a job without a script
// (slurmctld's _slurm_rpc_job_will_run calls the plugins, too). The error is a refusal for which
// Slurm itself has no reason, or that access is denied; all else, limits or nodes that are not
// free at present, is none. ExpandJob, Reservation and NodeList are not tried.
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
