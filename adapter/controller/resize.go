package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// endStep is called when the application has ended its step, or was made to.
func (c *Controller) endStep(j *job, now time.Time) {
	j.State, j.StepEnded, j.reason, j.overdue = store.Waiting, now, "", 0
	anew := j.kept != nil && j.kept.givenUp
	if anew {
		j.kept, j.failures, j.failing, j.retryAt = nil, 0, time.Time{}, time.Time{}
	}
	c.together(func() {
		c.save(j)
		c.event(j, "step ended", map[string]any{"step": j.Step, "expected": j.expected()})
	})
	if c.snapshot == nil {
		return
	}
	if next := j.next(); next == nil {
		c.refit(c.snapshot, j, now.Unix(), "the step lasted longer than its profile says")
	} else if anew || next.start > now.Unix() && len(next.nodes) > len(j.nodes()) || len(j.release) > 0 {
		c.refit(c.snapshot, j, now.Unix(), "the step ended early")
	}
}

// transition brings a job whose step has ended to the nodes of the next one. It
// goes by what the job has and what it is to have, so it can be left and taken up
// at any point.
func (c *Controller) transition(s *snapshot, j *job, now time.Time) {
	next := j.next()
	if next == nil {
		return
	}
	switch {
	case j.stillKept(now):
		j.reason = j.kept.text
		return
	case j.kept != nil:
		c.tryAgain(s, j, now)
		return
	case j.isChain():
		c.startLink(s, j, next, now)
		return
	}
	have := j.nodes()
	missing, surplus := without(next.nodes, have), without(have, next.nodes)
	switch {
	case len(missing) > 0:
		if next.start > now.Unix() && len(j.expanders) == 0 && !c.early(s, j, missing, now.Unix()) {
			j.reason = fmt.Sprintf("waits for %d nodes, planned for %s", len(missing), time.Unix(next.start, 0).Format(time.TimeOnly))
			if j.anew {
				j.reason += ", anew: the step before lasted longer than its profile says"
			}
			if j.unheld != "" {
				j.reason += "; they are not held: " + j.unheld
			}
			return
		}
		c.grow(s, j, j.Step+1, missing)
	case len(surplus) > 0:
		c.shrink(j, surplus)
	default:
		c.beginStep(j, now)
	}
}

// early says whether a growth may be done before its time: the nodes are free, and
// nobody else was promised them until then.
func (c *Controller) early(s *snapshot, j *job, nodes []string, now int64) bool {
	if !s.free(nodes) {
		return false
	}
	for _, other := range c.active {
		if other == j || other.kept != nil || !other.runs() && other.State != store.Starting {
			continue
		}
		for i := max(other.Step-1, 0); i < len(other.plan); i++ {
			if other.plan[i].end > now && other.plan[i].start < j.next().start && len(common(nodes, other.plan[i].nodes)) > 0 {
				return false
			}
		}
	}
	for _, r := range c.reservations {
		if own, ours := parseHold(r); ours && own.job == j.id() {
			continue
		}
		if r.Start.Unix() < j.next().start && r.End.Unix() > now && len(common(nodes, r.Nodes)) > 0 {
			return false
		}
	}
	return true
}

// beginStep is called once the job has the nodes of its next step.
func (c *Controller) beginStep(j *job, at time.Time) {
	planned := j.plan[j.Step]
	late := max(at.Sub(later(time.Unix(planned.start, 0), j.StepEnded)), 0)
	j.plan[j.Step-1].end = at.Unix()
	j.Step++
	j.State, j.StepStarted, j.StepEnded = store.Running, at, time.Time{}
	j.release, j.reason, j.warned, j.kept, j.keptTimes = nil, "", false, nil, 0
	j.overdue, j.anew = 0, false
	c.together(func() {
		c.save(j)
		c.saveParts(j)
		c.recordAllocation(j, at)
		c.event(j, "step begun", map[string]any{"step": j.Step, "planned": planned.start, "nodes": slurmctl.CompressNodes(j.nodes())})
	})
	c.logJob(j).WithField("nodes", slurmctl.CompressNodes(j.nodes())).WithField("late", late.Seconds()).Info("step begun")
	if c.snapshot != nil && planned.start != at.Unix() && !j.isChain() {
		c.refit(c.snapshot, j, at.Unix(), "the step began at another time than planned")
	}
	j.notify()
}

