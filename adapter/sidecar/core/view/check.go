package view

import (
	"errors"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/couple"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Check returns an error if the jobs or the tasks under way violate an invariant. It is for tests; O(jobs × steps × nodes).
func Check(c *state.Core) error {
	return errors.Join(CheckJobs(c), checkWork(c))
}

// CheckJobs checks that every job is where its state says, and that ByID finds it by its Slurm jobs.
func CheckJobs(c *state.Core) error {
	var errs []error
	bad := func(j *state.Job, format string, args ...any) {
		errs = append(errs, fmt.Errorf("job %d (%s, step %d): %s", j.SlurmID, j.State, j.Step, fmt.Sprintf(format, args...)))
	}
	for _, j := range c.Active {
		checkState(c, j, bad)
		checkPlan(j, bad)
		couple.Check(j, bad)
	}
	lend.CheckLent(c, bad)
	for _, j := range c.Ended {
		if j.State != row.Ended {
			errs = append(errs, fmt.Errorf("job %d is among the ended ones, %s", j.SlurmID, j.State))
		}
	}
	return errors.Join(errs...)
}

// checkState checks that a job is where its state says.
func checkState(c *state.Core, j *state.Job, bad func(j *state.Job, format string, args ...any)) {
	switch {
	case j.State == row.Ended:
		bad(j, "is among those that have not ended")
	case j.Runs() != (j.Step > 0):
		bad(j, "a step goes on only of a job that runs")
	case j.Step > len(j.Profile):
		bad(j, "there are %d steps", len(j.Profile))
	case j.State == row.Waiting && j.Last():
		bad(j, "waits after its last step")
	case len(j.Plan) != 0 && len(j.Plan) != len(j.Profile) && !j.Lapsed() && j.State != row.Waiting && !lapsedAtStart(j):
		bad(j, "the plan has %d steps", len(j.Plan))
	case j.Mode != mode.Of(drivemode.Mode(j.Drive), state.FactsOf(c, j)):
		bad(j, "has another row of the drive table than its mode and site have")
	case c.ByID[j.BaseID()] == nil: // the entry may belong to another job, see replaced
		bad(j, "is not found by its base job")
	}
}

// lapsedAtStart reports whether the promise of a job lapsed while Slurm was starting it. If that start failed, the next
// cycle plans the whole job again.
func lapsedAtStart(j *state.Job) bool {
	return len(j.Plan) == 1 && (j.State == row.Starting || j.State == row.Queued && j.NeedsReplan)
}

// checkPlan checks the order and the nodes of a job's planned steps. Before the first poll after a start, it is not known
// which nodes the job cannot give back.
func checkPlan(j *state.Job, bad func(j *state.Job, format string, args ...any)) {
	for i := 1; i < len(j.Plan); i++ {
		if j.Plan[i].Start < j.Plan[i-1].End {
			bad(j, "step %d is planned to begin %d s before step %d ends", i+1, j.Plan[i-1].End-j.Plan[i].Start, i)
		}
	}
	for i, step := range j.Plan {
		if n := len(step.Nodes); i >= j.Step && n != j.Profile[i].Nodes || i == j.Step-1 && j.State == row.Running && j.Mode.Resizes && j.Record.State != "" && n > slurm.Needs(j) {
			bad(j, "step %d is planned on %d nodes", i+1, n)
		}
		if i >= j.Step && twice(step.Nodes) {
			bad(j, "step %d is planned on a node twice", i+1)
		}
	}
}

// twice reports whether a node is listed twice.
func twice(nodes []string) bool {
	for i, n := range nodes[:min(len(nodes), 16)] {
		if slices.Contains(nodes[:i], n) {
			return true
		}
	}
	return len(nodes) > 16 && len(slices.Compact(slices.Sorted(slices.Values(nodes)))) != len(nodes)
}

// A Clash describes a node that is promised to two jobs at once.
type Clash struct {
	Node string
	Jobs [2]slurmctl.JobID
	Text string
}

// Clashes lists the nodes that are promised to two jobs at once. It does not count nodes that a job
// keeps longer than planned. It also ignores steps that are due, and jobs kept back or suspended. Every job
// may be late by the margin. Clashes must occur only if a job was late and could not be replanned
// within its limits, which an event reports ("delayed", "overrun").
func Clashes(c *state.Core) []Clash {
	promises := promises(c)
	overlap := func(a, b promise) bool {
		return a.job != b.job && max(a.start, b.start)+slurm.Margin(c) < min(a.end, b.end)
	}
	clash := false
	for i, a := range promises {
		clash = clash || slices.ContainsFunc(promises[:i], func(b promise) bool { return overlap(a, b) && msg.SetOf(a.nodes).Any(b.nodes) })
	}
	if !clash {
		return nil // the usual case
	}
	of := map[string][]promise{}
	for _, p := range promises {
		for _, n := range p.nodes {
			of[n] = append(of[n], p)
		}
	}
	var clashes []Clash
	for _, n := range state.SortedKeys(of) {
		all := of[n]
		for i, a := range all {
			for _, b := range all[:i] {
				if overlap(a, b) {
					clashes = append(clashes, Clash{n, [2]slurmctl.JobID{a.job.BaseID(), b.job.BaseID()}, fmt.Sprintf("node %s is promised to job %d for step %d (%d to %d) and to job %d for step %d (%d to %d)",
						n, a.job.SlurmID, a.step, a.start, a.end, b.job.SlurmID, b.step, b.start, b.end)})
				}
			}
		}
	}
	return clashes
}

// promise holds the nodes that a job was promised for a step.
type promise struct {
	job        *state.Job
	step       int
	start, end int64
	nodes      []string
}

// promises lists the coming steps that Clashes compares.
func promises(c *state.Core) (all []promise) {
	for _, j := range c.Active {
		if !j.Runs() && j.State != row.Starting || j.Kept != nil || follow.IsSuspended(j) {
			continue
		}
		for i := max(j.Step, 0); i < len(j.Plan); i++ { // coming steps
			if j.Plan[i].Start <= c.Now.Unix() {
				continue // due; the step waits for nodes that others have not given back
			}
			all = append(all, promise{j, i + 1, j.Plan[i].Start, j.Plan[i].End, j.Plan[i].Nodes})
		}
	}
	return all
}

// checkWork checks that no more jobs are busy than tasks are under way.
func checkWork(c *state.Core) error {
	busy := 0
	for _, j := range c.Active {
		if j.Busy {
			busy++
		}
	}
	if under := len(c.Work.Pending); busy > under {
		return fmt.Errorf("%d jobs are busy, and %d tasks under way", busy, under)
	}
	return nil
}

// Written returns what the database should contain about the active jobs, once everything that the
// core asked for is written. The function text formats node lists. It may cache its results,
// because the core never modifies slices of names.
func Written(c *state.Core, text func([]string) string) []msg.BookedJob {
	all := make([]msg.BookedJob, len(c.Active))
	for i, j := range c.Active {
		all[i] = msg.BookedJob{Job: *j.Job, Plan: msg.SpansBy(j.Plan, text), Parts: state.PartsBy(j, text), Bound: j.Bound}
		if c.Skew != 0 {
			job, _ := c.Out(msg.SaveJob{*j.Job}).(msg.SaveJob)
			plan, _ := c.Out(msg.SavePlan{Plan: all[i].Plan}).(msg.SavePlan)
			all[i].Job, all[i].Plan = job.Job, plan.Plan
		}
	}
	return all
}

// BeyondShare returns the first user with more holds in Slurm than the shares allow, and the number
// of these holds. It returns "" if there is no such user. It is for tests.
func BeyondShare(c *state.Core) (user string, holds int) {
	count := map[string]int{}
	for _, h := range c.Ours {
		if j := c.ByID[h.Own.Job]; j != nil && h.Own.Step != refit.LentStep {
			count[j.User]++
		}
	}
	most := max(c.Config.HoldShares.User.Reservations*c.Config.MaxHolds/100, 1)
	for _, user := range state.SortedKeys(count) {
		if count[user] > most {
			return user, count[user]
		}
	}
	return "", 0
}
