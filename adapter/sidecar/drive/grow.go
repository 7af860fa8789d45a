package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// growth is a [core.Grow] that is carried out.
type growth struct {
	msg.Grow
	msg.Grown
	*Driver
	user *slurmctl.User // nil: the sidecar's own
}

// grow brings the nodes. If Slurm is still powering them up, has suspended a job, or a limit
// currently prevents it, this is not a failure: the growth continues once it can.
func (d *Driver) grow(ctx context.Context, c msg.Grow) (msg.Grown, error) {
	g := &growth{Grow: c, Driver: d}
	g.Grown.Expanders = slices.Clone(c.Expanders)
	if !c.Own {
		u, err := d.Slurm.LookupUser(c.As)
		if err != nil {
			return g.Grown, err
		}
		g.user, g.Request.User = u, u
	}
	var err error
	if c.Opens {
		return g.Grown, g.open(ctx)
	}
	err = g.bring(ctx)
	if errors.Is(err, errNotYet) {
		g.NotYet, err = err.Error(), nil
	}
	if words, limited := slurmctl.Limited(err); limited {
		g.Limit, err = words, nil
	}
	g.Parked = g.Request.Parked
	return g.Grown, err
}

// allocateWait bounds how long an expander may be pending: its nodes are free and its hold has
// begun, so either it starts at once or something is wrong.
const allocateWait = 4 * time.Second

func (g *growth) bring(ctx context.Context) error {
	if err := g.open(ctx); err != nil {
		return err
	}
	var brought []slurmctl.Job
	byJob := g.ByJob && len(g.Grown.Expanders) == 0
	if len(g.Grown.Expanders) == 0 {
		g.Request.Reservation = msg.Both(g.Hold, g.Inside)
		k, err := g.allocate(ctx)
		if err != nil {
			return g.denied(ctx, err)
		}
		g.Grown.Expanders, brought = []slurmctl.JobID{k.ID}, []slurmctl.Job{k}
	}
	brought, err := g.begun(ctx, brought)
	for i := 0; byJob && err == nil && i < len(brought); i++ { // users can change jobs that wait
		err = g.asAsked(ctx, &brought[i])
	}
	if err == nil {
		err = g.dropPending(ctx, brought)
	}
	if err != nil {
		return err
	}
	for _, k := range brought {
		if why := msg.Unready(&k, g.StepMgr); why != "" {
			return fmt.Errorf("%w%s", errNotYet, why)
		}
	}
	if !g.Merge {
		return g.keep(ctx, brought)
	}
	return g.merge(ctx)
}

// denied returns the error of an expander that Slurm does not grant, or requests a companion if it would never grant one.
func (g *growth) denied(ctx context.Context, err error) error {
	if g.Merge && (g.user != nil || g.ByJob) && errors.Is(err, slurmctl.ErrDependency) && g.baseRuns(ctx) == nil {
		return g.instead(ctx, fmt.Errorf("%w, though job %d runs: the site may put expanders into another partition", err, g.Base))
	}
	return err
}

// allocate asks for the expander, or finds the one that the job's process submitted.
func (g *growth) allocate(ctx context.Context) (slurmctl.Job, error) {
	if g.ByJob {
		return g.submitted(ctx)
	}
	wait, cancel := g.WithTimeout(ctx, g.patience())
	k, err := g.Slurm.Allocate(wait, g.Request)
	cancel()
	if k.ID == 0 && !g.Request.Parked && refusedAtSubmission(err) {
		g.Request.Parked = true
		wait, cancel = g.WithTimeout(ctx, g.patience())
		k, err = g.parked(wait, err)
		cancel()
	}
	return k, err
}

// open starts the hold, early for a growth before its time, and admits the expander's user, by one
// command. From now on, until the hold is given up or closed, that user could run other jobs there.
// If the expander stays in the hold, the hold must last as long.
func (g *growth) open(ctx context.Context) error {
	u := slurmctl.ReservationUpdate{StartNow: g.HoldBegins}
	if len(g.Grown.Expanders) == 0 {
		u.Users = g.LetIn
		if g.StaysInHold {
			u.End, u.Flags = g.StaysUntil, msg.FlagsOfStuckHolds
		}
	}
	if g.Hold == "" || g.ByJob && !g.Opens || !u.StartNow && len(u.Users) == 0 && u.End.IsZero() {
		return nil
	}
	err := g.Slurm.UpdateReservation(ctx, g.Hold, u)
	if err == nil {
		g.HoldBegins = false
	}
	g.Opened = err == nil && len(u.Users) > 0
	return err
}

