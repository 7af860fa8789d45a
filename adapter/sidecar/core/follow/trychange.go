package follow

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// fitStrictly does what fitRest does, but rejects a plan that takes a node from others.
func fitStrictly(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target, now int64, f Fitting, beyond bool) rest {
	r := fitRest(c, s, t.Job, now, f, beyond)
	if r.Unfit != "" {
		return r
	}
	o := f.Around(now)
	for k := t.Step - 1; k < len(r.Plan); k++ {
		step := r.Plan[k]
		start := max(step.Start, now)
		if k == t.Step-1 { // the nodes that it has now were its own
			if start = now; len(j.Plan) >= j.Step {
				start = max(start, j.Plan[j.Step-1].End)
			}
		}
		for _, name := range step.Nodes {
			n, ok := s.Index[name]
			if !ok {
				continue
			}
			for _, b := range o.Claimed(slices.Clone(o.Busy[n]), []int{n}, slurm.RankOf(c, &j.Record)) {
				if b.Start+o.Origin < step.End && start < b.End+o.Origin && !(b.Start == 0 && slices.Contains(j.Nodes(), name)) {
					return rest{Unfit: fmt.Sprintf("node %s, which it has, is promised to others from %s on", name, state.ClockText(c, time.Unix(max(b.Start+o.Origin, now), 0)))}
				}
			}
		}
	}
	return r
}

// AroundOf returns what is certain without a running job whose request changes, if all other jobs keep what
// they were promised.
func AroundOf(c *state.Core, s *state.Snapshot, j *state.Job) func(origin int64) *msg.Occupancy {
	known := map[int64]*msg.Occupancy{}
	return func(origin int64) *msg.Occupancy {
		if o := known[origin]; o != nil {
			return o.Clone()
		}
		o, all := Occupied(c, s, origin, j), Occupied(c, s, origin, nil)
		queued := queuedAsPlanned(c, s)
		nodes, choices, _ := slurm.PlacesOf(c, s, j)
		sets := plan.SetsOf(s, append(queued[:len(queued):len(queued)], slurm.Candidate{Nodes: nodes, Choices: choices}))
		list := append(queued, plan.StockCandidates(c, s, s.Taken.Unix(), slurm.Turn{plan.TierOf(c, &j.Record, false), j.Priority}, sets)...)
		slices.SortStableFunc(list, plan.MoreUrgent)
		for _, some := range plan.Batches(s, list) {
			b := plan.ProblemBatch(c, s, all, some)
			plans, err := b.PlanBatch(all, &b.Places[0], true, InOrder{FixedOnly})
			for i, cand := range some.Jobs {
				if err == nil && (cand.Job == nil || plans[i].Unfit == "" && plans[i].Start+origin <= cand.Earliest+OverrunQuantum) {
					o.Take(plans[i].Names, []planner.Planned{plans[i].Planned})
				} else if cand.Job != nil {
					AddPromises(c, o, s, cand.Job, s.Taken.Unix())
				}
			}
		}
		known[origin] = o
		return o.Clone()
	}
}

// queuedAsPlanned lists the queued jobs with a plan, to start when the plan says. Each starts no later than
// that, possibly on other nodes. They are planned together with the stock jobs. That is much faster than
// planning the stock jobs around the planned nodes of each queued job.
func queuedAsPlanned(c *state.Core, s *state.Snapshot) (list []slurm.Candidate) {
	for _, j := range c.Active {
		if j.State != row.Queued || len(j.Plan) == 0 {
			continue
		}
		nodes, choices, err := slurm.PlacesOf(c, s, j)
		if err != nil {
			continue
		}
		cand := slurm.Candidate{Job: j, Record: &j.Record, Turn: slurm.Turn{plan.TierOf(c, &j.Record, false), j.Priority}, Nodes: nodes, Choices: choices,
			Profile: j.Profile, Earliest: j.Plan[0].Start, Rank: slurm.RankOf(c, &j.Record)}
		list = append(list, cand.Chosen(s))
	}
	return list
}

// InOrder plans one job after the other, each as early as possible.
type InOrder struct{ planner.Strategy }

func (InOrder) Rigid() bool { return false }

func (InOrder) Pin([]planner.Placement) {}
