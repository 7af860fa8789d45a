package adopt

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// If the database is lost while jobs run, the sidecar adopts them again from Slurm. The marker has the
// request, and the job has its nodes. The current step follows from these, from the holds that Slurm still
// has, and from the time. The application's word counts most: it says which step it ends.

// RecoverStep returns the step of a job that was found running. The growths that its companions brought are done. It
// recognizes a hold that outlives its growth, or that is older than a change, by these, or by the number of the job's
// nodes: no step before that hold has as many.
func RecoverStep(c *state.Core, s *state.Snapshot, j *state.Job) int {
	reached := max(j.Reached, j.Guess)
	for _, p := range j.Held {
		reached = max(reached, p.Step)
	}
	var held []int // the steps that nodes are held for
	for _, own := range s.Holds {
		if own.Job == j.BaseID() && own.Step > max(reached, 1) {
			held = append(held, own.Step)
		}
	}
	slices.Sort(held)
	elapsed := s.Taken.Add(-j.SuspendedBefore).Unix() - j.Record.StartTime.Unix()
	first := 0
	for i, coming := range append(held, 0) {
		step, fits := InferStep(j.Profile, func(step int) int { return MostOf(j, step) }, reached, len(j.Nodes()), coming, elapsed)
		if fits {
			return step
		}
		if i == 0 {
			first = step
		}
	}
	return first
}

// driveFound returns the drive mode of a job that was found running, if the job would merge by now. If companions of
// it run, it goes on with companions: why it has them may be lost with the database, and a job that merges would give
// them up.
func driveFound(c *state.Core, j *state.Job, drive drivemode.Mode, why string) (drivemode.Mode, string) {
	if j.Guess == 0 || !drive.Means().MergesGrowths {
		return drive, why
	}
	for i := range c.Snapshot.Jobs {
		k := &c.Snapshot.Jobs[i]
		if own, ours := state.ParseHoldName(k.Name); ours && own.Job == j.BaseID() && k.UID == j.UID && slurm.IsCompanion(k) {
			return drivemode.Companion, "it runs with companions"
		}
	}
	return drive, why
}

// InferStep returns the current step (1-based, `reached` or a later one) of a job that holds `nodes` nodes,
// may have `most` in each step, and began `elapsed` seconds ago. It also reports whether the job may have that
// many nodes in that step. `coming` is the first step that nodes are held for, or 0 if there is none. All
// growths of a running job are held, so the growths before `coming` are done; but lent nodes may look like
// those of a growth. O(steps).
func InferStep(p planner.Profile, most func(step int) int, reached, nodes, coming int, elapsed int64) (step int, fits bool) {
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
	for _, from := range []int{lowest, reached} { // without holds, which may have ended, the time decides
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

// requeuedSince reports whether a running job has begun again since its marker was written. Then it may be in
// any step.
func requeuedSince(c *state.Core, r *slurmctl.Job, at *request.Reached) bool {
	return at.Began != 0 && c.WallSecond(r.StartTime.Unix()) != at.Began
}

// Recovered sets the current step of a job that was found running.
func Recovered(c *state.Core, j *state.Job, step int) {
	began := j.Started.Add(j.SuspendedBefore)
	for _, earlier := range j.Profile[:step-1] {
		began = began.Add(time.Duration(earlier.Duration) * time.Second)
	}
	if now := c.Now; began.After(now) {
		began = now
	}
	j.EnterStep(step, began)
}

// Doubt compares restored jobs with their markers if a sidecar on another host may have acted since the database was
// written. A job whose request is another one in Slurm is forgotten, to be adopted again from its marker. Of a running
// job, the step is a guess. What this sidecar changes itself is no doubt.
func Doubt(c *state.Core, s *state.Snapshot) {
	for _, j := range slices.Clone(c.Active) {
		r := s.ByID[j.BaseID()]
		if !j.Doubtful || r == nil || r.UID != j.UID || r.Ended() || j.Busy || j.Touched.After(s.Taken) {
			continue
		}
		if why := outdated(c, j, r); why != "" {
			c.LogJob(j).Info(why + ": adopting it again")
			c.Active = slices.DeleteFunc(c.Active, func(o *state.Job) bool { return o == j })
			maps.DeleteFunc(c.ByID, func(_ slurmctl.JobID, o *state.Job) bool { return o == j })
			delete(c.Unsaved, j)
			continue
		}
		if running(r) && j.Guess == 0 { // a guess in the copy stays one
			j.Guessed(max(j.Step, 1))
			c.Save(j)
		}
	}
}

// outdated returns why Slurm has another request of a job than a copy of the database, or "". If the copy was made while
// the last change was under way, and Slurm does not have it, the other sidecar may have answered that Slurm refused it.
// If it did not answer, the caller still waits, and asks again.
func outdated(c *state.Core, j *state.Job, r *slurmctl.Job) string {
	m, ok, err := request.ParseMarker(r.Comment)
	last, open := j.OpenChange()
	switch {
	case !ok || err != nil || open && m.Updated == last.ID:
		return ""
	case open:
		c.Event(j, "change refused", map[string]any{"asked": "change to " + j.Profile.String(), "why": "Slurm did not have it when this sidecar took over"})
		return "Slurm does not have the last change of the job"
	case m.Updated != "" && !slices.ContainsFunc(j.Changes, func(ch row.Change) bool { return ch.ID == m.Updated }):
		return "the job was changed since the database was copied"
	}
	return ""
}

// Again is called when a job has begun again while this sidecar did not look: another one may have led it on since.
func Again(c *state.Core, j *state.Job) {
	if c.Config.Takeover > 0 {
		j.Guessed(1)
	}
}

// restOfChain turns a link into the first link of a shorter chain if the chain's first job is gone and was
// never known. It reports false if there is nothing to adopt.
func restOfChain(c *state.Core, s *state.Snapshot, r *slurmctl.Job, sp request.Request) (request.Request, []slurmctl.JobID, bool) {
	first := slurmctl.JobID(sp.Chain.First)
	if s.ByID[first] != nil || c.ByID[first] != nil || sp.Chain.Step > len(sp.Profile) {
		return sp, nil, false // adopted with the chain's first job
	}
	if known, ever := c.Known[first]; ever && !known.Submitted.After(r.SubmitTime) {
		// the chain has ended: its remaining jobs must not stay parked
		if CancelBeside(c, "a job of a chain", r.ID) {
			c.Log.WithField("job", r.ID).WithField("chain", first).Info("cancelling a job that outlived its chain")
		}
		return sp, nil, false
	}
	links := linksOf(c, s, chainWith(r, sp))
	rest := between(links, sp.Chain.Step, len(sp.Profile))
	if len(rest) < len(sp.Profile)-sp.Chain.Step+1 || rest[0] != r.ID || links.Steps[0] < sp.Chain.Step {
		return sp, nil, false // incomplete, or adopted with an earlier link
	}
	sp.Profile, sp.Moldable = slices.Clone(sp.Profile[sp.Chain.Step-1:]), nil // the chosen alternative stays
	return sp, slices.Clone(rest), true
}
