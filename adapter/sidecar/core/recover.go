package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Where the database is lost while jobs run, they are adopted again from Slurm: the
// request is in the marker, the nodes are the job's, and which step it is in
// follows from these, from the holds that Slurm still has, and from the time. The
// application has the last word: it says which step it ends.

// recoverStep is the step of a job that was found running. A hold that outlives its growth, or that is of
// before a change, is told by the number of the job's nodes, which no step before it has.
func (c *Core) recoverStep(s *snapshot, j *job) int {
	var held []int // the steps that nodes are held for
	for _, r := range s.reservations {
		if own, ours := parseHold(r); ours && own.job == j.id() && own.step > 1 {
			held = append(held, own.step)
		}
	}
	slices.Sort(held)
	elapsed := s.taken.Add(-j.suspendedBefore).Unix() - j.record.StartTime.Unix()
	first := 0
	for i, coming := range append(held, 0) {
		step, fits := inferStep(j.Profile, j.mostOf, j.reached, len(j.nodes()), coming, elapsed)
		if fits {
			return step
		}
		if i == 0 {
			first = step
		}
	}
	return first
}

// inferStep says which step (1-based), reached or one after it, a job is in that holds so
// many nodes, may have the most in each, and began elapsed seconds ago; and whether it may have as many
// in that step. coming is the first step that nodes are held for, 0 if
// there is none: all growths of a running job are held, so those before it are
// done; but nodes that it was lent may be those of a growth. O(steps).
func inferStep(p planner.Profile, most func(step int) int, reached, nodes, coming int, elapsed int64) (step int, fits bool) {
	reached = min(max(reached, 1), len(p))
	lowest, highest := reached, len(p)
	if coming > reached && coming <= len(p) {
		highest = coming - 1
	}
	for k := reached + 1; k <= highest; k++ {
		if before := most(k - 1); p[k-1].Nodes > p[k-2].Nodes && (before == p[k-2].Nodes || nodes > before) {
			lowest = k
		}
	}
	for _, from := range []int{lowest, reached} { // without holds, which may have ended, the time tells
		best, distance, start := 0, int64(0), int64(0)
		for k := 1; k <= highest; k++ {
			end := start + p[k-1].Duration
			d := max(start-elapsed, elapsed-end+1, 0)
			if k >= from && p[k-1].Nodes <= nodes && nodes <= most(k) && (best == 0 || d < distance) {
				best, distance = k, d
			}
			start = end
		}
		if best > 0 {
			return best, true
		}
	}
	return lowest, false
}

// requeuedSince reports whether a job that runs has begun anew since its marker was written: it may be in
// any step then.
func (c *Core) requeuedSince(r *slurmctl.Job, at *request.Reached) bool {
	return at.Began != 0 && c.wallSecond(r.StartTime.Unix()) != at.Began
}

// recovered puts a job that was found running into the step that it is in.
func (c *Core) recovered(j *job, step int) {
	began := j.Started.Add(j.suspendedBefore)
	for _, earlier := range j.Profile[:step-1] {
		began = began.Add(time.Duration(earlier.Duration) * time.Second)
	}
	if now := c.now; began.After(now) {
		began = now
	}
	j.Step, j.StepStarted = step, began
}

// believe takes the application's word for the step that it is in, where the
// sidecar itself could only infer it. A step before that in which it was when others changed what
// is to come says no more than that the application has not heard of that.
func (c *Core) believe(j *job, step int) {
	if !j.inferred || !j.mode.scriptSpansSteps || step < max(j.reached, 1) || step > len(j.Profile) {
		return
	}
	j.inferred = false
	if step == j.Step {
		return
	}
	c.logJob(j).WithField("said", step).Warn("the application is in another step than was inferred")
	c.recovered(j, step)
	c.storePlan(j, nil)
	c.save(j)
	c.event(j, "step corrected", map[string]any{"step": step})
	if c.snapshot != nil {
		c.refit(c.snapshot, j, c.now.Unix(), "the application is in another step than was inferred")
	}
}

// restOfChain makes of a link whose chain's first job is gone, and was never known,
// the first of a shorter chain. It says false where there is nothing to adopt.
func (c *Core) restOfChain(s *snapshot, r *slurmctl.Job, sp request.Request) (request.Request, []slurmctl.JobID, bool) {
	first := slurmctl.JobID(sp.Chain.First)
	if s.byID[first] != nil || c.byID[first] != nil || sp.Chain.Step > len(sp.Profile) {
		return sp, nil, false // comes with the chain's first job
	}
	if known, ever := c.known[first]; ever && !known.Submitted.After(r.SubmitTime) {
		// it has ended as a whole: what is left of it must not stay parked for ever
		if c.cancelBeside("a job of a chain", r.ID) {
			c.log.WithField("job", r.ID).WithField("chain", first).Info("a job of a chain outlived it and is cancelled")
		}
		return sp, nil, false
	}
	ids := make([]slurmctl.JobID, len(sp.Profile))
	ids[sp.Chain.Step-1] = r.ID
	for i := range s.jobs {
		other := &s.jobs[i]
		o, asked, err := c.request(s, other)
		if err == nil && asked && o.Chain != nil && o.Chain.First == sp.Chain.First && other.UID == r.UID &&
			o.Chain.Step >= 1 && o.Chain.Step <= len(ids) && other.ID != r.ID {
			ids[o.Chain.Step-1] = other.ID
		}
	}
	rest := ids[sp.Chain.Step-1:]
	if slices.ContainsFunc(ids[:sp.Chain.Step-1], func(id slurmctl.JobID) bool { return id != 0 }) || slices.Contains(rest, 0) {
		return sp, nil, false // comes with an earlier link, or is not whole
	}
	sp.Profile, sp.Moldable = slices.Clone(sp.Profile[sp.Chain.Step-1:]), nil // what it began with stays
	return sp, rest, true
}

// transient reports whether asking again may bring another answer.
func transient(err error) bool {
	return errors.Is(err, slurmctl.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
