package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Restore loads from the database the jobs that had not ended, and the latest jobs that had
// ended.
func Restore(c *state.Core, books msg.Books) {
	c.Work.Last, c.LastRow = books.LastIntent, books.LastRow
	restoreLedger(c, books)
	for _, a := range books.Aside {
		c.Aside[a.Job] = a
	}
	for _, k := range books.Known {
		c.Known[slurmctl.JobID(k.SlurmID)] = k
	}
	if c.Config.Observes() {
		restoreUndriven(c, books)
		return
	}
	for _, b := range books.Active {
		j := restored(c, b)
		if SetAside(c, j.BaseID(), j.Submitted) != "" {
			continue // adopt reports it if Slurm still has the job
		}
		j.Restarted(j.BaseID() != books.Doubt, j.Lapsed())
		j.Doubtful = c.Config.Takeover > 0 && !j.Mode.StepsAreJobs
		if j.State == row.Starting {
			// We do not know whether Slurm got the start command; repeating it is harmless.
			j.NotLaunched()
			if len(j.Plan) < len(j.Profile) { // its promise lapsed while Slurm was starting it
				j.Forsake()
			}
			c.Save(j)
		}
		var parts []msg.Part
		for _, p := range b.Parts {
			parts = append(parts, msg.Part{ID: slurmctl.JobID(p.SlurmID), Step: p.Step, Nodes: expanded(p.NodeList)})
		}
		j.Consists(parts)
		j.Promised(b.Open)
		bindTo(j, b.Bound)
		c.NotInFuture(j, c.Now)
		if k := j.Step; k > 1 && k <= len(j.Plan) { // nodes given back when the step began; slurmd and the database both use whole seconds
			j.GaveBack(msg.Without(j.Plan[k-2].Nodes, j.Plan[k-1].Nodes), j.StepStarted)
		}
		Add(c, j)
	}
	for _, b := range books.Ended {
		c.Ended = append(c.Ended, restored(c, b))
	}
	// The next observation shows how far each intent came. Every decision is based on that.
	for _, i := range books.Intents {
		c.Log.WithField("intent", i.ID).WithField("action", i.Action).Info("a change was under way when the sidecar stopped: " + i.Detail)
		c.Emit(msg.Settle{Intent: i.ID, At: c.Now, Err: "the sidecar stopped in the middle"})
	}
	c.Event(nil, "sidecar started", map[string]any{"version": c.Site.Version, "jobs": len(books.Active)})
}

// restoreLedger takes over the rows of holds that were there, and of jobs that waited, when the sidecar stopped.
func restoreLedger(c *state.Core, books msg.Books) {
	c.LastHold = books.LastHold
	for _, h := range books.Holds {
		c.In(&h.Planned, &h.Made, &h.Changed, &h.Begun, &h.Counted)
		c.Ledger[h.Name] = &state.Booked{Hold: h, Size: h.Nodes}
		if h.Cause == row.CauseNotMade {
			c.Ledger[h.Name].Size = 0
		}
	}
	for _, d := range books.Delays {
		c.In(&d.Submitted, &d.Since, &d.Could)
		c.Delays.Late[slurmctl.JobID(d.SlurmID)] = &d
	}
	for _, d := range books.GrowDelays {
		if d.User {
			c.In(&d.Since)
		}
		c.Delays.Grown[d.GrowDelayOf] = d
	}
	slurm.RestoreEpilogs(c, books.Epilogs)
}

// restored returns a job of the database with its plan and its past steps.
func restored(c *state.Core, b msg.BookedJob) *state.Job {
	var plan []msg.PlannedStep
	for _, p := range b.Plan {
		plan = append(plan, msg.PlannedStep{Start: p.Start.Unix(), End: p.End.Unix(), Nodes: expanded(p.NodeList)})
	}
	j := state.Restored(&b.Job, b.Past, plan)
	state.SetMode(c, j)
	return j
}

// expanded lists the nodes of a node list that the sidecar itself wrote.
func expanded(list string) []string {
	nodes, err := slurmctl.ExpandNodes(list)
	if err != nil {
		return nil // the shell has checked the list before
	}
	return nodes
}

// Add puts a job on the list of active jobs, and removes it from the list of ended jobs.
func Add(c *state.Core, j *state.Job) {
	c.Ended = slices.DeleteFunc(c.Ended, func(other *state.Job) bool { return other.ID == j.ID })
	state.SetMode(c, j)
	c.Active = append(c.Active, j)
	c.ByID[j.BaseID()] = j
	for _, id := range j.Chain {
		c.ByID[id] = j
	}
	for _, p := range j.Held {
		c.ByID[p.ID] = j
	}
}

