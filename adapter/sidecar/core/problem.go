package core

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Problem holds the queue at one moment with everything that is certain, for a strategy to plan. It is
// independent: later changes in the core do not affect it.
type Problem struct {
	Jobs, Steps int // upper bounds of what the strategy gets at a time

	names    []string            // of the cluster's nodes
	skew     time.Duration       // of the machine's clock
	margin   int64               // how many seconds longer released nodes count as busy
	expand   planner.ExpandLimit // the site's limit for jobs without their own
	occupied *occupancy
	peaks    []peak // nodes that running jobs keep if they are planned as if they did not evolve
	batches  []problemBatch
}

// problemBatch holds jobs that are planned together.
type problemBatch struct {
	rank    rank
	jobs    []problemJob
	places  []place       // for a job of several partitions, one place for each; the job gets one
	present int           // the place of its current plan; -1: none
	last    *planner.Last // how this batch, or the one that had its position a moment ago, was planned
	was     *made         // result of that plan; nil: not known
}

// problemJob holds a job of a batch; id 0: a stock job.
type problemJob struct {
	id       slurmctl.JobID
	profiles []planner.Profile // the job gets one of these
	molds    []int             // indices of these alternatives of a moldable job; nil: there is no choice
	limited  bool              // the job has its own expand limit
}

// place holds nodes on which a batch may be planned.
type place struct {
	nodes     []int
	pool      planner.Pool // without what is busy
	untouched []int        // positions of the nodes on which no job yields, if jobs on others do
	pinned    []planner.Placement
}

// peak is a node that a running job keeps until its end.
type peak struct {
	node       int
	start, end int64
}

// Planner is a strategy in use.
type Planner interface {
	planner.Strategy
	// Rigid reports whether it plans jobs as if they did not evolve.
	Rigid() bool
	// Pin passes the plans of running jobs, as far as they use the nodes of the next pool.
	Pin([]planner.Placement)
}

// Planned holds a strategy's solution of a problem.
type Planned struct {
	Jobs   []PlannedJob
	Errors []error // pools that could not be planned: their jobs keep their plans
	// Drifts reports that a stock job may start at once, as far as is known: until it does, everything is
	// replanned now and then (planner.Pool.PlanAgain).
	Drifts bool

	last []*planner.Last // last plan of every batch, for the next problem
	made []*made         // result of every batch; nil: not known
}

// PlannedJob holds the plan of an evolving job, or in words why there is none.
type PlannedJob struct {
	Job   slurmctl.JobID // its base job
	Unfit string
	Steps []PlannedStep

	// For a moldable job whose alternative is still open: the alternative that it gets, from 0, and what each
	// would give.
	Choice  int
	Options []PlannedOption
}

// PlannedOption holds what an alternative (from 0) of a moldable job would give, with the earlier jobs in the
// queue as they are planned. Seconds are Unix.
type PlannedOption struct {
	Alternative int
	Fits        bool
	Start, End  int64
	Waste, Held int64 // node-seconds
}

// PlannedStep holds a step in Unix seconds.
type PlannedStep struct {
	Start, End int64
	Nodes      []string

	at []int // positions of the nodes in the cluster
}

// problem returns the problem of the current queue.
func (c *Core) problem(s *snapshot) *Problem {
	now := s.taken.Unix()
	o := c.occupied(s, now, nil)
	c.addHeldUp(o, s)
	return c.problemOf(s, o, c.candidates(s, now))
}

// problemOf returns the problem of a list, with what is certain.
func (c *Core) problemOf(s *snapshot, o *occupancy, list []candidate) *Problem {
	now := s.taken.Unix()
	p := &Problem{Jobs: len(list) + len(c.active), skew: c.skew, margin: c.margin(), expand: c.cfg.ExpandLimit, occupied: o, peaks: c.peaks(s, now), names: make([]string, len(s.nodes))}
	for i, n := range s.nodes {
		p.names[i] = n.Name
	}
	for _, cand := range list {
		most := 0
		for _, one := range cand.profiles() {
			most = max(most, len(one))
		}
		p.Steps += most
	}
	for _, j := range c.active {
		p.Steps += len(j.plan)
	}
	for i, b := range batches(s, list) {
		p.batches = append(p.batches, c.problemBatch(s, p.occupied, b))
		if i < len(c.last) {
			p.batches[i].last, p.batches[i].was = c.last[i], c.made[i]
		}
	}
	return p
}

