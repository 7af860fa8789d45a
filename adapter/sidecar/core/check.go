package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Check returns an error if the jobs or the tasks under way violate an invariant. It is for tests; O(jobs × steps × nodes).
func (c *Core) Check() error {
	return errors.Join(c.checkJobs(), c.checkWork())
}

// checkJobs checks that every job is where its state says, and that byID finds it by its Slurm jobs.
func (c *Core) checkJobs() error {
	var errs []error
	bad := func(j *job, format string, args ...any) {
		errs = append(errs, fmt.Errorf("job %d (%s, step %d): %s", j.SlurmID, j.State, j.Step, fmt.Sprintf(format, args...)))
	}
	for _, j := range c.active {
		c.checkState(j, bad)
		checkPlan(j, bad)
	}
	c.checkLent(bad)
	for _, j := range c.ended {
		if j.State != row.Ended {
			errs = append(errs, fmt.Errorf("job %d is among the ended ones, %s", j.SlurmID, j.State))
		}
	}
	return errors.Join(errs...)
}

// checkState checks that a job is where its state says.
func (c *Core) checkState(j *job, bad func(j *job, format string, args ...any)) {
	switch {
	case j.State == row.Ended:
		bad(j, "is among those that have not ended")
	case j.runs() != (j.Step > 0):
		bad(j, "a step goes on only of a job that runs")
	case j.Step > len(j.Profile):
		bad(j, "there are %d steps", len(j.Profile))
	case j.State == row.Waiting && j.last():
		bad(j, "waits after its last step")
	case len(j.plan) != 0 && len(j.plan) != len(j.Profile) && !j.lapsed() && j.State != row.Waiting:
		bad(j, "the plan has %d steps", len(j.plan))
	case j.mode != behaviourOf(drivemode.Mode(j.Drive), c.factsOf(j)):
		bad(j, "has another row of the drive table than its mode and site have")
	case c.byID[j.id()] == nil: // the entry may belong to another job, see replaced
		bad(j, "is not found by its base job")
	}
}

// checkPlan checks the order and the nodes of a job's planned steps.
func checkPlan(j *job, bad func(j *job, format string, args ...any)) {
	for i := 1; i < len(j.plan); i++ {
		if j.plan[i].start < j.plan[i-1].end {
			bad(j, "step %d is planned to begin %d s before step %d ends", i+1, j.plan[i-1].end-j.plan[i].start, i)
		}
	}
	for i, step := range j.plan {
		if n := len(step.nodes); i >= j.Step && n != j.Profile[i].Nodes || i == j.Step-1 && j.State == row.Running && j.mode.resizes && n > j.needs() {
			bad(j, "step %d is planned on %d nodes", i+1, n)
		}
		if i >= j.Step && twice(step.nodes) {
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
func (c *Core) Clashes() []Clash {
	promises := c.promises()
	overlap := func(a, b promise) bool {
		return a.job != b.job && max(a.start, b.start)+c.margin() < min(a.end, b.end)
	}
	clash := false
	for i, a := range promises {
		clash = clash || slices.ContainsFunc(promises[:i], func(b promise) bool { return overlap(a, b) && setOf(a.nodes).any(b.nodes) })
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
	for _, n := range sortedKeys(of) {
		all := of[n]
		for i, a := range all {
			for _, b := range all[:i] {
				if overlap(a, b) {
					clashes = append(clashes, Clash{n, [2]slurmctl.JobID{a.job.id(), b.job.id()}, fmt.Sprintf("node %s is promised to job %d for step %d (%d to %d) and to job %d for step %d (%d to %d)",
						n, a.job.SlurmID, a.step, a.start, a.end, b.job.SlurmID, b.step, b.start, b.end)})
				}
			}
		}
	}
	return clashes
}

// promise holds the nodes that a job was promised for a step.
type promise struct {
	job        *job
	step       int
	start, end int64
	nodes      []string
}

// promises lists the coming steps that Clashes compares.
func (c *Core) promises() (all []promise) {
	for _, j := range c.active {
		if !j.runs() && j.State != row.Starting || j.kept != nil || j.isSuspended() {
			continue
		}
		for i := max(j.Step, 0); i < len(j.plan); i++ { // coming steps
			if j.plan[i].start <= c.now.Unix() {
				continue // due; the step waits for nodes that others have not given back
			}
			all = append(all, promise{j, i + 1, j.plan[i].start, j.plan[i].end, j.plan[i].nodes})
		}
	}
	return all
}

// checkWork checks that no more jobs are busy than tasks are under way.
func (c *Core) checkWork() error {
	busy := 0
	for _, j := range c.active {
		if j.busy {
			busy++
		}
	}
	if under := len(c.work.pending); busy > under {
		return fmt.Errorf("%d jobs are busy, and %d tasks under way", busy, under)
	}
	return nil
}

// Written returns what the database should contain about the active jobs, once everything that the
// core asked for is written. The function text formats node lists. It may cache its results,
// because the core never modifies slices of names.
func (c *Core) Written(text func([]string) string) []BookedJob {
	all := make([]BookedJob, len(c.active))
	for i, j := range c.active {
		job, _ := c.out(SaveJob{*j.Job}).(SaveJob)
		plan, _ := c.out(SavePlan{Plan: spansBy(j.plan, text)}).(SavePlan)
		all[i] = BookedJob{Job: job.Job, Plan: plan.Plan, Parts: j.partsBy(text), Bound: j.bound}
	}
	return all
}

// BeyondShare returns the first user with more holds in Slurm than the shares allow, and the number
// of these holds. It returns "" if there is no such user. It is for tests.
func (c *Core) BeyondShare() (user string, holds int) {
	count := map[string]int{}
	for _, h := range c.ours {
		if j := c.byID[h.own.job]; j != nil && h.own.step != lentStep {
			count[j.User]++
		}
	}
	most := max(c.cfg.HoldShares.User.Reservations*c.cfg.MaxHolds/100, 1)
	for _, user := range sortedKeys(count) {
		if count[user] > most {
			return user, count[user]
		}
	}
	return "", 0
}