// Adopt takes in the jobs that have the marker of evosbatch in their comments.
func Adopt(c *state.Core, s *state.Snapshot) {
	clear(c.Coming)
	c.Links = nil
	noteArrays(c, s)
	for r := range inTurns(c, s) {
		if own, ours := state.ParseHoldName(r.Name); ours && c.ByID[own.Job] != nil && MayBring(c, r, c.ByID[own.Job]) {
			c.ByID[own.Job].Numbered(own.Attempt)
		}
		if isStranger(c, r) && !noteLetGo(c, r) && slurm.Driven(c, r.Partition) && !refuseAside(c, r) {
			AdoptIfAsked(c, s, r)
		}
	}
	c.Handling.Done()
	for _, own := range s.Holds {
		if c.ByID[own.Job] != nil {
			c.ByID[own.Job].Numbered(own.Attempt)
		}
	}
	forgetRead(c, s)
}

// isStranger reports whether a Slurm job is neither adopted nor refused, and could be adopted.
func isStranger(c *state.Core, r *slurmctl.Job) bool {
	switch r.State {
	case slurmctl.Pending, slurmctl.Configuring, slurmctl.Running, slurmctl.Suspended:
		return c.Owner(r.ID) == nil && c.Refused[r.ID].ID == 0 && r.ArrayTasks <= 1
	}
	return false
}

// AdoptIfAsked adopts a Slurm job that asks for it once its whole request is known, or refuses it.
func AdoptIfAsked(c *state.Core, s *state.Snapshot, r *slurmctl.Job) {
	c.Handling.Note(r.ID, r.SubmitTime, msg.First)
	sp, asked, err := requestOf(c, s, r)
	if err != nil {
		Refuse(c, r, err)
		return
	}
	if !asked || refuseDrained(c, r) {
		return
	}
	if err := cmp.Or(oneJob(r, sp), onBlocks(c, r, sp), inReservation(c, s, r, sp), denied(c, r, nil)); err != nil {
		Refuse(c, r, err)
		return
	}
	c.Coming[r.ID] = r.UID
	sp, chain, whole := wholeChain(c, s, r, sp)
	if !whole {
		if why := neverWhole(c, s, r, sp); why != nil {
			RefuseAtLast(c, r, why)
		}
		return
	}
	grows := sp.Whole()
	if chain != nil {
		grows = nil // every step is a job with its own script
	}
	a, known := ReadAsked(c, r, grows)
	if !known {
		return
	}
	sp, why, known := plan.MayEver(c, r, sp, chain != nil, understood(a))
	if !known {
		return
	}
	if why == nil {
		why = adoptJob(c, r, sp, chain, a)
	}
	if why != nil {
		Refuse(c, r, why)
	}
}

// onBlocks returns why a waiting job cannot evolve on a site with blocks, or nil. Each step of a chain is a start, and its nodes
// follow from those of the step before: if Slurm refuses them, the chain would wait in its hold without end.
func onBlocks(c *state.Core, r *slurmctl.Job, sp request.Request) error {
	if c.Topology.Blocks && sp.Drive.Means().StepsAreJobs && r.State == slurmctl.Pending {
		return errors.New("the steps of a chain cannot be planned on blocks yet (topology/block): submit it without --drive=chain")
	}
	return nil
}

// oneJob returns why a Slurm job that is a part of something larger cannot evolve, or nil. evosbatch
// rejects such jobs, but a user can write a marker by hand.
func oneJob(r *slurmctl.Job, sp request.Request) error {
	if r.Heterogenous {
		return errors.New("heterogeneous jobs cannot be planned yet: submit each component with evosbatch")
	}
	if _, is := r.Task(); is {
		return arrayOf(sp, r)
	}
	return nil
}

// forgetRead deletes what was read about Slurm jobs that are gone or adopted.
func forgetRead(c *state.Core, s *state.Snapshot) {
	for id := range c.Refused {
		if s.ByID[id] == nil {
			delete(c.Refused, id)
		}
	}
	for id, read := range c.Scripts {
		if gone := s.ByID[id] == nil; gone && read.Tries > 0 || (gone || c.Owner(id) != nil) && read.Known {
			delete(c.Scripts, id)
		}
	}
	for id := range c.Requests {
		if s.ByID[id] == nil || c.Owner(id) != nil {
			delete(c.Requests, id)
		}
	}
}

