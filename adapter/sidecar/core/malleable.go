package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A malleable job's profile has the smallest number of nodes of every step. These are planned
// and promised as any evolving job's: the job's own nodes. What it has beyond them is lent, for as
// long as nobody else needs it. Which nodes are lent follows from what the job has and is planned
// to have, so it is known again after a restart, whatever was under way.
//
// Others are planned as if lent nodes were free once the job can be made to give them back
// (recall). So a planned start or growth may count on them, and the manager demands them
// in time (manage.go). How the application is asked is in offers.go.

// isMalleable reports whether the job may have more nodes than its profile says.
func (j *job) isMalleable() bool { return j.Malleable != nil && j.mode.resizes }

// most is how many nodes the job may have in its present step.
func (j *job) most() int { return j.mostOf(j.Step) }

// mostOf is the same of a step, from 1.
func (j *job) mostOf(step int) int {
	if step < 1 || step > len(j.Profile) {
		return 0
	}
	if least := j.Profile[step-1].Nodes; j.isMalleable() && step <= len(j.Malleable.Max) {
		return max(j.Malleable.Max[step-1], least)
	}
	return j.Profile[step-1].Nodes
}

// own are the nodes that its plan counts on: as many as its step has, first those that are
// planned for it. It has more while some are lent, or since slurmctld has forgotten a shrink.
func (j *job) own() []string {
	nodes := j.nodes()
	if may := j.isMalleable() || j.State == row.Running && j.mode.resizes; !may || j.Step < 1 || len(nodes) <= j.needs() {
		return nodes
	}
	var planned set
	if len(j.plan) >= j.Step {
		planned = setOf(j.plan[j.Step-1].nodes)
	}
	late := set{} // that came by growths beyond the plan
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

// lent are the nodes that it has beyond these.
func (j *job) lent() []string {
	if !j.isMalleable() || j.Step < 1 {
		return nil
	}
	return Without(j.nodes(), j.own())
}

// lentStep is the step of holds and expanders that bring nodes beyond the plan.
const lentStep = 0

// graceOf is how long a job has to give nodes back.
func (c *Core) graceOf(j *job) time.Duration {
	if j.Malleable == nil {
		return c.cfg.Malleable.Grace
	}
	return c.cfg.Malleable.GraceOf(j.Malleable.Grace)
}

// returning is what it takes, beside the grace, until demanded nodes are free: a cycle until the
// demand is made, the shrink itself, and a cycle until that is seen.
func (c *Core) returning() time.Duration { return 3*c.cfg.PollInterval + 5*time.Second }

// recall is how long it takes to get nodes back from a job.
func (c *Core) recall(j *job) time.Duration { return c.graceOf(j) + c.returning() }

// lentUntil is the Unix second until which others have to do without a lent node.
func (c *Core) lentUntil(j *job, name string, now int64) int64 {
	recall := int64(c.recall(j) / time.Second)
	if c.approach() == malleable.PRA && len(j.plan) > 0 { // it is never asked for others' sake
		return max(j.plan[len(j.plan)-1].end, now+recall)
	}
	o := j.offer()
	switch {
	case o == nil || !o.demands():
		return now + recall
	case slices.Contains(o.wanted(), name): // it is coming
		return max(o.Deadline, now) + int64(c.returning()/time.Second)
	}
	return max(o.Deadline, now) + recall // asked for after the others
}

// addLent adds what a job has, or is about to get, beyond its plan.
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

// want is a node that a job is planned to get.
type want struct {
	by *job
	at int64 // Unix second
}

// wants are the planned starts and growths on every node, those of jobs to which it is lent, too.
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

// wantedAt is when the first other job gets a node; Forever: none does.
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

// checkLent sees that malleable jobs are within their bounds, and that no more than one offer
// of each is open.
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

// overMost are nodes that a job has beyond the most that it may have, those first that others
// need.
func (c *Core) overMost(j *job) []string {
	if over := len(j.nodes()) - j.most(); over > 0 && j.Step > 0 {
		first := c.goFirst(j, c.wants())
		return first[:min(over, len(first))]
	}
	return nil
}

// goFirst are the nodes that a job has beyond its own in the order in which it would give them back: first those
// that others get soonest, then those of companions, newest first.
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

// keepsLent are nodes that a job whose step has ended keeps beyond those of the next, as far as that
// step's bounds and sizes allow, and nobody needs them.
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
			more := Without(p.Nodes, next.nodes) // of which the step may have a part
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

// stillResizable says why the size of a job cannot be changed beside its plan; "": it can.
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

// lentText is what a job has beyond its plan, for evosqueue.
func (j *job) lentText() string { return slurmctl.CompressNodes(j.lent()) }
