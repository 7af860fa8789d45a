package msg

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Problem holds the queue at one moment with everything that is certain, for a strategy to plan. It is
// independent: later changes in the core do not affect it.
type Problem struct {
	Jobs, Steps int // upper bounds of what the strategy gets at a time

	Names    []string            // of the cluster's nodes
	Skew     time.Duration       // of Slurm's clock
	Margin   int64               // how many seconds longer released nodes count as busy
	Expand   planner.ExpandLimit // the site's limit for jobs without their own
	Occupied *Occupancy
	Peaks    []Peak // nodes that running jobs keep if they are planned as if they did not evolve
	Batches  []ProblemBatch
	Stock    []PlannedStart // starts of stock jobs that are predicted without a strategy
}

// ProblemBatch holds jobs that are planned together.
type ProblemBatch struct {
	Rank    Rank
	Jobs    []ProblemJob
	Places  []Place       // for a job of several partitions, one place for each; the job gets one
	Present int           // the place of its current plan; -1: none
	Last    *planner.Last // how this batch, or the one that had its position a moment ago, was planned
	Was     *Made         // result of that plan; nil: not known
}

// ProblemJob holds a job of a batch; id 0: a stock job.
type ProblemJob struct {
	ID       slurmctl.JobID
	Stock    slurmctl.JobID    `codec:"-"` // set if the plan of this stock job is wanted
	Profiles []planner.Profile // the job gets one of these
	Molds    []int             // indices of these alternatives of a moldable job; nil: there is no choice
	Limited  bool              // the job has its own expand limit

	// What the job wants of its own placement, and how many seconds later than it could it may start for that. CouldStart is
	// since when it could, in Unix seconds; 0: not yet.
	Aim        planner.Aim
	Turn       int // among jobs with an aim
	Patience   int64
	CouldStart int64
}

// Place holds nodes on which a batch may be planned.
type Place struct {
	Nodes     []int
	Kinds     *Kinds             // of the cluster's nodes
	Pool      planner.Pool       // without what is busy
	Outside   []planner.NodeBusy // when the jobs' own reservation does not have the nodes
	Untouched []int              // positions of the nodes on which no job yields, if jobs on others do
	Pinned    []planner.Placement
	Aimed     map[int]planner.PoolJob // by index, the jobs with an aim as they are placed again
}

// Peak is a node that a running job keeps until its end.
type Peak struct {
	Node       int
	Start, End int64
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

	Stock []PlannedStart `codec:"-"` // of stock jobs whose plan is wanted

	Last []*planner.Last `codec:"-"` // last plan of every batch, for the next problem
	Made []*Made         `codec:"-"` // result of every batch; nil: not known
}

// PlannedStart holds when a stock job will start, in Unix seconds by Slurm's clock; 0: it cannot be planned.
type PlannedStart struct {
	Job   slurmctl.JobID
	Start int64
}

// PlannedJob holds the plan of an evolving job, or in words why there is none.
type PlannedJob struct {
	Job   slurmctl.JobID // its base job
	Unfit string
	Steps []PlannedStep
	Waits int64 // how many seconds later it starts than it could on more leaf switches
	Aimed Aimed // what its aim makes of its plan

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

	At []int `codec:"-"` // cached positions of the nodes in the cluster
}

// Plan lets a strategy plan the problem. The problem cannot be used again.
func (p *Problem) Plan(with Planner) Planned {
	all := Planned{Last: make([]*planner.Last, len(p.Batches)), Made: make([]*Made, len(p.Batches)), Stock: p.Stock}
	var certain *Occupancy
	if p.hasAims(with) {
		certain = p.Occupied.Clone()
	}
	plans, aimed := p.solve(with, &all.Errors), map[slurmctl.JobID]aimedPlan(nil)
	if certain != nil {
		aimed = p.byAims(certain, plans, &all.Errors)
	}
	for i, planned := range plans {
		b := &p.Batches[i]
		now := &Made{last: b.Last, names: p.Names, margin: p.Margin, jobs: make([]madeJob, len(planned))}
		if now.nodes = b.Places[0].Nodes; len(b.Places) == 1 && b.Last != nil {
			all.Made[i] = now
		}
		stays := b.Was.stays(now)
		all.Last[i] = b.Last
		for k, one := range planned {
			if j := b.Jobs[k]; j.ID != 0 {
				if stays && b.Was.jobs[k].of(j) {
					now.jobs[k] = b.Was.jobs[k]
				} else {
					now.jobs[k] = madeJob{j, p.result(j, one)}
				}
				last := now.jobs[k].PlannedJob
				if a, ok := aimed[j.ID]; ok {
					last = p.result(j, a.poolPlan)
					last.Aimed = a.aimed
				}
				all.Jobs = append(all.Jobs, last)
			} else if one.Unfit == "" && one.Start <= 0 {
				all.Drifts = true
			}
			if id := b.Jobs[k].Stock; id != 0 {
				start := PlannedStart{Job: id}
				if one.Unfit == "" {
					start.Start = one.Start + p.Occupied.Origin + int64(p.Skew/time.Second)
				}
				all.Stock = append(all.Stock, start)
			}
		}
	}
	return all
}