// grow brings the nodes of a step to a job by an expander that is started in the
// hold on them.
func (c *Controller) grow(s *snapshot, j *job, step int, nodes []string) {
	if suspect := c.isSuspect(nodes); (suspect || !c.freeFor(s, nodes, &j.record)) && len(j.expanders) == 0 {
		if late := j.State == store.Waiting && time.Now().Unix() > j.next().start+5; suspect || late || j.State == store.Running {
			c.refit(s, j, time.Now().Unix(), "nodes of the growth are not free in time")
		}
		if j.reason = s.switching(nodes); j.reason == "" {
			j.reason = "waits for nodes that others have not given back yet"
		}
		if j.State == store.Waiting {
			c.awaitNodes(j.next().start, true)
		}
		return
	}
	if j.asked == nil {
		j.reason = "what it asked for is being read"
		return
	}
	if why := c.notReady(s, j); why != "" {
		j.reason = why
		return
	}
	if p := s.partitions[partitionOf(j)]; c.rules.limits == nil && p.MinNodes > len(nodes) {
		if _, known := c.rulesSince(time.Time{}); !known {
			j.reason = "the limits of its partition are being read"
			return
		}
	}
	g := growth{c: c, base: j.id(), nodes: nodes, drive: spec.Drive(j.Drive),
		step: step, needsDBD: slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig),
		name: c.nextName(j, step).String(), expanders: slices.Clone(j.expanders), held: slices.Clone(j.held)}
	if r, ok := c.holdFor(j, step); ok && len(without(nodes, r.Nodes)) == 0 {
		g.hold, g.holdBegins = r.Name, r.Start
		if user := c.submitter(j); !slices.Contains(r.Users, user) {
			g.letIn = []string{user}
		}
	}
	if c.root || j.User == c.self {
		u, err := slurmctl.LookupUser(j.UID)
		if err != nil {
			j.reason = err.Error()
			j.retryAt = time.Now().Add(time.Second)
			return
		}
		g.user = u
	}
	j.reason = fmt.Sprintf("gets %d nodes", len(nodes))
	site := partitionOf(j) + " " + j.QOS
	c.askMore(j, &g, c.parksIn[site])
	c.goThrough(j, &g)
	to := len(j.nodes()) + len(nodes)
	limit := ""
	c.do(j, "grow", g.name+" "+slurmctl.CompressNodes(nodes), func(ctx context.Context) error {
		err := g.run(ctx)
		if words, limited := slurmctl.Limited(err); limited {
			limit = words
			return nil // nothing has failed, and nothing has changed
		}
		return err
	}, func(err error) {
		if limit != "" {
			c.keepBack(j, limit, to)
		}
		if r, ok := c.reservations[g.hold]; ok && g.opened && !g.holdGone {
			r.Users = g.letIn
			c.setHold(r) // and closed again
		}
		if g.hold != "" && g.holdGone {
			c.forgetHold(g.hold)
		}
		c.suspectNodes(g.nodes, err)
		if g.notYet != nil {
			j.reason = g.notYet.Error()
		}
		if g.request.Parked && err == nil && limit == "" {
			c.parksIn[site] = true
		}
		if g.never != nil {
			c.turn(j, g.never)
		}
		j.expanders = g.expanders
		c.mayGiveUp(j, to, err)
		if len(g.after) > 0 {
			c.setHeld(j, g.after)
		}
	})
}

// partitionOf is the partition in which the base job runs.
func partitionOf(j *job) string {
	if j.record.Partition != "" {
		return j.record.Partition
	}
	return j.Partition
}

// growth is one grow action; run works beside the loop, on its own copies.
type growth struct {
	c          *Controller
	base       slurmctl.JobID
	user       *slurmctl.User
	drive      spec.Drive
	name       string
	nodes      []string
	step       int
	held       []part // before
	hold       string
	holdBegins time.Time
	letIn      []string // to the hold, which nobody may use before
	request    slurmctl.AllocateRequest
	needsDBD   bool // at a merge

	expanders []slurmctl.JobID // not merged yet
	opened    bool             // the hold
	mayPark   bool             // the expander, see askMore
	never     error            // why nothing will ever be merged into the job
	notYet    error            // what it has to wait for
	holdGone  bool
	after     []part // what the job has now
}

// allocateWait bounds how long an expander may be pending: its nodes are free and
// its hold has begun, so it is started at once or something is wrong.
const allocateWait = 4 * time.Second

// run brings the nodes. Where Slurm still switches them on, or has suspended a job, that
// is no failure: the growth goes on once a look shows that it can.
func (g *growth) run(ctx context.Context) error {
	err := g.bring(ctx)
	if errors.Is(err, errNotYet) {
		g.notYet, err = err, nil
	}
	return err
}

