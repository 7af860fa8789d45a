package plan

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// ProblemOf returns the problem of a list, with what is certain.
func ProblemOf(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Candidate) *msg.Problem {
	now := s.Taken.Unix()
	slurm.AddLicenses(c, o, s, stock.LicensesOf(list, c.Config.Observes()))
	keepLicenses(c, o, s)
	if !c.Config.Observes() {
		list = stock.Packed(c, s, o, list)
	}
	p := &msg.Problem{Jobs: len(list) + len(c.Active), Skew: c.Skew, Margin: slurm.Margin(c), Expand: c.Config.ExpandLimit, Occupied: o, Peaks: peaks(c, s, now), Names: make([]string, len(s.Nodes))}
	for i, n := range s.Nodes {
		p.Names[i] = n.Name
	}
	for _, cand := range list {
		most := 0
		for _, one := range cand.Profiles() {
			most = max(most, len(one))
		}
		p.Steps += most
	}
	for _, j := range c.Active {
		p.Steps += len(j.Plan)
	}
	if c.Config.Observes() && o.Preemption == nil {
		p.Stock = stock.Starts(c, s, o, list)
		return p
	}
	kinds := slurm.Kinds(c, s)
	for i, b := range Batches(s, list) {
		p.Batches = append(p.Batches, ProblemBatch(c, s, p.Occupied, b))
		for k := range p.Batches[i].Places {
			p.Batches[i].Places[k].Kinds = kinds
		}
		if i < len(c.Last) {
			p.Batches[i].Last, p.Batches[i].Was = c.Last[i], c.Made[i]
		}
	}
	return p
}

func ProblemBatch(c *state.Core, s *state.Snapshot, o *msg.Occupancy, b *batch) msg.ProblemBatch {
	all := msg.ProblemBatch{Rank: b.rank, Present: -1}
	for _, cand := range b.Jobs {
		j := msg.ProblemJob{Profiles: cand.Profiles(), Molds: cand.Molds}
		if c.Config.Observes() {
			j.Stock = cand.Record.ID
		}
		if cand.Job != nil {
			j.ID, j.Limited = cand.Job.BaseID(), cand.Job.ExpandLimit != 0
			j.Aim, j.Turn, j.Patience, j.CouldStart = cand.Aim, cand.AimTurn, aimPatience(c), cand.Job.AimSince
		}
		all.Jobs = append(all.Jobs, j)
	}
	choices := b.Jobs[0].Choices
	if choices == nil {
		choices = [][]int{b.nodes}
	} else {
		all.Present = b.Jobs[0].Present(s)
	}
	for _, nodes := range choices {
		pool, aimed := pool(c, s, o, nodes, b.Jobs)
		all.Places = append(all.Places, msg.Place{Nodes: nodes, Pool: pool, Aimed: aimed, Outside: o.Outside(nodes, b.Jobs[0].Inside()), Untouched: o.Untouched(nodes, b.rank), Pinned: pinned(c, s, nodes, o.Origin)})
	}
	return all
}

// TakePlans stores the plans.
func TakePlans(c *state.Core, in msg.Planned) {
	c.Last, c.Made = in.Last, in.Made
	for _, l := range in.Last {
		switch {
		case l != nil:
			c.Moves = c.ReachedSecond(c.Now.Unix(), l.Until()) || c.Moves
		case in.Drifts: // a plan that is not kept differs
			c.Moves = true
		}
	}
	for _, err := range in.Errors {
		c.Log.WithError(err).Error("planning failed: the plan stays as it was")
	}
	for _, p := range in.Jobs {
		j := c.ByID[p.Job]
		switch {
		case takeProspect(c, p), j == nil || j.Runs():
		case p.Unfit != "":
			dropPlan(c, j, slurm.OutsideText(c, c.Snapshot, j, p.Unfit))
		default:
			plan := make([]msg.PlannedStep, len(p.Steps))
			for i, step := range p.Steps {
				plan[i] = msg.PlannedStep{Start: step.Start, End: step.End, Nodes: step.Nodes, At: step.At}
			}
			if mayChoose(j) && len(p.Options) > 0 {
				mold(c, j, p.Choice, p.Options)
			}
			c.StorePlan(j, plan)
			waitTogether(c, j, p.Waits)
			awaitLicenses(c, j)
			takeAim(c, j, p.Aimed)
			if why := slurm.WaitsForLower(c, c.Snapshot, j); why != "" && j.Reason().Words() == "" {
				j.WaitsFor(state.Saying(state.WhyWaitsForLower, why))
			}
		}
	}
}

// awaitLicenses says which licences a planned job waits for.
func awaitLicenses(c *state.Core, j *state.Job) {
	if why := slurm.LicensesInUse(c, c.Snapshot, &j.Record); why != "" {
		j.WaitsFor(state.Saying(state.WhyLicensesAwaited, why))
	}
}

// pinned returns the plans of running jobs, as far as they use these nodes.
func pinned(c *state.Core, s *state.Snapshot, nodes []int, origin int64) []planner.Placement {
	var all []planner.Placement
	for _, j := range c.Active {
		if !j.Runs() || len(j.Plan) == 0 || j.BestEffort() {
			continue
		}
		var p planner.Placement
		used := false
		for i, step := range j.Plan {
			if i == 0 {
				p.Start = step.Start - origin
			}
			names := step.Nodes
			if j.Kept != nil && i >= j.Step {
				names = msg.Common(j.Nodes(), names)
			}
			n := len(slurm.Local(s, nodes, names))
			used = used || n > 0
			p.Steps = append(p.Steps, planner.Step{Duration: max(step.End-step.Start, 0), Nodes: n})
		}
		if used {
			all = append(all, p)
		}
	}
	return all
}

// peaks returns all nodes that a running job has at any time from now until its end, as if it did not evolve.
func peaks(c *state.Core, s *state.Snapshot, origin int64) []msg.Peak {
	var all []msg.Peak
	for _, j := range c.Active {
		if !j.Runs() && j.State != row.Starting || len(j.Plan) == 0 || j.BestEffort() {
			continue
		}
		end := j.Plan[len(j.Plan)-1].End + slurm.Margin(c)
		steps := j.Plan
		if j.Kept != nil {
			steps = slurm.Promised(c, j, origin)
		}
		for _, step := range steps {
			for _, name := range step.Nodes {
				if n, ok := s.Index[name]; ok {
					all = append(all, msg.Peak{n, origin, end})
				}
			}
		}
	}
	return all
}
