package refit

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
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
// they were promised. Each waiting job keeps its place, or one that begins by as many seconds later as `later` says
// (nil: none).
func AroundOf(c *state.Core, s *state.Snapshot, j *state.Job, later func(slurm.Candidate) int64) func(origin int64) *msg.Occupancy {
	known := map[int64]*msg.Occupancy{}
	return func(origin int64) *msg.Occupancy {
		if o := known[origin]; o != nil {
			return o.Clone()
		}
		o, list := Occupied(c, s, origin, j), waiting(c, s, j)
		if all := Occupied(c, s, origin, nil); later == nil {
			placeAll(c, s, all, list, func(w *Placed) { w.keep(c, s, o) })
		} else {
			present := map[*slurmctl.Job]*Placed{}
			placeAll(c, s, all.Clone(), list, func(w *Placed) { present[w.Record] = w })
			for i := range list {
				if w := present[list[i].Record]; w.Start() < planner.Forever {
					list[i].Earliest = w.Start() + later(list[i])
				}
			}
			placeAll(c, s, all, list, func(w *Placed) {
				if w.Start() > w.Earliest {
					w = present[w.Record]
				}
				w.keep(c, s, o)
			})
		}
		known[origin] = o
		return o.Clone()
	}
}

// Placed is a waiting job with its place.
type Placed struct {
	slurm.Candidate
	origin int64
	names  []int // of the plan's nodes
	plan   planner.Planned
}

// Start returns the Unix second at which it starts; planner.Forever if it fits nowhere.
func (w *Placed) Start() int64 {
	if w.plan.Unfit != "" {
		return planner.Forever
	}
	return w.plan.Start + w.origin
}

// keep adds the place, or that of the job's plan if the job would begin later than in it.
func (w *Placed) keep(c *state.Core, s *state.Snapshot, o *msg.Occupancy) {
	if w.Job == nil || w.Start() <= w.Earliest+OverrunQuantum {
		o.Take(w.names, []planner.Planned{w.plan})
	} else {
		AddPromises(c, o, s, w.Job, s.Taken.Unix())
	}
}

// waiting lists the waiting jobs that a running job's change may not move, in Slurm's order: queued jobs with a plan, and
// stock jobs that do not come behind it.
func waiting(c *state.Core, s *state.Snapshot, j *state.Job) []slurm.Candidate {
	queued := queuedAsPlanned(c, s)
	nodes, choices, _ := slurm.PlacesOf(c, s, j)
	sets := stock.SetsOf(s, append(queued[:len(queued):len(queued)], slurm.Candidate{Record: &j.Record, Nodes: nodes, Choices: choices}))
	list := append(queued, stock.Candidates(c, s, s.Taken.Unix(), slurm.Turn{stock.TierOf(c, &j.Record, false), j.Priority}, sets)...)
	slices.SortStableFunc(list, stock.MoreUrgent)
	return stock.Packed(c, s, Occupied(c, s, s.Taken.Unix(), nil), list)
}

// placeAll plans waiting jobs in their order, each as early as possible, and hands each one to take.
func placeAll(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Candidate, take func(*Placed)) {
	for _, some := range plan.Batches(s, list) {
		b := plan.ProblemBatch(c, s, o, some)
		plans, err := b.PlanBatch(o, &b.Places[0], true, InOrder{FixedOnly})
		for i, cand := range some.Jobs {
			w := Placed{cand, o.Origin, nil, planner.Planned{Unfit: "it cannot be planned"}}
			if err == nil {
				w.names, w.plan = plans[i].Names, plans[i].Planned
			}
			take(&w)
		}
	}
}

// Delayed is a waiting job that would start later.
type Delayed struct {
	slurm.Candidate
	Seconds int64 // how much; planner.Forever if it would never start
	Would   int64 // when it would start otherwise
}

// Postponed lists the waiting jobs that would start later if a running job had another plan.
func Postponed(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target, plan []msg.PlannedStep) (all []Delayed) {
	now, before := s.Taken.Unix(), Starts(c, s, j)
	changed := *t.Job
	changed.Plan = plan
	o := Occupied(c, s, now, j)
	AddPromises(c, o, s, &changed, now)
	placeAll(c, s, o, waiting(c, s, j), func(w *Placed) {
		late := w.Start() - before[w.Record.ID]
		if w.Start() == planner.Forever && late > 0 {
			late = planner.Forever
		}
		if late > 0 {
			all = append(all, Delayed{w.Candidate, late, before[w.Record.ID]})
		}
	})
	return all
}

// Starts returns when the waiting jobs that a running job's change may not move would start.
func Starts(c *state.Core, s *state.Snapshot, j *state.Job) map[slurmctl.JobID]int64 {
	starts := map[slurmctl.JobID]int64{}
	placeAll(c, s, Occupied(c, s, s.Taken.Unix(), nil), waiting(c, s, j), func(w *Placed) {
		starts[w.Record.ID] = max(starts[w.Record.ID], w.Start()) // a stock job may have parts
	})
	return starts
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
		cand := slurm.Candidate{Job: j, Record: &j.Record, Turn: slurm.Turn{stock.TierOf(c, &j.Record, false), j.Priority}, Nodes: nodes, Choices: choices,
			Profile: j.Profile, Earliest: j.Plan[0].Start, Rank: slurm.RankOf(c, &j.Record)}
		list = append(list, cand.Chosen(s))
	}
	return list
}

// InOrder plans one job after the other, each as early as possible.
type InOrder struct{ planner.Strategy }

func (InOrder) Rigid() bool { return false }

func (InOrder) Pin([]planner.Placement) {}
