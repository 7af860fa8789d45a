package change

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A growth on demand that does not fit beside the waiting jobs may make them start later, by grow_delay at most. The
// budget is a waiting job's: whatever growths make it later, and whosever they are, their seconds add up in the ledger
// until the job no longer waits. Nodes promised to running jobs stay promised. The growths of one user take no more from
// others than grow_delay on every node, until an hour has passed without such a growth.

// shareFor is how long after a user's last growth that made others later the user's share counts.
const shareFor = time.Hour

// mostLater returns how many seconds later all growths together may make a waiting job.
func mostLater(c *state.Core, r *slurmctl.Job, evolving bool) int64 {
	most := c.Config.GrowDelay
	if budgets, err := c.Config.Delays(); err == nil && !evolving { // Validate rejects invalid delays before
		most = min(most, budgets.Of(r.Partition, r.QOS))
	}
	return slurm.Seconds(most)
}

// budgetOf returns how many seconds later growths may still make a waiting job.
func budgetOf(c *state.Core, r *slurmctl.Job, evolving bool) int64 {
	most := mostLater(c, r, evolving)
	if d := c.Delays.Grown[row.GrowDelayOf{ID: uint32(r.ID)}]; d.Since.Equal(c.Wall(r.SubmitTime)) {
		return max(most-d.Amount, 0)
	}
	return most
}

// share returns how many node-seconds a user's growths may take from waiting jobs within shareFor.
func share(c *state.Core, s *state.Snapshot) int64 {
	return slurm.Seconds(c.Config.GrowDelay) * int64(len(s.Nodes))
}

// shareLeft returns how many node-seconds a user's growths may still take from waiting jobs.
func shareLeft(c *state.Core, s *state.Snapshot, uid uint32) int64 {
	if d := c.Delays.Grown[row.GrowDelayOf{User: true, ID: uid}]; !c.Reached(c.Now, d.Since.Add(shareFor)) {
		return max(share(c, s)-d.Amount, 0)
	}
	return share(c, s)
}

// Grown returns how much each user's growths took from waiting jobs, and how much later these jobs are, as far as it counts.
func Grown(c *state.Core) (users []api.BudgetGrowth, jobs []api.BudgetMoved) {
	if c.Snapshot == nil {
		return nil, nil
	}
	for _, of := range slices.SortedFunc(maps.Keys(c.Delays.Grown), row.GrowDelayOf.Compare) {
		d := c.Delays.Grown[of]
		if !counts(c, d) {
			continue
		}
		if r := c.Snapshot.ByID[slurmctl.JobID(of.ID)]; !of.User {
			jobs = append(jobs, api.BudgetMoved{Job: of.ID, User: r.User, Seconds: float64(d.Amount), Most: float64(mostLater(c, r, c.ByID[r.ID] != nil))})
			continue
		}
		name := strconv.FormatUint(uint64(of.ID), 10)
		if i := slices.IndexFunc(c.Active, func(j *state.Job) bool { return j.UID == of.ID }); i >= 0 {
			name = c.Active[i].User
		}
		users = append(users, api.BudgetGrowth{UID: of.ID, User: name, NodeSeconds: d.Amount, MostNodeSeconds: share(c, c.Snapshot), Until: c.Wall(d.Since.Add(shareFor))})
	}
	return users, jobs
}

// counts reports whether a row still counts: a user's for shareFor, a job's while it waits.
func counts(c *state.Core, d row.GrowDelay) bool {
	if d.User {
		return !c.Reached(c.Now, d.Since.Add(shareFor))
	}
	r := c.Snapshot.ByID[slurmctl.JobID(d.ID)]
	return r != nil && r.State == slurmctl.Pending && c.Wall(r.SubmitTime).Equal(d.Since)
}