func (g *growth) bring(ctx context.Context) error {
	slurm := g.c.slurm
	if err := g.open(ctx); err != nil {
		return err
	}
	var brought []slurmctl.Job
	if len(g.expanders) == 0 {
		if g.hold != "" && slurm.WantsAccount() { // what runs in a hold there cannot be taken out of it
			if g.release(ctx); !g.holdGone {
				return fmt.Errorf("hold %s could not be given up", g.hold)
			}
		} else {
			g.request.Reservation = g.hold
		}
		wait, cancel := context.WithTimeout(ctx, g.patience())
		k, err := slurm.Allocate(wait, g.request)
		if k.ID == 0 && !g.request.Parked && refusedAtSubmission(err) {
			cancel()
			g.request.Parked = true
			wait, cancel = context.WithTimeout(ctx, g.patience())
			k, err = g.parked(wait, err)
		}
		cancel()
		if err != nil {
			return err
		}
		g.expanders, brought = []slurmctl.JobID{k.ID}, []slurmctl.Job{k}
	}
	brought, err := g.begun(ctx, brought)
	if err == nil {
		err = g.dropPending(ctx, brought)
	}
	if err != nil {
		return err
	}
	for _, k := range brought {
		if why := unready(&k); why != "" {
			return fmt.Errorf("%w%s", errNotYet, why)
		}
	}
	if g.drive == spec.Companion {
		return g.keep(ctx, brought)
	}
	return g.merge(ctx)
}

// open begins the hold, for a growth before its time, and lets the expander's user in, by
// one command: from now on, until the hold is given up or closed again, he could run other
// jobs there.
func (g *growth) open(ctx context.Context) error {
	u := slurmctl.ReservationUpdate{StartNow: g.holdBegins.After(time.Now())}
	if len(g.expanders) == 0 {
		u.Users = g.letIn
	}
	if g.hold == "" || !u.StartNow && len(u.Users) == 0 {
		return nil
	}
	err := g.c.slurm.UpdateReservation(ctx, g.hold, u)
	g.opened = err == nil && len(u.Users) > 0
	return err
}

// begun looks at the expanders until they are running; brought is what is known of them.
func (g *growth) begun(ctx context.Context, brought []slurmctl.Job) (_ []slurmctl.Job, err error) {
	waits := func(k slurmctl.Job) bool { return k.State == slurmctl.Configuring || k.State == slurmctl.Pending }
	if len(brought) == 0 {
		brought, err = g.c.slurm.Glance(ctx, g.expanders...)
	}
	for end := time.Now().Add(allocateWait); err == nil && slices.ContainsFunc(brought, waits) && time.Now().Before(end); {
		pause(ctx, 50*time.Millisecond)
		brought, err = g.c.slurm.Glance(ctx, g.expanders...)
	}
	return brought, err
}

// baseRuns sees that the base job runs; otherwise the expanders are given back.
func (g *growth) baseRuns(ctx context.Context) error {
	base, err := g.c.slurm.Glance(ctx, g.base)
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
	err = g.c.slurm.Cancel(ctx, g.expanders...)
	g.expanders = nil
	return errors.Join(fmt.Errorf("job %d is %s, not RUNNING", g.base, state), err)
}

// errNotYet is what a growth has to wait for; its text is what follows.
var errNotYet = errors.New("")

// unready says in words why an expander that has nodes cannot be used yet. To merge one
// whose nodes do not come up would cost the base job its life.
func unready(k *slurmctl.Job) string {
	switch k.State {
	case slurmctl.Configuring:
		return "waits for nodes that Slurm is switching on"
	case slurmctl.Suspended:
		return "waits for nodes on which Slurm has suspended it"
	}
	return ""
}

// notReady says in words why the expanders that a job has already bring nothing yet.
func (c *Controller) notReady(s *snapshot, j *job) string {
	for _, id := range j.expanders {
		if k := s.byID[id]; k != nil {
			if why := unready(k); why != "" {
				return why
			}
		} else if j.touched.After(s.taken) {
			return "waits for the job that brings its nodes"
		}
	}
	return ""
}

// merge gives the expanders' nodes to the base job, one at a time, and reads the
// result back. The base job is seen running right before: merging into one that has
// ended leaks nodes.
func (g *growth) merge(ctx context.Context) error {
	slurm := g.c.slurm
	for len(g.expanders) > 0 {
		k := g.expanders[0]
		if g.needsDBD {
			if err := slurm.Slurmdbd(ctx); err != nil {
				return err // the expander keeps its nodes
			}
		}
		if err := g.baseRuns(ctx); err != nil {
			return err
		}
		if err := slurm.Merge(ctx, k); err != nil {
			switch {
			case slurmctl.NeverMerges(err):
				return g.instead(ctx, err)
			case linkLost(err): // or the expander is gone: ask for another one
				g.expanders = g.expanders[1:]
				return errors.Join(err, slurm.Cancel(ctx, k))
			}
			return err // the expander keeps its nodes; try again
		}
		g.expanders = g.expanders[1:]
	}
	base, err := slurm.Glance(ctx, g.base)
	if err != nil {
		return err
	}
	if len(base) != 1 || len(without(g.nodes, base[0].NodeList)) > 0 {
		return fmt.Errorf("job %d has not got all of %s by the merge", g.base, slurmctl.CompressNodes(g.nodes))
	}
	g.after = []part{{id: g.base, step: 1, nodes: base[0].NodeList}}
	g.release(ctx)
	return nil
}

