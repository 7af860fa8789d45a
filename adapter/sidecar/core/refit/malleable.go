package refit

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Own returns the nodes that its plan counts on: as many as its step has, first those planned for it. The job
// has more if some are lent, or if slurmctld lost a shrink.
func Own(j *state.Job) []string {
	nodes := j.Nodes()
	if may := adopt.IsMalleable(j) || j.State == row.Running && j.Mode.Resizes; !may || j.Step < 1 || len(nodes) <= slurm.Needs(j) {
		return nodes
	}
	var planned msg.Set
	if len(j.Plan) >= j.Step {
		planned = msg.SetOf(j.Plan[j.Step-1].Nodes)
	}
	late := msg.Set{} // nodes that came by growths beyond the plan
	for _, p := range j.Held {
		if p.Step == LentStep {
			late.Add(p.Nodes)
		}
	}
	pinned := slurm.Pinned(j)
	rank := func(name string) int {
		switch {
		case name == j.BatchHost || name == pinned: // it cannot be given back
			return 0
		case planned[name]:
			return 1
		case !late[name]:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return nodes[:slurm.Needs(j)]
}

// Lent returns the nodes that the job has beyond its own.
func Lent(j *state.Job) []string {
	if !adopt.IsMalleable(j) || j.Step < 1 {
		return nil
	}
	return msg.Without(j.Nodes(), Own(j))
}

// Recallable returns the nodes that others may have after the job's grace: the lent ones, and all nodes of a best-effort job.
func Recallable(j *state.Job) []string {
	if j.BestEffort() && j.Runs() {
		return j.Nodes()
	}
	return Lent(j)
}

// LeavesAll reports whether an offer takes a best-effort job's last nodes: then the job is requeued as a whole.
func LeavesAll(j *state.Job, o *Offer) bool {
	return j.BestEffort() && o.Demands() && len(msg.Common(o.Wanted(), Own(j))) > 0
}

// PlanBestEffort gives a running best-effort job the plan that it keeps its own nodes as long as its step lasts. Nobody plans
// around that: see Recallable.
func PlanBestEffort(c *state.Core, j *state.Job) {
	own := Own(j)
	if len(j.Plan) == 1 && msg.SameSet(j.Plan[0].Nodes, own) && j.Plan[0].Start == j.StepStarted.Unix() {
		return
	}
	c.StorePlan(j, []msg.PlannedStep{{Start: j.StepStarted.Unix(), End: j.Expected(), Nodes: own}})
}

// LentStep is the step of holds and expanders that bring nodes beyond the plan.
const LentStep = 0

// GraceOf returns how long a job has to give nodes back.
func GraceOf(c *state.Core, j *state.Job) time.Duration {
	if j.Malleable == nil {
		return c.Config.Malleable.Grace
	}
	return c.Config.Malleable.GraceOf(j.Malleable.Grace)
}

// returning returns how long it takes, beside the grace, until demanded nodes are free: a cycle until the
// demand is made, the shrink itself, and a cycle until the sidecar sees it.
func returning(c *state.Core) time.Duration { return 3*c.Config.PollInterval + 5*time.Second }

// Recall returns how long it takes to get nodes back from a job.
func Recall(c *state.Core, j *state.Job) time.Duration { return GraceOf(c, j) + returning(c) }

// Returned returns the Unix second at which a node is free that a job leaves at the other one.
func Returned(c *state.Core, left int64) int64 { return left + int64(returning(c)/time.Second) }

// Leaves returns the Unix second by which nodes must be left that other jobs get at the other one, as demands have it.
func Leaves(c *state.Core, free int64) int64 {
	return free - int64(returning(c)/time.Second) - Ahead(c)
}

// Ahead returns how many seconds before its latest time a demand is made.
func Ahead(c *state.Core) int64 { return int64((2*c.Config.PollInterval + time.Second) / time.Second) }

// lentUntil returns the Unix second until which a lent node is not available to other jobs.
func lentUntil(c *state.Core, j *state.Job, name string, now int64) int64 {
	recall := int64(Recall(c, j) / time.Second)
	if !GivesWay(c, j) && len(j.Plan) > 0 { // it gets no demands in favor of other jobs
		end := j.Plan[len(j.Plan)-1].End
		if back := Bound(j, name); back > 0 {
			end = min(end, Returned(c, back))
		}
		return max(end, now+recall)
	}
	o := OfferAt(j)
	switch {
	case o == nil || !o.Demands():
		return now + recall
	case slices.Contains(o.Wanted(), name): // on its way back
		return max(o.Deadline, now) + int64(returning(c)/time.Second)
	}
	return max(o.Deadline, now) + recall // demanded after the others
}

// addLent adds the nodes that a job has, or is about to get, beyond its plan.
func addLent(c *state.Core, o *msg.Occupancy, s *state.Snapshot, j *state.Job, now int64) {
	if !adopt.IsMalleable(j) || !j.Runs() {
		return
	}
	names := Recallable(j)
	if o := OfferAt(j); o != nil && o.Grows() && (o.State == OfferAccepted || o.State == OfferOpen && !GivesWay(c, j)) {
		names = append(names, msg.Without(o.Wanted(), j.Nodes())...)
	}
	for _, name := range names {
		if n, ok := s.Index[name]; ok {
			o.Add(n, o.Origin, lentUntil(c, j, name, now)+slurm.Margin(c))
		}
	}
}