// postponing has a growth that does not fit beside the waiting jobs fit with some of them later. It returns why it cannot,
// as an addition to other reasons, as far as it is because of them.
func postponing(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target) (why string) {
	fit := func(later func(slurm.Candidate) int64) string {
		f := refit.Fitting{Around: refit.AroundOf(c, s, j, later), Strict: true, Wait: t.Wait}
		r := refit.FitSafely(c, s, j, t, s.Taken.Unix(), f, false)
		t.Plan, t.Later = r.Plan, nil
		return r.Unfit
	}
	if fit(func(w slurm.Candidate) int64 { return budgetOf(c, w.Record, w.Job != nil) }) == "" {
		if why = postponed(c, s, j, t); why == "" {
			return ""
		}
	} else if fit(func(slurm.Candidate) int64 { return planner.MaxDuration }) == "" {
		why = postponed(c, s, j, t)
	}
	if t.Plan, t.Later = nil, nil; why != "" {
		why = "; " + why
	}
	return why
}

// postponed finds which waiting jobs a growth as planned makes later, and returns why it may not.
func postponed(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target) string {
	jobs := refit.Postponed(c, s, j, t, t.Plan)
	worst, taken := -1, int64(0)
	for i, w := range jobs {
		if over := w.Seconds - budgetOf(c, w.Record, w.Job != nil); over > 0 && (worst < 0 || w.Seconds > jobs[worst].Seconds) {
			worst = i
		}
	}
	if worst >= 0 {
		w := jobs[worst]
		r, left := w.Record, budgetOf(c, w.Record, w.Job != nil)
		name := msg.JobNumber(uint32(r.ID))
		if r.UID != j.UID && view.Reading(c) == api.OwnJobs {
			name = "another's job"
		}
		if w.Seconds == planner.Forever {
			return name + " could not start any more with it"
		}
		return fmt.Sprintf("with it, %s would start %v later, and growths may make it %v later (grow_delay)", name, time.Duration(w.Seconds)*time.Second, time.Duration(left)*time.Second)
	}
	for _, w := range jobs {
		one := row.Postponed{Job: uint32(w.Record.ID), Seconds: w.Seconds, Nodes: w.Profile[0].Nodes, Would: w.Would}
		t.Later, taken = append(t.Later, one), taken+one.Seconds*int64(one.Nodes)
	}
	if left := shareLeft(c, s, j.UID); taken > left {
		return fmt.Sprintf("it would take %d node-seconds from waiting jobs, and the growths of %s may take %d more until an hour has passed without such a growth (grow_delay)", taken, j.User, left)
	}
	return ""
}

// bookGrowth books what a growth takes from waiting jobs.
func bookGrowth(c *state.Core, j *state.Job, all []row.Postponed) {
	if len(all) == 0 {
		return
	}
	taken := int64(0)
	for _, one := range all {
		r := c.Snapshot.ByID[slurmctl.JobID(one.Job)]
		if r == nil {
			continue
		}
		taken += one.Seconds * int64(one.Nodes)
		addTo(c, row.GrowDelayOf{ID: one.Job}, c.Wall(r.SubmitTime), c.Wall(r.SubmitTime), one.Seconds)
	}
	of := row.GrowDelayOf{User: true, ID: j.UID}
	since := c.Delays.Grown[of].Since
	if c.Reached(c.Now, since.Add(shareFor)) {
		since = c.Now
	}
	addTo(c, of, since, c.Now, taken)
	c.LogJob(j).WithField("jobs", len(all)).WithField("node_seconds", taken).Info("its growth makes waiting jobs later")
}

// addTo adds to the amount of a row that began at a time, or begins the row. The row then counts from another time.
func addTo(c *state.Core, of row.GrowDelayOf, began, since time.Time, amount int64) {
	if d := c.Delays.Grown[of]; d.Since.Equal(began) {
		amount += d.Amount
	}
	d := row.GrowDelay{GrowDelayOf: of, Since: since, Amount: amount}
	c.Delays.Grown[of] = d
	c.Emit(msg.SaveGrowDelay{Row: d})
}

// forgetGrown drops the rows of jobs that no longer wait, and of users whose share counts no longer.
func forgetGrown(c *state.Core) {
	for _, of := range slices.SortedFunc(maps.Keys(c.Delays.Grown), row.GrowDelayOf.Compare) {
		if counts(c, c.Delays.Grown[of]) {
			continue
		}
		delete(c.Delays.Grown, of)
		c.Emit(msg.SaveGrowDelay{Row: row.GrowDelay{GrowDelayOf: of}})
	}
}