// Refuse does not adopt a job with a marker: the job stays parked, or waits or runs as a stock job. The
// event and the log give the reason, as far as the user's share of events goes.
func Refuse(c *state.Core, r *slurmctl.Job, err error) {
	left := "it waits as a stock job"
	switch {
	case running(r):
		left = "it runs on as a stock job"
	case mayHaveLost(c, r, c.Now):
		left = "it stays parked"
	}
	_, denied := errors.AsType[denial](err)
	known, ever := c.Known[r.ID]
	c.Refused[r.ID] = state.Refused{Job: Stranger(r, "refused: "+err.Error()), Since: c.Now, Denied: denied,
		Was: denied && ever && known.UID == r.UID && !known.Submitted.After(r.SubmitTime)}
	line := c.Log.WithField("job", r.ID).WithField("user", r.User).WithError(err)
	c.WarnOf(r.UID, line, "cannot adopt the job; "+left, "refused", map[string]any{"slurm_id": r.ID, "uid": r.UID, "user": r.User, "error": err.Error()})
}

// RefuseAtLast does what Refuse does with a job that has waited for give_up already, so that the site's policy for
// refused jobs applies at once.
func RefuseAtLast(c *state.Core, r *slurmctl.Job, err error) {
	Refuse(c, r, err)
	in := c.Refused[r.ID]
	in.Since = c.Now.Add(-c.Config.GiveUp)
	c.Refused[r.ID] = in
}

// Stranger returns a job that is not adopted in the form that evosqueue shows.
func Stranger(r *slurmctl.Job, reason string) api.Job {
	state := row.Queued
	if running(r) {
		state = row.Running
	}
	a := api.Job{ID: uint32(r.ID), Name: r.Name, User: r.User, UID: r.UID, Account: r.Account, Partition: r.Partition, State: string(state),
		Nodes: len(r.NodeList), NodeList: slurmctl.CompressNodes(r.NodeList), Reason: reason, Priority: r.Priority, Submit: r.SubmitTime, Plan: []api.Span{}, Past: []api.Span{}}
	nameTasks(&a, r)
	return a
}

// chooseDrive sets the drive mode of a job that is adopted, and returns why it has that.
func chooseDrive(c *state.Core, r *slurmctl.Job, sp request.Request, j *state.Job) (string, error) {
	if j.Chain != nil {
		return "submitted as one", nil
	}
	drive, why, err := slurm.DriveOf(c, r, sp, j.Asked.StepMgr)
	if err != nil {
		return "", err
	}
	drive, why = driveFound(c, j, drive, why)
	if against := noMergeInArray(c, r); drive.Means().MergesGrowths && against != "" {
		drive, why = drivemode.Companion, against
	}
	j.DriveBy(string(drive))
	return why, nil
}

func adoptJob(c *state.Core, r *slurmctl.Job, sp request.Request, chain []slurmctl.JobID, a state.RequestRead) error {
	if err := cmp.Or(a.UserErr, denied(c, r, groupsOf(a))); err != nil {
		return err
	}
	sp, err := plan.Malleable(c, r, sp)
	if err != nil {
		return err
	}
	j, why, err := newJob(c, r, sp, chain, a)
	if err != nil {
		return err
	}
	c.AddJob(j, adopted(c, j, sp, why))
	Add(c, j)
	c.LogJob(j).WithField("profile", j.Profile.String()).WithField("drive", j.Drive).Info("adopted")
	return nil
}

// newJob makes a job of what a Slurm job asks for, with the reason for its drive mode, or returns why it cannot evolve.
func newJob(c *state.Core, r *slurmctl.Job, sp request.Request, chain []slurmctl.JobID, a state.RequestRead) (*state.Job, string, error) {
	whole := sp.Whole()
	if err := checkSteps(c, r, sp, whole); err != nil {
		return nil, "", err
	}
	array, task := taskOf(r)
	values := &row.Job{
		Owned: row.Owned{SlurmID: uint32(r.ID), Array: array, Task: task, Submitted: r.SubmitTime, Name: ownName(r), User: r.User, UID: r.UID, GID: gid(a),
			Account: r.Account, QOS: r.QOS, Partition: r.Partition},
		Terms: row.Terms{Profile: whole, ExpandLimit: sp.ExpandLimit, Moldable: plan.MoldableOf(sp), Malleable: plan.MalleableOf(sp),
			Drive: string(drivemode.Chain), Begin: sp.Begin, Claim: sp.MaxNodes, Reservation: ownOf(c, r, sp), Prefer: sp.Prefer},
		Usage: row.Usage{Components: componentsOf(sp), Frequencies: sp.Frequencies},
		Aimed: row.Aimed{Aim: sp.Aim},
		Life:  row.Life{State: row.Queued},
	}
	j := &state.Job{Job: values, Adopted: state.Adopted{Chain: chain, Script: a.Script, SuspendedBefore: a.SuspendedBefore, Unmarked: true}}
	if running(r) {
		j.Guessed(1)
	}
	switch {
	case sp.Reached != nil:
		j.Changed(row.Change{ID: sp.Updated, Step: sp.Reached.Step})
		if j.Guess > 0 && !requeuedSince(c, r, sp.Reached) {
			j.FoundIn(sp.Reached.Step)
		}
	case sp.Updated != "":
		j.Changed(row.Change{ID: sp.Updated})
	}
	bindTo(j, sp.Nodes)
	See(j, r)
	if err := learn(j, a, whole[0].Nodes); err != nil {
		return nil, "", err
	}
	if err := errors.Join(sp.CheckClaim(), sp.CheckLinks(), plan.ClaimBeyond(c, j)); err != nil {
		return nil, "", err
	}
	why, err := chooseDrive(c, r, sp, j)
	state.SetMode(c, j)
	return j, why, err
}

