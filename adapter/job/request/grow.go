package request

import (
	"context"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// MostAtOnce returns the most nodes by which a profile grows at once; 0: it never grows.
func MostAtOnce(p planner.Profile) int {
	if len(p) == 0 {
		return 0
	}
	growths := slurmctl.NeedOf(Sizes(p), 0, false).Growths
	if len(growths) == 0 {
		return 0
	}
	return slices.Max(growths)
}

// MayGrow checks whether the site's plugins would let a job with this request, and gres on each
// node, have that many further nodes as its user (nil for this process's).
func MayGrow(ctx context.Context, slurm interface {
	MayAllocate(context.Context, slurmctl.AllocateRequest) error
}, asked slurmctl.JobRequest, by int, gres []slurmctl.GRES, as *slurmctl.User) error {
	q := asked.More(by, gres)
	q.User, q.TimeLimit, q.Exclusive = as, asked.TimeLimit, true
	if err := slurm.MayAllocate(ctx, q); err != nil {
		return fmt.Errorf("nodes of growths are asked for by jobs without a script, which the site refuses (%w): use --drive=chain, another partition, or have the administrator let salloc pass", err)
	}
	return nil
}