// keep leaves the expander beside the base job as a companion, out of the hold.
func (g *growth) keep(ctx context.Context, brought []slurmctl.Job) error {
	if err := g.baseRuns(ctx); err != nil {
		return err
	}
	if len(brought) != len(g.expanders) {
		return fmt.Errorf("of expanders %v Slurm knows %d", g.expanders, len(brought))
	}
	none := ""
	held := g.held
	for _, k := range brought {
		if k.State != slurmctl.Running {
			return fmt.Errorf("expander %d is %s, not RUNNING", k.ID, k.State)
		}
		if g.hold != "" && !g.holdGone {
			if err := g.c.slurm.UpdateJob(ctx, k.ID, slurmctl.JobUpdate{Reservation: &none}); err != nil {
				return err
			}
		}
		held = append(held, part{id: k.ID, step: g.step, nodes: k.NodeList})
	}
	g.expanders, g.after = nil, held
	g.release(ctx)
	return nil
}

// release gives up the hold: its nodes are the job's own. Should it fail, the next
// cycle does it.
func (g *growth) release(ctx context.Context) {
	if g.hold == "" || g.holdGone {
		return
	}
	if err := ignoreUnknown(g.c.slurm.DeleteReservation(ctx, g.hold)); err == nil {
		g.holdGone = true
	}
}

// shrink gives nodes back, those of companions first, newest first.
func (c *Controller) shrink(j *job, surplus []string) {
	held := slices.Clone(j.held)
	detail := slurmctl.CompressNodes(surplus)
	j.reason = fmt.Sprintf("gives %d nodes back", len(surplus))
	needsDBD := slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig)
	c.do(j, "shrink", detail, func(ctx context.Context) error {
		for i := len(held) - 1; i >= 0; i-- {
			keep := without(held[i].nodes, surplus)
			switch {
			case len(keep) == len(held[i].nodes):
			case len(keep) == 0 && i > 0:
				if err := c.slurm.Cancel(ctx, held[i].id); err != nil {
					return err
				}
				held = slices.Delete(held, i, i+1)
			default:
				if needsDBD {
					if err := c.slurm.Slurmdbd(ctx); err != nil {
						return err
					}
				}
				if err := c.slurm.Shrink(ctx, held[i].id, keep); err != nil {
					return err
				}
				held[i].nodes = keep
			}
		}
		return nil
	}, func(err error) {
		c.setHeld(j, held)
		if err == nil && c.snapshot != nil {
			for _, name := range surplus { // others may have them at once
				delete(c.snapshot.inUse, name)
			}
		}
	})
}

// repair gives a running job back what its present step should have: after a crash
// of slurmctld rolled a merge or a shrink back, or a companion was lost.
func (c *Controller) repair(s *snapshot, j *job) {
	if j.isChain() || len(j.plan) < j.Step || j.touched.After(s.taken) {
		return
	}
	if j.stillKept(time.Now()) {
		j.reason = j.kept.text
		return
	}
	if j.kept != nil {
		c.tryAgain(s, j, time.Now())
	}
	want, have := j.plan[j.Step-1].nodes, j.nodes()
	if len(have) == j.Profile[j.Step-1].Nodes {
		return
	}
	missing, surplus := without(want, have), without(have, want)
	switch {
	case len(missing) > 0 && len(have) < j.Profile[j.Step-1].Nodes:
		c.grow(s, j, j.Step, missing)
	case len(surplus) > 0 && len(missing) == 0:
		c.event(j, "repair", map[string]any{"surplus": slurmctl.CompressNodes(surplus)})
		c.shrink(j, surplus)
	}
}

// startLink starts the Slurm job of a chain's next step in its hold.
func (c *Controller) startLink(s *snapshot, j *job, next *plannedStep, now time.Time) {
	r := s.byID[j.chain[j.Step]]
	hold, ok := c.holdFor(j, j.Step+1)
	if r == nil || r.State != slurmctl.Pending || !ok || next.start > now.Unix() {
		return
	}
	if j.letGo == r.ID && keptStart(s, r, j.touched) {
		c.park(j, r, store.Waiting)
		return
	}
	if hold.Start.After(now) || j.letGo == r.ID && now.Sub(j.touched) < 10*time.Second {
		return
	}
	c.letGo(j, r.ID, hold.Name, store.Waiting)
}
