package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/adapter/strategy"
	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// fixedOnly is for pools without queued jobs, which no strategy has a say in.
var fixedOnly, _ = planner.StrategyByName("noX")

// withStrategy lets f plan these jobs with the strategy in use, and logs what
// became of it.
func (c *Controller) withStrategy(list []candidate, f func()) {
	c.planning = c.strategies.Begin(c.size(list))
	f()
	c.planning.End()
	c.planning = nil
	c.strategyEvents()
}

// size is the most that a strategy is asked at a time: about these jobs, and those
// that run.
func (c *Controller) size(list []candidate) sdk.Size {
	size := sdk.Size{Jobs: len(list) + len(c.active)}
	for _, cand := range list {
		size.Steps += len(cand.profile)
	}
	for _, j := range c.active {
		size.Steps += len(j.plan)
	}
	return size
}

// strategyEvents writes what happened to strategies into the event log.
func (c *Controller) strategyEvents() {
	for _, e := range c.strategies.Events() {
		c.event(nil, e.Kind, e.Detail)
	}
}

// pinned are the plans of the jobs that run, as far as they are on these nodes.
func (c *Controller) pinned(s *snapshot, nodes []int, origin int64) []planner.Placement {
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

// take marks what a plan takes of these nodes.
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

// addPeaks keeps all nodes that a running job has at any time from now until its
// end, as if it did not evolve.
func (c *Controller) addPeaks(o *occupancy, s *snapshot) {
	for _, j := range c.active {
		if !j.runs() && j.State != store.Starting || len(j.plan) == 0 {
			continue
		}
		end := j.plan[len(j.plan)-1].end + c.margin()
		steps := j.plan
		if j.kept != nil {
			steps = j.promised(s.taken.Unix())
		}
		for _, step := range steps {
			for _, name := range step.nodes {
				if n, ok := s.index[name]; ok {
					o.add(n, o.origin, end)
				}
			}
		}
	}
}

// clone is an independent copy.
func (o *occupancy) clone() *occupancy {
	n := newOccupancy(len(o.busy), o.origin)
	for i := range o.busy {
		n.busy[i], n.reserved[i] = slices.Clone(o.busy[i]), slices.Clone(o.reserved[i])
	}
	n.preemption, n.tenures = o.preemption, o.tenures // nobody changes them any more
	return n
}

// Configure takes another configuration between two cycles. What is bound to the
// process (database, addresses, the folder of Slurm's commands) stays as it was.
func (c *Controller) Configure(ctx context.Context, cfg config.Config) error {
	change, err := c.strategies.Configure(ctx, cfg.Strategies, cfg.Strategy)
	if err != nil {
		return fmt.Errorf("strategy: %w", err)
	}
	return c.swap(ctx, change, cfg, func() {
		c.cfg = cfg
		c.configRead = time.Time{} // look at Slurm's configuration again, too
	})
}

var errMeanwhile = api.Errorf(api.ErrConflict, "another strategy has been put in use meanwhile")

var errNotRunning = api.Errorf(api.ErrUnavailable, "the sidecar is busy or stopping")

// onLoop runs f on the loop's goroutine and tells whether it has.
func (c *Controller) onLoop(ctx context.Context, f func()) bool {
	return call(ctx, c, func() bool { f(); return true })
}

// swap changes the strategy between two cycles: first in the database, so that it
// outlives the sidecar, then in fact. cfg is the configuration from then on; then is
// done along with it. It is carried out even if ctx ends before; what was prepared
// must not be left running.
func (c *Controller) swap(ctx context.Context, change *strategy.Change, cfg config.Config, then func()) error {
	var err error
	var once sync.Once
	if c.onLoop(ctx, func() {
		once.Do(func() {
			if err = c.keep(change, cfg); err != nil {
				change.Discard()
				return
			}
			change.Swap()
			then()
		})
		c.strategyEvents()
		c.nextCycle = time.Now()
		c.publish()
	}) {
		return err
	}
	select {
	case <-c.gone:
		once.Do(change.Discard)
	default:
	}
	return errNotRunning
}

// keep writes a change of strategy into the database.
func (c *Controller) keep(change *strategy.Change, cfg config.Config) error {
	if change.Stale() {
		return errMeanwhile
	}
	e := change.Event()
	if e == nil {
		return nil
	}
	var choice *store.Choice
	if kept := change.Kept(); kept != nil {
		choice = &store.Choice{Strategy: kept.Name, Parameters: kept.Parameters, By: kept.By, At: kept.Since, Instead: configured(cfg)}
	}
	return c.store.Together(c.ctx, func(tx *store.Store) error {
		return errors.Join(tx.SetChoice(c.ctx, choice), tx.AddEvent(c.ctx, 0, time.Now(), e.Kind, e.Detail))
	})
}

// configured is the configuration's strategy with its parameters, in order.
func configured(cfg config.Config) string {
	return strings.Join(append([]string{cfg.Strategy}, slices.Sorted(slices.Values(cfg.Strategies.Parameters))...), " ")
}

// kept is the strategy that was put in use before this process; nil: what the
// configuration has. Where that is another one since, it is its turn.
func kept(st *store.Store, cfg config.Config, log *logrus.Logger) (*strategy.Chosen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keptTimeout)
	defer cancel()
	choice, err := st.Choice(ctx)
	if err != nil || choice == nil {
		return nil, err
	}
	if choice.Instead == configured(cfg) {
		return &strategy.Chosen{Name: choice.Strategy, Parameters: choice.Parameters, By: choice.By, Since: choice.At}, nil
	}
	log.WithFields(logrus.Fields{"from": choice.Strategy, "to": cfg.Strategy}).Info("the configuration names another strategy than before: it is used")
	return nil, st.Together(ctx, func(tx *store.Store) error {
		return errors.Join(tx.SetChoice(ctx, nil), tx.AddEvent(ctx, 0, time.Now(), "strategy", map[string]any{
			"from": choice.Strategy, "from_parameters": choice.Parameters, "to": cfg.Strategy, "by": "configuration"}))
	})
}

