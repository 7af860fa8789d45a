package core

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store/row"
)

// The nodes of a growth are promised to a job that keeps to its profile. Once a step
// overruns by more than grace the promise lapses: nothing is held for the coming steps,
// others may have the nodes, and the plan ends with the step that goes on, which is also
// how the database knows of it. When the job ends its step the rest is planned anew.
//
// A step may be planned to last longer than its profile says (expand limits): an
// application that goes on until then is not late, since nobody waits for it. What counts
// is the later of the two, the profile's end and the plan's, as it was before the step
// outlasted it.

// lapsed reports whether nothing is promised to a job any more save what it has.
func (j *job) lapsed() bool {
	return j.State == row.Running && !j.last() && j.Step > 0 && len(j.plan) == j.Step
}

// overrun is for how long the job's present step has outlasted its time.
func (c *Core) overrun(j *job, now time.Time) time.Duration {
	due := j.expected()
	if j.overdue != 0 {
		due = max(due, j.overdue)
	} else if len(j.plan) >= j.Step {
		due = max(due, j.plan[j.Step-1].end)
	}
	return min(now.Sub(time.Unix(due, 0)), now.Sub(c.awake)) // the application may have slept, too
}

// lapse gives up what is promised to a job beyond its present step, if there are nodes to
// be held for that.
func (c *Core) lapse(j *job, now time.Time) {
	if j.last() || len(j.plan) != len(j.Profile) || len(c.holdsOf(j, now.Unix())) == 0 {
		return
	}
	plan := slices.Clone(j.plan[:j.Step])
	plan[j.Step-1].end = now.Unix()
	c.storePlan(j, plan)
	j.extend, j.anew, j.forfeited = false, true, true
	c.event(j, "lapsed", map[string]any{"step": j.Step})
	c.logJob(j).Warn("nodes are no longer held for the job's coming steps; they are planned anew when it ends this one")
}

// lapsedWords tell of it.
func (j *job) lapsedWords() string {
	if j.isChain() {
		return "the step lasts longer than its profile says; nodes are no longer held for its coming steps; they are planned anew when it ends"
	}
	return "the step lasts longer than its profile says; nodes are no longer held for its coming steps; it is planned anew when it calls next"
}

// supposed is until when a running job that has no plan yet keeps each of its nodes, if it
// gives the last ones back first.
func (j *job) supposed() map[string]int64 {
	until := map[string]int64{}
	if j.Step == 0 {
		return until
	}
	nodes := j.nodes()
	if i := slices.Index(nodes, j.BatchHost); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
	for i, name := range nodes {
		until[name] = j.expected()
		for k := j.Step; k < len(j.Profile) && i < j.Profile[k].Nodes; k++ {
			until[name] += j.Profile[k].Duration
		}
	}
	return until
}

// keeps lists the nodes of a job whose promise has lapsed that it will not give back at
// the end of its step: as many as the next one has. The others are taken back once
// somebody needs them (watchOverrun).
func (j *job) keeps() []string {
	nodes := j.own()
	if i := slices.Index(nodes, j.BatchHost); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
	if j.isChain() {
		return nodes // until the link's time limit
	}
	return nodes[:min(len(nodes), j.Profile[j.Step].Nodes)]
}