// begun polls the expanders until they are running; brought is what is known about them.
func (g *growth) begun(ctx context.Context, brought []slurmctl.Job) (_ []slurmctl.Job, err error) {
	waits := func(k slurmctl.Job) bool {
		return k.State == slurmctl.Configuring || k.State == slurmctl.Pending || g.StepMgr && k.InProlog()
	}
	if len(brought) == 0 {
		brought, err = g.Slurm.Glance(ctx, g.Grown.Expanders...)
	}
	for end := g.Now().Add(allocateWait); err == nil && slices.ContainsFunc(brought, waits) && g.Now().Before(end); {
		g.Pause(ctx, 50*time.Millisecond)
		brought, err = g.Slurm.Glance(ctx, g.Grown.Expanders...)
	}
	for _, k := range brought {
		if err == nil && (g.user != nil || g.ByJob) && k.UID != g.As { // slurmctld has forgotten the expander
			g.Grown.Expanders = slices.DeleteFunc(g.Grown.Expanders, func(id slurmctl.JobID) bool { return id == k.ID })
			err = fmt.Errorf("job %d is no expander of user %d", k.ID, g.As)
		}
	}
	return brought, err
}

// baseRuns sees that the base job runs; otherwise the expanders are given back.
func (g *growth) baseRuns(ctx context.Context) error {
	base, err := g.Slurm.Glance(ctx, g.Base)
	if err != nil {
		return err
	}
	state := slurmctl.JobState("not known")
	if len(base) == 1 {
		state = base[0].State
	}
	switch state {
	case slurmctl.Running:
		return nil
	case slurmctl.Suspended:
		return fmt.Errorf("%wSlurm has suspended the job", errNotYet)
	}
	err = g.Slurm.CancelAs(ctx, g.user, g.Grown.Expanders...)
	g.Grown.Expanders = nil
	return errors.Join(fmt.Errorf("job %d is %s, not RUNNING", g.Base, state), err)
}

// mayMerge sees that the base job runs, and that slurmdbd answers if a merge without it would harm
// the job. It asks both at once.
func (g *growth) mayMerge(ctx context.Context) (err error) {
	if !g.NeedsDBD {
		return g.baseRuns(ctx)
	}
	var dbd error
	g.Together(ctx, func(ctx context.Context) { dbd = g.Slurm.Slurmdbd(ctx) }, func(ctx context.Context) { err = g.baseRuns(ctx) })
	return cmp.Or(err, dbd)
}

// errNotYet means that a growth has to wait; the reason follows.
var errNotYet = errors.New("")

// merge gives the expanders' nodes to the base job, one expander at a time, and reads the result
// back. It checks right before that the base job runs: merging into an ended job leaks nodes.
func (g *growth) merge(ctx context.Context) error {
	slurm := g.Slurm
	for len(g.Grown.Expanders) > 0 {
		k := g.Grown.Expanders[0]
		if err := g.mayMerge(ctx); err != nil {
			return err // the expander keeps its nodes, unless the base job has ended
		}
		if err := slurm.Merge(ctx, k); err != nil {
			switch {
			case slurmctl.NeverMerges(err):
				return g.instead(ctx, err)
			case linkLost(err): // or the expander is gone: ask for another one
				g.Grown.Expanders = g.Grown.Expanders[1:]
				return errors.Join(err, slurm.CancelAs(ctx, g.user, k))
			}
			return err // the expander keeps its nodes; try again
		}
		g.Grown.Expanders = g.Grown.Expanders[1:]
	}
	base, err := slurm.Glance(ctx, g.Base)
	if err != nil {
		return err
	}
	if len(base) != 1 || len(msg.Without(g.Nodes, base[0].NodeList)) > 0 {
		return fmt.Errorf("job %d has not got all of %s by the merge", g.Base, slurmctl.CompressNodes(g.Nodes))
	}
	if left := slurmctl.RegrowAfter - g.Now().Sub(g.GaveBack); !g.GaveBack.IsZero() && left > 0 {
		g.Pause(ctx, left)
	}
	g.After = []msg.Part{{ID: g.Base, Step: 1, Nodes: base[0].NodeList}}
	return nil // give up the hold after answering the job
}

