package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The profile of a malleable job holds the smallest number of nodes of every step. These nodes, the job's own
// nodes, are planned and promised like those of any evolving job. Nodes beyond them are lent until another job
// needs them. Which nodes are lent follows from what the job has and what is planned for it. So it is known
// after a restart as well, whatever was under way.
//
// Other jobs are planned as if lent nodes were free after the time in which the job can be made to give them
// back (recall). So a planned start or growth may count on them, and the manager demands them in time
// (manage.go). offers.go describes how the application is asked.

// isMalleable reports whether the job may have more nodes than its profile says.
func (j *job) isMalleable() bool { return j.Malleable != nil && j.mode.resizes }

// most returns how many nodes the job may have in its current step.
func (j *job) most() int { return j.mostOf(j.Step) }

// mostOf returns how many nodes the job may have in a step, from 1.
func (j *job) mostOf(step int) int {
	if step < 1 || step > len(j.Profile) {
		return 0
	}
	if least := j.Profile[step-1].Nodes; j.isMalleable() && step <= len(j.Malleable.Max) {
		return max(j.Malleable.Max[step-1], least)
	}
	return j.Profile[step-1].Nodes
}

// own returns the nodes that its plan counts on: as many as its step has, first those planned for it. The job
// has more if some are lent, or if slurmctld lost a shrink.
func (j *job) own() []string {
	nodes := j.nodes()
	if may := j.isMalleable() || j.State == row.Running && j.mode.resizes; !may || j.Step < 1 || len(nodes) <= j.needs() {
		return nodes
	}
	var planned set
	if len(j.plan) >= j.Step {
		planned = setOf(j.plan[j.Step-1].nodes)
	}
	late := set{} // nodes that came by growths beyond the plan
	for _, p := range j.held {
		if p.Step == lentStep {
			late.add(p.Nodes)
		}
	}
	pinned := j.pinned()
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
	return nodes[:j.needs()]
}

// lent returns the nodes that the job has beyond its own.
func (j *job) lent() []string {
	if !j.isMalleable() || j.Step < 1 {
		return nil
	}
	return Without(j.nodes(), j.own())
}

// lentStep is the step of holds and expanders that bring nodes beyond the plan.
const lentStep = 0

// graceOf returns how long a job has to give nodes back.
func (c *Core) graceOf(j *job) time.Duration {
	if j.Malleable == nil {
		return c.cfg.Malleable.Grace
	}
	return c.cfg.Malleable.GraceOf(j.Malleable.Grace)
}

// returning returns how long it takes, beside the grace, until demanded nodes are free: a cycle until the
// demand is made, the shrink itself, and a cycle until the sidecar sees it.
func (c *Core) returning() time.Duration { return 3*c.cfg.PollInterval + 5*time.Second }

// recall returns how long it takes to get nodes back from a job.
func (c *Core) recall(j *job) time.Duration { return c.graceOf(j) + c.returning() }

// lentUntil returns the Unix second until which a lent node is not available to other jobs.
func (c *Core) lentUntil(j *job, name string, now int64) int64 {
	recall := int64(c.recall(j) / time.Second)
	if c.approach() == malleable.PRA && len(j.plan) > 0 { // it gets no demands in favor of other jobs
		return max(j.plan[len(j.plan)-1].end, now+recall)
	}
	o := j.offer()
	switch {
	case o == nil || !o.demands():
		return now + recall
	case slices.Contains(o.wanted(), name): // on its way back
		return max(o.Deadline, now) + int64(c.returning()/time.Second)
	}
	return max(o.Deadline, now) + recall // demanded after the others
}

// addLent adds the nodes that a job has, or is about to get, beyond its plan.
func (c *Core) addLent(o *occupancy, s *snapshot, j *job, now int64) {
	if !j.isMalleable() || !j.runs() {
		return
	}
	names := j.lent()
	if o := j.offer(); o != nil && o.State == offerAccepted && o.grows() {
		names = append(names, Without(o.wanted(), j.nodes())...)
	}
	for _, name := range names {
		if n, ok := s.index[name]; ok {
			o.add(n, o.origin, c.lentUntil(j, name, now)+c.margin())
		}
	}
}

// want describes a planned start or growth on a node.
type want struct {
	by *job
	at int64 // Unix second
}

// wants returns the planned starts and growths on every node, including those of jobs that borrow the node.
func (c *Core) wants() map[string][]want {
	all := map[string][]want{}
	for _, j := range c.active {
		if j.kept != nil {
			continue
		}
		has := setOf(j.own())
		for i := max(j.Step, 0); i < len(j.plan); i++ {
			for _, name := range j.plan[i].nodes {
				if !has[name] {
					all[name] = append(all[name], want{j, j.plan[i].start})
				}
			}
		}
	}
	return all
}