func (c *Core) problemBatch(s *snapshot, o *occupancy, b *batch) problemBatch {
	all := problemBatch{rank: b.rank, present: -1}
	for _, cand := range b.jobs {
		j := problemJob{profiles: cand.profiles(), molds: cand.molds}
		if cand.job != nil {
			j.id, j.limited = cand.job.id(), cand.job.ExpandLimit != 0
		}
		all.jobs = append(all.jobs, j)
	}
	choices := b.jobs[0].choices
	if choices == nil {
		choices = [][]int{b.nodes}
	} else {
		all.present = b.jobs[0].present(s)
	}
	for _, nodes := range choices {
		all.places = append(all.places, place{nodes: nodes, pool: c.pool(s, o, nodes, b.jobs), untouched: o.untouched(nodes, b.rank), pinned: c.pinned(s, nodes, o.origin)})
	}
	return all
}

// Plan lets a strategy plan the problem. The problem cannot be used again.
func (p *Problem) Plan(with Planner) Planned {
	all := Planned{last: make([]*planner.Last, len(p.batches)), made: make([]*made, len(p.batches))}
	for i, planned := range p.solve(with, &all.Errors) {
		b := &p.batches[i]
		now := &made{last: b.last, names: p.names, margin: p.margin, jobs: make([]madeJob, len(planned))}
		if now.nodes = b.places[0].nodes; len(b.places) == 1 && b.last != nil {
			all.made[i] = now
		}
		stays := b.was.stays(now)
		all.last[i] = b.last
		for k, one := range planned {
			if j := b.jobs[k]; j.id != 0 {
				if stays && b.was.jobs[k].of(j) {
					now.jobs[k] = b.was.jobs[k]
				} else {
					now.jobs[k] = madeJob{j, p.result(j, one)}
				}
				all.Jobs = append(all.Jobs, now.jobs[k].PlannedJob)
			} else if one.Unfit == "" && one.Start <= 0 {
				all.Drifts = true
			}
		}
	}
	return all
}

// made holds the result of a batch's plan. It stays valid while the plan is kept.
type made struct {
	last   *planner.Last
	names  []string // node names of the cluster
	nodes  []int    // nodes of the batch
	margin int64
	jobs   []madeJob
}

type madeJob struct {
	problemJob
	PlannedJob
}

// stays reports whether a later plan is the same plan.
func (m *made) stays(now *made) bool {
	return m != nil && m.last != nil && m.last == now.last && len(m.jobs) == len(now.jobs) && m.margin == now.margin && slices.Equal(m.nodes, now.nodes) && slices.Equal(m.names, now.names)
}

// of reports whether this is the result of that job, and the job has no choice.
func (m *madeJob) of(j problemJob) bool {
	return m.id == j.id && m.molds == nil && j.molds == nil && len(m.profiles) == 1 && len(j.profiles) == 1 && same(m.profiles[0], j.profiles[0])
}

// solve plans batch by batch; a batch that cannot be planned has no plans.
func (p *Problem) solve(with Planner, errs *[]error) [][]poolPlan {
	o := p.occupied
	if with.Rigid() {
		for _, k := range p.peaks {
			o.add(k.node, k.start, k.end)
		}
	}
	all := make([][]poolPlan, len(p.batches))
	shared := p.shared()
	for i := range p.batches {
		b := &p.batches[i]
		at := &b.places[0]
		if len(b.places) > 1 {
			at = b.choose(o, with)
		}
		one, err := b.plan(o, at, shared[i], with)
		if err != nil {
			*errs = append(*errs, err)
		}
		all[i] = one
	}
	return all
}

// poolPlan is a plan with the nodes of its pool.
type poolPlan struct {
	planner.Planned
	nodes []int
}