// keep leaves the expander beside the base job as a companion, outside the hold, unless the site
// forbids taking it out.
func (g *growth) keep(ctx context.Context, brought []slurmctl.Job) error {
	if err := g.baseRuns(ctx); err != nil {
		return err
	}
	if len(brought) != len(g.Grown.Expanders) {
		return fmt.Errorf("of expanders %v Slurm knows %d", g.Grown.Expanders, len(brought))
	}
	held := g.Held
	for _, k := range brought {
		if k.State != slurmctl.Running {
			return fmt.Errorf("expander %d is %s, not RUNNING", k.ID, k.State)
		}
		if g.Hold != "" && !g.HoldGone && !g.StaysInHold {
			err := g.leaveHold(ctx, k.ID, g.Inside)
			if errors.Is(err, slurmctl.ErrWantsAccount) { // it turns out that it stays there
				g.StaysInHold = true
				err = g.Slurm.UpdateReservation(ctx, g.Hold, slurmctl.ReservationUpdate{End: g.StaysUntil, Flags: msg.FlagsOfStuckHolds})
			}
			if err != nil {
				return err
			}
		}
		held = append(held, msg.Part{ID: k.ID, Step: g.Step, Nodes: k.NodeList})
	}
	g.Grown.Expanders, g.After = nil, held
	if g.Stays = g.StaysInHold && g.Hold != ""; !g.Stays && !g.More {
		g.release(ctx)
	}
	return nil
}

// release gives up the hold: its nodes are the job's own. If it fails, the next cycle does it.
func (g *growth) release(ctx context.Context) {
	if g.Hold == "" || g.HoldGone {
		return
	}
	if err := ignoreUnknown(g.Slurm.DeleteReservation(ctx, g.Hold)); err == nil {
		g.HoldGone = true
	}
}

// parkedWait is allocateWait for an expander that is submitted parked: Slurm starts it at
// its next poll of the queue.
const parkedWait = 15 * time.Second

// patience returns how long the expander may be pending.
func (g *growth) patience() time.Duration {
	if g.Request.Parked {
		return parkedWait
	}
	return allocateWait
}

// refusedAtSubmission reports whether salloc was refused because of its request, e.g. by a site's
// plugin, and not for a known reason.
func refusedAtSubmission(err error) bool {
	var ce *slurmctl.CommandError
	if !errors.As(err, &ce) || ce.ExitCode <= 0 {
		return false
	}
	if _, limited := slurmctl.Limited(err); limited {
		return false
	}
	for _, known := range []error{slurmctl.ErrDependency, slurmctl.ErrNotSupported, slurmctl.ErrUnreachable, slurmctl.ErrUnknownReservation, slurmctl.ErrNodeCount, slurmctl.ErrNodeConfig} {
		if errors.Is(err, known) {
			return false
		}
	}
	return true
}

// parked submits the expander without its reservation and moves it there afterwards, which a site's
// plugin may allow root to do although it forbids users the reservation.
func (g *growth) parked(ctx context.Context, refusal error) (slurmctl.Job, error) {
	if !g.MayPark {
		return slurmctl.Job{}, refusal
	}
	k, err := g.Slurm.Allocate(ctx, g.Request)
	if err != nil {
		err = errors.Join(refusal, err)
	}
	return k, err
}

// dropPending cancels pending expanders of an earlier attempt: one that was parked and never
// released would stay forever.
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
	err := g.Slurm.CancelAs(ctx, g.user, pending...)
	if err == nil {
		g.Grown.Expanders = slices.DeleteFunc(g.Grown.Expanders, func(id slurmctl.JobID) bool { return slices.Contains(pending, id) })
	}
	return errors.Join(fmt.Errorf("expanders %v still wait; will request them again", pending), err)
}

// linkLost reports whether a merge failed for what another expander would mend.
func linkLost(err error) bool {
	for _, passing := range []error{slurmctl.ErrNodeCount, slurmctl.ErrUnknownJob, slurmctl.ErrAlreadyDone, slurmctl.ErrDependency} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// instead requests a companion instead of the expander that Slurm does not merge, in the same hold:
// the next expander would also fail. The expander itself cannot stay: Slurm lets no expander give
// back some of its nodes (job_mgr.c: expanding_jobid).
func (g *growth) instead(ctx context.Context, never error) error {
	err := g.Slurm.CancelAs(ctx, g.user, g.Grown.Expanders...)
	g.Grown.Expanders = nil
	if g.user == nil && !g.ByJob {
		return errors.Join(fmt.Errorf("%w: %w", msg.ErrNeverMerged, never), err)
	}
	g.Never = never
	if g.ByJob { // the job submits a companion next
		err = errors.Join(never, err)
	}
	if err != nil {
		return err
	}
	g.Merge, g.Request.ExpandJob = false, 0
	g.Request.Comment = strings.TrimSuffix(g.Request.Comment, request.MergeMark)
	return g.bring(ctx)
}