// wantedAt returns when the first other job gets the node, or never.
func wantedAt(all []want, but *job) int64 {
	first := never
	for _, w := range all {
		if w.by != but {
			first = min(first, w.at)
		}
	}
	return first
}

const never = int64(1) << 60

// checkLent checks that malleable jobs are within their bounds, and that each has at most one open offer.
func (c *Core) checkLent(bad func(j *job, format string, args ...any)) {
	for _, j := range c.active {
		if !j.isMalleable() {
			if j.offer() != nil {
				bad(j, "is not malleable, and there is an offer")
			}
			continue
		}
		open := 0
		for _, o := range j.Offers {
			if one := offer(o); !one.over() {
				open++
			}
		}
		if open > 1 {
			bad(j, "%d offers are open", open)
		}
		o := j.offer()
		if o != nil && o.grows() && len(o.wanted())+o.Had > j.most() && j.State == row.Running {
			bad(j, "is offered %d nodes beside %d, and may have %d", len(o.wanted()), o.Had, j.most())
		}
	}
}

// overMost returns the nodes that a job has beyond its maximum, first those that other jobs need.
func (c *Core) overMost(j *job) []string {
	if over := len(j.nodes()) - j.most(); over > 0 && j.Step > 0 {
		first := c.goFirst(j, c.wants())
		return first[:min(over, len(first))]
	}
	return nil
}

// goFirst returns the nodes that a job has beyond its own, in the order in which it would give them back:
// first those that other jobs get soonest, then those of companions, newest first.
func (c *Core) goFirst(j *job, wants map[string][]want) []string {
	order := map[string]int{}
	for i, name := range slices.Concat(j.newestFirst(), reversed(j.record.NodeList)) {
		if _, seen := order[name]; !seen {
			order[name] = i
		}
	}
	more := Without(j.nodes(), j.own())
	slices.SortStableFunc(more, func(a, b string) int {
		return cmp.Or(cmp.Compare(wantedAt(wants[a], j), wantedAt(wants[b], j)), cmp.Compare(len(wants[a]), len(wants[b])), cmp.Compare(order[a], order[b]))
	})
	return more
}

func reversed(names []string) []string {
	all := slices.Clone(names)
	slices.Reverse(all)
	return all
}

// keepsLent returns the nodes beyond those of the next step that a job keeps at the end of a step, as far as
// the next step's bounds and sizes allow, and if no other job needs them.
func (c *Core) keepsLent(j *job, next *plannedStep, surplus []string) []string {
	if !j.isMalleable() || j.stiff != "" {
		return nil
	}
	least := len(next.nodes)
	if o := j.offer(); o != nil && o.demands() {
		surplus = Without(surplus, o.wanted())
	}
	soon := c.now.Add(c.recall(j) + c.graceOf(j)).Unix()
	wants, leaving := c.wants(), setOf(j.release)
	surplus = slices.DeleteFunc(slices.Clone(surplus), func(name string) bool {
		return leaving[name] || c.pressing[name] || wantedAt(wants[name], j) <= soon
	})
	if !j.mode.resizesInPart { // companions that came beyond the plan
		var parts []string
		for _, p := range slices.Backward(j.held) {
			more := Without(p.Nodes, next.nodes) // the next step may have some of these nodes
			if p.Step == lentStep && len(common(more, surplus)) == len(more) && len(more)+len(parts)+least <= j.mostOf(j.Step+1) {
				parts = append(parts, more...)
			}
		}
		if !j.Malleable.Sizes.Has(least + len(parts)) {
			return nil
		}
		return parts
	}
	most := j.Malleable.Sizes.Floor(min(j.mostOf(j.Step+1), least+len(surplus)))
	if most <= least {
		return nil
	}
	slices.SortStableFunc(surplus, func(a, b string) int {
		return cmp.Compare(wantedAt(wants[b], j), wantedAt(wants[a], j))
	})
	return surplus[:most-least]
}

// stillResizable returns why the size of a job cannot change beyond its plan, or "" if it can.
func (c *Core) stillResizable(j *job) string {
	switch {
	case j.stiff != "":
		return j.stiff
	case !j.mode.resizesBesidePlan:
		return "a running job cannot be resized here, or only once"
	case j.Claim > 0:
		return "it has a claim, and grows on demand"
	}
	return ""
}

// lentText returns the nodes that a job has beyond its plan, for evosqueue.
func (j *job) lentText() string { return slurmctl.CompressNodes(j.lent()) }