// keptTimeout bounds reading the database at the start.
const keptTimeout = 10 * time.Second

// Strategies implements api.Strategist.
func (c *Controller) Strategies(context.Context) ([]api.Strategy, error) {
	return c.strategies.List(), nil
}

// UseStrategy implements api.Strategist.
func (c *Controller) UseStrategy(ctx context.Context, name string, r api.StrategyRequest, caller string) (api.Strategy, error) {
	change, err := c.strategies.Use(ctx, name, r.Parameters, caller)
	if err != nil {
		return api.Strategy{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	if err := c.change(ctx, change); err != nil {
		return api.Strategy{}, err
	}
	all := c.strategies.List()
	if i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.InUse && (s.Name == name || name == api.Configured) }); i >= 0 {
		return all[i], nil
	}
	return api.Strategy{}, errMeanwhile
}

// ReloadStrategies implements api.Strategist.
func (c *Controller) ReloadStrategies(ctx context.Context, caller string) ([]api.Strategy, error) {
	change, err := c.strategies.Reload(ctx, caller)
	if err != nil {
		return nil, api.Errorf(api.ErrInvalid, "%v; the strategy in use goes on as before", err)
	}
	if err := c.change(ctx, change); err != nil {
		return nil, err
	}
	return c.strategies.List(), nil
}

// change is swap under the present configuration.
func (c *Controller) change(ctx context.Context, change *strategy.Change) error {
	var cfg config.Config
	if !c.onLoop(ctx, func() { cfg = c.cfg }) {
		change.Discard()
		return errNotRunning
	}
	return c.swap(ctx, change, cfg, func() {})
}

// trial is the queue at one moment, to plan with any strategy.
type trial struct {
	size     sdk.Size
	margin   int64
	occupied *occupancy
	batches  []trialBatch
}

type trialBatch struct {
	rank   rank
	nodes  []int
	pool   planner.Pool
	pinned []planner.Placement
	jobs   []trialJob // as in the pool
}

// trialJob is a job of a batch; id 0: a stock job.
type trialJob struct {
	id      uint32
	profile planner.Profile
}