// Supposed returns a job as it would be adopted if Slurm had that record of it, or why it never could be. The limits of its
// account and QOS are left to the submission.
func Supposed(c *state.Core, s *state.Snapshot, r slurmctl.Job, asked slurmctl.JobRequest) (*state.Job, error) {
	sp, marked, err := request.ParseMarker(r.Comment)
	if err == nil && !marked {
		err = errors.New("the request is no marker of an evolving job")
	}
	if err == nil {
		sp, err = bounded(s, sp)
	}
	if err = cmp.Or(err, onBlocks(c, &r, sp), inReservation(c, s, &r, sp)); err != nil {
		return nil, err
	}
	if sp, err = plan.Malleable(c, &r, sp); err != nil {
		return nil, err
	}
	r.NumNodes = sp.Whole()[0].Nodes
	j, _, err := newJob(c, &r, sp, nil, state.RequestRead{Request: asked, Known: true})
	return j, err
}

// adopted returns what the event of a new job tells.
func adopted(c *state.Core, j *state.Job, sp request.Request, why string) map[string]any {
	detail := map[string]any{"slurm_id": j.SlurmID, "user": j.User, "profile": j.Profile.String(),
		"expand_limit": plan.ExpandLimit(c, j), "drive": j.Drive, "drive_reason": why}
	if sp.Moldable != nil {
		detail["alternatives"] = sp.Alternatives()
	}
	if sp.Malleable != nil {
		detail["bounds"] = request.BoundsOf(j.Profile, j.Malleable.Max).String()
	}
	if sp.Frequencies != nil {
		detail["cpu_freq"] = request.WithFrequencies(j.Profile, j.Frequencies)
	}
	return detail
}

// componentsOf returns the components of a request, with their nodes in each step.
func componentsOf(sp request.Request) []row.Component {
	if len(sp.Components) == 0 {
		return nil
	}
	_, sizes := request.SumOf(sp.Components)
	all := make([]row.Component, len(sp.Components))
	for i, one := range sp.Components {
		all[i] = row.Component{Name: one.Name, Sizes: sizes[i]}
	}
	return all
}

// checkSteps returns an error if a job's steps are invalid, or the sidecar may not choose their nodes.
func checkSteps(c *state.Core, r *slurmctl.Job, sp request.Request, whole planner.Profile) error {
	if err := whole.Validate(); err != nil {
		return err
	}
	if sp.Moldable != nil && !c.Site.Root && r.User != c.Site.User {
		return fmt.Errorf("a moldable job is given its nodes in its user's name, for which the sidecar must run as root, not as %s", c.Site.User)
	}
	// Slurm never starts a larger job on the nodes of its first step. A smaller one gets the missing nodes once it runs. The
	// size of a moldable job may be that of another alternative.
	if first := whole[0].Nodes; r.NumNodes > first && sp.Moldable == nil && r.State == slurmctl.Pending && sp.Reached == nil {
		return fmt.Errorf("it asks Slurm for %d nodes, and the first step of its profile has %d: submit it by evosbatch, or with --nodes=%[2]d", r.NumNodes, first)
	}
	return nil
}

// Without adds the nodes that the job avoids to the nodes that it excludes itself.
func Without(j *state.Job, excluded []string) []string {
	if len(j.Shunned) == 0 {
		return excluded
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(excluded, slices.Collect(maps.Keys(j.Shunned))))))
}

const (
	// StartWait is how long Slurm may take to start a released job.
	StartWait = time.Minute
	// Parked is how far in the future the start of a job without a plan is.
	Parked = 10 * 365 * 24 * time.Hour
)