// Made holds the result of a batch's plan. It stays valid while the plan is kept.
type Made struct {
	last   *planner.Last
	names  []string // node names of the cluster
	nodes  []int    // nodes of the batch
	margin int64
	jobs   []madeJob
}

type madeJob struct {
	ProblemJob
	PlannedJob
}

// stays reports whether a later plan is the same plan.
func (m *Made) stays(now *Made) bool {
	return m != nil && m.last != nil && m.last == now.last && len(m.jobs) == len(now.jobs) && m.margin == now.margin && slices.Equal(m.nodes, now.nodes) && slices.Equal(m.names, now.names)
}

// of reports whether this is the result of that job, and the job has no choice.
func (m *madeJob) of(j ProblemJob) bool {
	return m.ID == j.ID && m.Molds == nil && j.Molds == nil && len(m.Profiles) == 1 && len(j.Profiles) == 1 && Same(m.Profiles[0], j.Profiles[0])
}

// solve plans batch by batch; a batch that cannot be planned has no plans.
func (p *Problem) solve(with Planner, errs *[]error) [][]poolPlan {
	o := p.Occupied
	if with.Rigid() {
		for _, k := range p.Peaks {
			o.Add(k.Node, k.Start, k.End)
		}
	}
	all := make([][]poolPlan, len(p.Batches))
	shared := p.shared()
	for i := range p.Batches {
		b := &p.Batches[i]
		at := &b.Places[0]
		if len(b.Places) > 1 {
			at = b.choose(o, with)
		}
		one, err := b.PlanBatch(o, at, shared[i], with)
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
	Names []int
}

// shared returns for every batch whether a later batch competes for any of its nodes.
func (p *Problem) shared() []bool {
	shared, behind := make([]bool, len(p.Batches)), make([]bool, len(p.Names))
	for i := len(p.Batches) - 1; i >= 0; i-- {
		for _, at := range p.Batches[i].Places {
			for _, n := range at.Nodes {
				shared[i] = shared[i] || behind[n]
			}
		}
		for _, at := range p.Batches[i].Places {
			for _, n := range at.Nodes {
				behind[n] = true
			}
		}
	}
	return shared
}

// PlanBatch plans the batch in a place, and marks the nodes that it takes if that matters to other batches.
func (b *ProblemBatch) PlanBatch(o *Occupancy, at *Place, shared bool, with Planner) ([]poolPlan, error) {
	if len(b.Jobs) == 1 || !o.preempts(at.Nodes, b.Rank) {
		return b.planSome(o, at, 0, len(b.Jobs), shared, with)
	}
	var all []poolPlan // a job that yields to the first one does not yield again
	for i := range b.Jobs {
		one, err := b.planSome(o, at, i, i+1, true, with)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func (b *ProblemBatch) planSome(o *Occupancy, at *Place, from, to int, shared bool, with Planner) ([]poolPlan, error) {
	planned, err := b.fit(o, at, from, to, with)
	if err != nil {
		return nil, err
	}
	if shared {
		o.Take(at.Nodes, planned)
	}
	o.Licenses.take(at.Pool.Jobs[from:to], planned)
	all := make([]poolPlan, len(planned))
	for i, p := range planned {
		all[i] = poolPlan{p, at.Nodes}
	}
	return all, nil
}

// fit plans some jobs of the batch in a place.
func (b *ProblemBatch) fit(o *Occupancy, at *Place, from, to int, with Planner) ([]planner.Planned, error) {
	return o.Sparing(at.Nodes, b.Rank, func(r Rank) ([]planner.Planned, error) {
		pool := at.Pool
		pool.Busy, pool.Licenses = append(o.Window(at.Nodes, r), at.Outside...), o.Licenses.All
		pool.Jobs = slices.Clone(pool.Jobs[from:to])
		if r == b.Rank && at.Untouched != nil {
			pool.Switches = nil // to end no other job comes first
			for i := range pool.Jobs {
				if b.Jobs[from+i].ID != 0 {
					pool.Jobs[i].Prefer = at.Untouched
				}
			}
		}
		with.Pin(at.Pinned)
		if s, ok := with.(SetPlanner); ok && at.Kinds != nil {
			s.Sort(at.Kinds.Among(at.Nodes, &pool))
		}
		if len(b.Places) > 1 || to-from < len(b.Jobs) || o.Preemption != nil {
			return pool.Plan(with)
		}
		planned, last, err := pool.PlanAgain(with, o.Origin, b.Last)
		b.Last = last
		return planned, err
	})
}

// choose plans the batch's job in each of its partitions. It returns the place where the job completes first,
// or the current one if another place is hardly better.
func (b *ProblemBatch) choose(o *Occupancy, with Planner) *Place {
	best, soonest := 0, planner.Forever
	for i := range b.Places {
		planned, err := b.fit(o, &b.Places[i], 0, 1, with)
		if err != nil || planned[0].Unfit != "" {
			continue
		}
		end := planned[0].End()
		if i == b.Present {
			end -= Earlier
		}
		if end < soonest {
			best, soonest = i, end
		}
	}
	return &b.Places[best]
}

// result returns a job's plan. In a plan without evolution, every step gets as many of the peak's nodes as it
// asks for: the strategy decides when the job starts, and the profile decides what it has.
func (p *Problem) result(j ProblemJob, planned poolPlan) PlannedJob {
	r := PlannedJob{Job: j.ID, Unfit: planned.Unfit, Waits: planned.Waits, Steps: make([]PlannedStep, 0, len(planned.Steps))}
	if r.Unfit != "" {
		return r
	}
	profile := j.Profiles[planned.Choice]
	if j.Molds != nil {
		r.Choice = j.Molds[planned.Choice]
		if len(planned.Options) == 0 { // Slurm has refused all others
			planned.Options = []planner.Option{{Placement: planned.Placement, Fits: true}}
		}
		r.Options = p.options(j, planned.Options)
	}
	placed := planner.Unpad(planned.Placement, profile, p.Margin)
	at := placed.Start + p.Occupied.Origin
	for k, step := range placed.Steps {
		count := min(len(planned.Nodes[k]), profile[k].Nodes)
		names, nodes := make([]string, count), make([]int, count)
		for i := range names {
			nodes[i] = planned.Names[planned.Nodes[k][i]]
			names[i] = p.Names[nodes[i]]
		}
		r.Steps = append(r.Steps, PlannedStep{at, at + step.Duration, names, nodes})
		at += step.Duration
	}
	return r
}

// options returns what the alternatives of a moldable job would give.
func (p *Problem) options(j ProblemJob, options []planner.Option) []PlannedOption {
	all := make([]PlannedOption, 0, len(options))
	for k, o := range options {
		one := PlannedOption{Alternative: j.Molds[k], Fits: o.Fits}
		if o.Fits {
			placed := planner.Unpad(o.Placement, j.Profiles[k], p.Margin)
			one.Start, one.End = placed.Start+p.Occupied.Origin, placed.End()+p.Occupied.Origin
			one.Held = placed.Steps.Area()
			one.Waste = one.Held - j.Profiles[k].Area()
		}
		all = append(all, one)
	}
	return all
}

// Take marks the nodes that a plan takes.
func (o *Occupancy) Take(nodes []int, planned []planner.Planned) {
	for _, p := range planned {
		at := p.Start + o.Origin
		for k, step := range p.Steps {
			if p.Unfit != "" {
				break
			}
			for _, n := range p.Nodes[k] {
				o.Add(nodes[n], at, at+step.Duration)
			}
			at += step.Duration
		}
	}
}

// take marks the licences that planned jobs use.
func (l *Licenses) take(jobs []planner.PoolJob, planned []planner.Planned) {
	for j, p := range planned {
		for _, need := range jobs[j].Licenses {
			if p.Unfit == "" {
				of := &l.All[need.License]
				of.Used = append(of.Used, planner.LicenseUse{Start: p.Start, End: p.End(), Count: need.Count})
			}
		}
	}
}

// Clone returns an independent copy.
func (o *Occupancy) Clone() *Occupancy {
	n := NewOccupancy(len(o.Busy), o.Origin)
	for i := range o.Busy {
		n.Busy[i], n.Reserved[i] = slices.Clone(o.Busy[i]), slices.Clone(o.Reserved[i])
	}
	n.Licenses.Names, n.Licenses.All = o.Licenses.Names, slices.Clone(o.Licenses.All)
	for i := range n.Licenses.All {
		n.Licenses.All[i].Used = slices.Clone(n.Licenses.All[i].Used)
	}
	n.Preemption, n.Tenures = o.Preemption, o.Tenures // they do not change any more
	return n
}