// TryStrategy implements api.Strategist: the strategy in use and the one to try
// plan the same state, beside the loop.
func (c *Controller) TryStrategy(ctx context.Context, name string, r api.StrategyRequest) (api.Trial, error) {
	var q *trial
	if !c.onLoop(ctx, func() { q = c.trial() }) {
		return api.Trial{}, errNotRunning
	}
	if q == nil {
		return api.Trial{}, api.Errorf(api.ErrUnavailable, "Slurm has not been observed yet")
	}
	presentName, presentParameters := c.strategies.InUse()
	present, before, err := q.plan(ctx, c.strategies, presentName, presentParameters)
	if err != nil {
		return api.Trial{}, api.Errorf(api.ErrConflict, "the strategy in use: %v", err)
	}
	tried, after, err := q.plan(ctx, c.strategies, name, r.Parameters)
	if err != nil {
		return api.Trial{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	t := api.Trial{Present: present, Tried: tried, Jobs: []api.TrialJob{}}
	for i, b := range q.batches {
		for k, j := range b.jobs {
			if j.id == 0 {
				continue
			}
			row := api.TrialJob{ID: j.id, Profile: j.profile.String(), TriedUnfit: after[i][k].Unfit}
			row.Start, row.End = q.times(before[i][k])
			row.TriedStart, row.TriedEnd = q.times(after[i][k])
			t.Jobs = append(t.Jobs, row)
		}
	}
	return t, nil
}

// trial is the present queue; nil if Slurm was not observed yet.
func (c *Controller) trial() *trial {
	s := c.snapshot
	if s == nil {
		return nil
	}
	now := s.taken.Unix()
	list := c.candidates(s, now)
	q := &trial{size: c.size(list), margin: c.margin(), occupied: c.occupied(s, now, nil)}
	for i := range list {
		list[i] = list[i].chosen(s)
	}
	for _, b := range batches(s, list) {
		t := trialBatch{nodes: b.nodes, rank: b.rank, pool: c.pool(s, q.occupied, b), pinned: c.pinned(s, b.nodes, now)}
		for _, cand := range b.jobs {
			j := trialJob{profile: cand.profile}
			if cand.job != nil {
				j.id = cand.job.SlurmID
			}
			t.jobs = append(t.jobs, j)
		}
		q.batches = append(q.batches, t)
	}
	return q
}

// plan plans the queue and says in figures how well; the plans are unpadded.
func (q *trial) plan(ctx context.Context, m *strategy.Manager, name string, parameters map[string]string) (api.StrategyPlan, [][]planner.Planned, error) {
	figures := api.StrategyPlan{Strategy: name, Parameters: parameters}
	cycle, done, err := m.Try(ctx, name, parameters, q.size)
	if err != nil {
		return figures, nil, err
	}
	defer done()
	o := q.occupied.clone()
	all := make([][]planner.Planned, len(q.batches))
	used, held := 0.0, 0.0
	began := time.Now()
	for i, b := range q.batches {
		pool := b.pool
		pool.Jobs = slices.Clone(b.pool.Jobs)
		pool.Busy = o.window(b.nodes, b.rank)
		cycle.Pinned = b.pinned
		if all[i], err = pool.Plan(cycle); err != nil {
			return figures, nil, err
		}
		o.take(b.nodes, all[i])
		for k, j := range b.jobs {
			p := &all[i][k]
			if j.id == 0 || p.Unfit != "" {
				continue
			}
			p.Placement = planner.Unpad(p.Placement, j.profile, q.margin)
			figures.Planned++
			figures.Makespan = max(figures.Makespan, float64(p.End()))
			figures.Completion += float64(p.End())
			figures.Wait += float64(p.Start)
			used += float64(j.profile.Area())
			held += float64(p.Steps.Area())
		}
	}
	figures.Seconds = time.Since(began).Seconds()
	if figures.Planned > 0 {
		figures.Completion /= float64(figures.Planned)
		figures.Wait /= float64(figures.Planned)
		figures.Waste = 100 * (held - used) / used
	}
	return figures, all, nil
}

// times are a plan's start and end, zero if there is none.
func (q *trial) times(p planner.Planned) (start, end time.Time) {
	if p.Unfit != "" {
		return time.Time{}, time.Time{}
	}
	return time.Unix(p.Start+q.occupied.origin, 0), time.Unix(p.End()+q.occupied.origin, 0)
}
