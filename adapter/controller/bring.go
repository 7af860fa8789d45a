package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// askMore makes the request for a growth's expander: all that the base job itself asked
// for, for as long as that may still run. Where its hold consists of the very nodes it
// needs not name them: there are sites that forbid that.
func (c *Controller) askMore(j *job, g *growth, parked bool) {
	q := j.asked.More(len(g.nodes), j.gres)
	q.User, q.Partition, q.Account, q.QOS = g.user, partitionOf(j), j.Account, j.QOS
	q.Name, q.Comment, q.Exclusive, q.WorkDir = g.name, expanderMark, true, "/"
	hold, ok := c.reservations[g.hold]
	exact := ok && g.hold != "" && sameSet(hold.Nodes, g.nodes) && !c.slurm.WantsAccount() // see run
	if !exact {
		q.NodeList = g.nodes
	}
	q.Parked = parked && exact
	g.mayPark = exact
	if g.drive == spec.Merge {
		q.ExpandJob = g.base
	}
	q.TimeLimit = max(time.Until(j.record.EndTime).Truncate(time.Minute)+time.Minute, time.Minute)
	if j.record.TimeLimit == slurmctl.Unlimited {
		q.TimeLimit = slurmctl.Unlimited
	}
	g.request = q
}

// parkedWait is allocateWait for an expander that is submitted parked: Slurm starts it at
// its next look at the queue.
const parkedWait = 15 * time.Second

// patience is how long the expander may be pending.
func (g *growth) patience() time.Duration {
	if g.request.Parked {
		return parkedWait
	}
	return allocateWait
}

// refusedAtSubmission says whether salloc was refused for what it asked, by a plugin of
// the site for instance, and not for a reason that has a name.
func refusedAtSubmission(err error) bool {
	var ce *slurmctl.CommandError
	if !errors.As(err, &ce) || ce.ExitCode <= 0 {
		return false
	}
	if _, limited := slurmctl.Limited(err); limited {
		return false
	}
	for _, known := range []error{slurmctl.ErrDependency, slurmctl.ErrNotSupported, slurmctl.ErrUnreachable, slurmctl.ErrUnknownReservation, slurmctl.ErrNodeCount} {
		if errors.Is(err, known) {
			return false
		}
	}
	return true
}

// parked submits the expander without its reservation and has it put there afterwards,
// which a site's plugin may allow to root where it forbids the other to users.
func (g *growth) parked(ctx context.Context, refusal error) (slurmctl.Job, error) {
	if !g.mayPark {
		return slurmctl.Job{}, refusal
	}
	k, err := g.c.slurm.Allocate(ctx, g.request)
	if err != nil {
		err = errors.Join(refusal, err)
	}
	return k, err
}

// dropPending cancels expanders of an earlier attempt that still wait: one that was
// submitted parked and never let go would do so for ever.
func (g *growth) dropPending(ctx context.Context, brought []slurmctl.Job) error {
	var pending []slurmctl.JobID
	for _, k := range brought {
		if k.State == slurmctl.Pending {
			pending = append(pending, k.ID)
		}
	}
	if len(pending) == 0 {
		return nil
	}
	err := g.c.slurm.Cancel(ctx, pending...)
	if err == nil {
		g.expanders = slices.DeleteFunc(g.expanders, func(id slurmctl.JobID) bool { return slices.Contains(pending, id) })
	}
	return errors.Join(fmt.Errorf("expanders %v still wait and are asked for anew", pending), err)
}

// linkLost says whether a merge failed for what another expander would mend.
func linkLost(err error) bool {
	for _, passing := range []error{slurmctl.ErrNodeCount, slurmctl.ErrUnknownJob, slurmctl.ErrAlreadyDone, slurmctl.ErrDependency} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// instead asks for a companion in place of the expander that Slurm does not merge, in the
// same hold: the next expander would fare no better. The expander itself cannot stay:
// Slurm lets none give back some of its nodes (job_mgr.c: expanding_jobid).
func (g *growth) instead(ctx context.Context, never error) error {
	err := g.c.slurm.Cancel(ctx, g.expanders...)
	g.expanders = nil
	if g.user == nil {
		return errors.Join(fmt.Errorf("%w: %w", errNeverMerged, never), err)
	}
	g.never = never
	if err != nil {
		return err
	}
	g.drive, g.request.ExpandJob = spec.Companion, 0
	return g.bring(ctx)
}

// errNeverMerged says that Slurm merges nothing into the job, and nothing else can be done.
var errNeverMerged = errors.New("Slurm merges nothing into this job, and the sidecar may submit no companions for its user")

// turn makes the job one of companions, for good.
func (c *Controller) turn(j *job, why error) {
	if spec.Drive(j.Drive) != spec.Merge {
		return
	}
	j.Drive = string(spec.Companion)
	c.save(j)
	c.event(j, "drive changed", map[string]any{"from": spec.Merge, "to": spec.Companion, "why": why.Error()})
	c.logJob(j).WithError(why).Warn("Slurm merges nothing into this job: it grows by companions from now on")
}