// shared returns for every batch whether a later batch competes for any of its nodes.
func (p *Problem) shared() []bool {
	shared, behind := make([]bool, len(p.batches)), make([]bool, len(p.names))
	for i := len(p.batches) - 1; i >= 0; i-- {
		for _, at := range p.batches[i].places {
			for _, n := range at.nodes {
				shared[i] = shared[i] || behind[n]
			}
		}
		for _, at := range p.batches[i].places {
			for _, n := range at.nodes {
				behind[n] = true
			}
		}
	}
	return shared
}

// plan plans the batch in a place, and marks the nodes that it takes if that matters to other batches.
func (b *problemBatch) plan(o *occupancy, at *place, shared bool, with Planner) ([]poolPlan, error) {
	if len(b.jobs) == 1 || !o.preempts(at.nodes, b.rank) {
		return b.planSome(o, at, 0, len(b.jobs), shared, with)
	}
	var all []poolPlan // a job that yields to the first one does not yield again
	for i := range b.jobs {
		one, err := b.planSome(o, at, i, i+1, true, with)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func (b *problemBatch) planSome(o *occupancy, at *place, from, to int, shared bool, with Planner) ([]poolPlan, error) {
	planned, err := b.fit(o, at, from, to, with)
	if err != nil {
		return nil, err
	}
	if shared {
		o.take(at.nodes, planned)
	}
	all := make([]poolPlan, len(planned))
	for i, p := range planned {
		all[i] = poolPlan{p, at.nodes}
	}
	return all, nil
}

// fit plans some jobs of the batch in a place.
func (b *problemBatch) fit(o *occupancy, at *place, from, to int, with Planner) ([]planner.Planned, error) {
	return o.sparing(at.nodes, b.rank, func(r rank) ([]planner.Planned, error) {
		pool := at.pool
		pool.Busy = o.window(at.nodes, r)
		pool.Jobs = slices.Clone(pool.Jobs[from:to])
		if r == b.rank && at.untouched != nil {
			for i := range pool.Jobs {
				if b.jobs[from+i].id != 0 {
					pool.Jobs[i].Prefer = at.untouched
				}
			}
		}
		with.Pin(at.pinned)
		if len(b.places) > 1 || to-from < len(b.jobs) || o.preemption != nil {
			return pool.Plan(with)
		}
		planned, last, err := pool.PlanAgain(with, o.origin, b.last)
		b.last = last
		return planned, err
	})
}

// choose plans the batch's job in each of its partitions. It returns the place where the job completes first,
// or the current one if another place is hardly better.
func (b *problemBatch) choose(o *occupancy, with Planner) *place {
	best, soonest := 0, planner.Forever
	for i := range b.places {
		planned, err := b.fit(o, &b.places[i], 0, 1, with)
		if err != nil || planned[0].Unfit != "" {
			continue
		}
		end := planned[0].End()
		if i == b.present {
			end -= earlier
		}
		if end < soonest {
			best, soonest = i, end
		}
	}
	return &b.places[best]
}

// result returns a job's plan. In a plan without evolution, every step gets as many of the peak's nodes as it
// asks for: the strategy decides when the job starts, and the profile decides what it has.
func (p *Problem) result(j problemJob, planned poolPlan) PlannedJob {
	r := PlannedJob{Job: j.id, Unfit: planned.Unfit, Steps: make([]PlannedStep, 0, len(planned.Steps))}
	if r.Unfit != "" {
		return r
	}
	profile := j.profiles[planned.Choice]
	if j.molds != nil {
		r.Choice = j.molds[planned.Choice]
		r.Options = p.options(j, planned.Options)
	}
	placed := planner.Unpad(planned.Placement, profile, p.margin)
	at := placed.Start + p.occupied.origin
	for k, step := range placed.Steps {
		count := min(len(planned.Nodes[k]), profile[k].Nodes)
		names, nodes := make([]string, count), make([]int, count)
		for i := range names {
			nodes[i] = planned.nodes[planned.Nodes[k][i]]
			names[i] = p.names[nodes[i]]
		}
		r.Steps = append(r.Steps, PlannedStep{at, at + step.Duration, names, nodes})
		at += step.Duration
	}
	return r
}

// options returns what the alternatives of a moldable job would give.
func (p *Problem) options(j problemJob, options []planner.Option) []PlannedOption {
	all := make([]PlannedOption, 0, len(options))
	for k, o := range options {
		one := PlannedOption{Alternative: j.molds[k], Fits: o.Fits}
		if o.Fits {
			placed := planner.Unpad(o.Placement, j.profiles[k], p.margin)
			one.Start, one.End = placed.Start+p.occupied.origin, placed.End()+p.occupied.origin
			one.Held = placed.Steps.Area()
			one.Waste = one.Held - j.profiles[k].Area()
		}
		all = append(all, one)
	}
	return all
}

// takePlans stores the plans.
func (c *Core) takePlans(in Planned) {
	c.last, c.made = in.last, in.made
	for _, err := range in.Errors {
		c.log.WithError(err).Error("planning failed: the plan stays as it was")
	}
	for _, p := range in.Jobs {
		j := c.byID[p.Job]
		switch {
		case j == nil || j.runs():
		case p.Unfit != "":
			c.dropPlan(j, p.Unfit)
		default:
			plan := make([]plannedStep, len(p.Steps))
			for i, step := range p.Steps {
				plan[i] = plannedStep{start: step.Start, end: step.End, nodes: step.Nodes, at: step.at}
			}
			if j.mayChoose() && len(p.Options) > 0 {
				c.mold(j, p.Choice, p.Options)
			}
			c.storePlan(j, plan)
			if why := c.waitsForLower(c.snapshot, j); why != "" && j.reason.words() == "" {
				j.reason = saying(whyWaitsForLower, why)
			}
		}
	}
}

// pinned returns the plans of running jobs, as far as they use these nodes.
func (c *Core) pinned(s *snapshot, nodes []int, origin int64) []planner.Placement {
	var all []planner.Placement
	for _, j := range c.active {
		if !j.runs() || len(j.plan) == 0 {
			continue
		}
		var p planner.Placement
		used := false
		for i, step := range j.plan {
			if i == 0 {
				p.Start = step.start - origin
			}
			names := step.nodes
			if j.kept != nil && i >= j.Step {
				names = common(j.nodes(), names)
			}
			n := len(s.local(nodes, names))
			used = used || n > 0
			p.Steps = append(p.Steps, planner.Step{Duration: max(step.end-step.start, 0), Nodes: n})
		}
		if used {
			all = append(all, p)
		}
	}
	return all
}

// take marks the nodes that a plan takes.
func (o *occupancy) take(nodes []int, planned []planner.Planned) {
	for _, p := range planned {
		at := p.Start + o.origin
		for k, step := range p.Steps {
			if p.Unfit != "" {
				break
			}
			for _, n := range p.Nodes[k] {
				o.add(nodes[n], at, at+step.Duration)
			}
			at += step.Duration
		}
	}
}

// peaks returns all nodes that a running job has at any time from now until its end, as if it did not evolve.
func (c *Core) peaks(s *snapshot, origin int64) []peak {
	var all []peak
	for _, j := range c.active {
		if !j.runs() && j.State != row.Starting || len(j.plan) == 0 {
			continue
		}
		end := j.plan[len(j.plan)-1].end + c.margin()
		steps := j.plan
		if j.kept != nil {
			steps = j.promised(origin)
		}
		for _, step := range steps {
			for _, name := range step.nodes {
				if n, ok := s.index[name]; ok {
					all = append(all, peak{n, origin, end})
				}
			}
		}
	}
	return all
}

// clone returns an independent copy.
func (o *occupancy) clone() *occupancy {
	n := newOccupancy(len(o.busy), o.origin)
	for i := range o.busy {
		n.busy[i], n.reserved[i] = slices.Clone(o.busy[i]), slices.Clone(o.reserved[i])
	}
	n.preemption, n.tenures = o.preemption, o.tenures // they do not change any more
	return n
}
