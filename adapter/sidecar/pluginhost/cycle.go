package pluginhost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// Cycle plans one cycle with the strategy in use. It implements planner.Strategy, for one
// goroutine. A plugin is called once per cycle, with one request per pool. If it fails, the
// fallback at once plans the same problem and the rest of the cycle: a plugin's time is that of the
// whole cycle.
type Cycle struct {
	// Jobs is how many evolving jobs the cycle has given a plan, for the event log.
	Jobs int

	pinned  []planner.Placement      // the running jobs of the pool that is planned next
	sets    func() []planner.NodeSet // of that pool's nodes; nil: not known
	manager *Manager
	chosen  *selection
	process *process
	size    sdk.Size       // of the largest request
	call    *sdk.Call      // of the plugin; nil: nothing was asked yet
	left    time.Duration  // for the plugin
	trial   bool           // without the fallback
	fallen  error          // why the fallback plans
	fault   map[string]any // of this cycle, in the event log
	asked   bool
	won     map[string]int // how many pools each strategy planned that the one in use has asked
}

// Begin begins a cycle, in which no pool has more jobs and steps than size, including those of
// running jobs.
func (m *Manager) Begin(size sdk.Size) *Cycle {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.Planning.current
	c := &Cycle{manager: m, chosen: s, size: size, left: m.cfg.Timeout}
	if s.plugin() {
		c.fault, c.fallen = s.ready("plans")
		c.process = s.process
	}
	return c
}

// Try prepares a strategy for one plan without effect; done ends it. Its faults are errors of Plan
// and do not count otherwise. size is as for Begin.
func (m *Manager) Try(ctx context.Context, name string, parameters map[string]string, size sdk.Size) (c *Cycle, done func(), err error) {
	if err := m.rescan(); err != nil {
		return nil, nil, err
	}
	s, err := m.Planning.prepare(ctx, Chosen{Name: name, Parameters: parameters})
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	left := m.cfg.Timeout
	m.mu.Unlock()
	c = &Cycle{manager: m, chosen: s, process: s.process, size: size, left: left, trial: true}
	return c, func() {
		c.hangUp()
		if s.process != nil {
			s.process.end()
		}
	}, nil
}

// End ends the cycle and counts it.
func (c *Cycle) End() {
	c.hangUp()
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.fault != nil {
		c.fault["jobs_planned"] = c.Jobs
	}
	r := c.chosen.slot.record(c.chosen.Name)
	switch {
	case !c.asked:
	case c.fallen != nil:
		r.fallen++
	default:
		r.plans++
		r.count(c.won)
		if c.process != nil {
			r.inARow, r.rest = 0, 0
			r.seconds = (m.cfg.Timeout - c.left).Seconds()
		}
	}
}

// Fallen returns why the fallback planned; nil: it did not.
func (c *Cycle) Fallen() error { return c.fallen }

// Name implements planner.Strategy.
func (c *Cycle) Name() string { return c.chosen.Name }

// strategy returns what plans in this process; nil: the plugin plans.
func (c *Cycle) strategy() planner.Strategy {
	switch {
	case c.chosen.builtin != nil:
		return c.chosen.builtin
	case c.fallen != nil:
		return fallback
	}
	return nil
}

// ExpandLimit returns the limit of jobs without their own.
func (c *Cycle) ExpandLimit() planner.ExpandLimit {
	if s := c.strategy(); s != nil {
		return planner.ExpandLimitOf(s)
	}
	return c.process.limit()
}

// Pin says which running jobs the pool has that is planned next.
func (c *Cycle) Pin(running []planner.Placement) { c.pinned = running }

// Sort says how to group the nodes of the pool that is planned next. It implements msg.SetPlanner.
func (c *Cycle) Sort(sets func() []planner.NodeSet) { c.sets = sets }

// Rigid reports whether the plan just made is one without evolution.
func (c *Cycle) Rigid() bool {
	if s := c.strategy(); s != nil {
		return planner.IsRigid(s)
	}
	return c.process.description.Rigid
}

// Moldable reports whether the strategy handles alternatives of moldable jobs; otherwise it is
// asked about one profile of each.
func (c *Cycle) Moldable() bool {
	if s := c.strategy(); s != nil {
		return planner.KnowsAlternatives(s)
	}
	return c.process.description.Moldable
}

// AsksOnce reports that a plugin is asked once for a pool; planner.Keep does the rest.
func (c *Cycle) AsksOnce() bool {
	s, ok := c.strategy().(interface{ AsksOnce() bool })
	return c.strategy() == nil || ok && s.AsksOnce()
}

// Steady reports that a plan stays valid while only time passes. A plugin may treat time
// differently.
func (c *Cycle) Steady() bool {
	s := c.strategy()
	return s != nil && planner.IsSteady(s)
}

// Plan implements planner.Strategy.
func (c *Cycle) Plan(p planner.Problem) (planner.Schedule, error) {
	s, unfit, err := c.PlanPartly(p)
	if err == nil && len(unfit) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(unfit)))
		err = &planner.FitError{Job: first, ID: p.Jobs[first].ID, Reason: unfit[first]}
	}
	return s, err
}

// PlanPartly implements planner.Partial.
func (c *Cycle) PlanPartly(p planner.Problem) (planner.Schedule, map[int]string, error) {
	c.asked = true
	r := sdk.Request{Problem: p, Pinned: c.pinned}
	if c.strategy() == nil {
		if c.sets != nil && c.process.description.NodeSets {
			r.Sets = c.sets()
		}
		a, err := c.ask(r)
		if err == nil || c.trial {
			return a.Schedule, a.Unfit, err
		}
		c.fallen = err
		c.manager.mu.Lock()
		if c.chosen.process == c.process { // else it was swapped or has failed meanwhile
			c.fault = c.chosen.fault(err)
		}
		c.manager.mu.Unlock()
	}
	a, err := sdk.Run(c.manager.ctx, c.strategy(), r)
	if a.By != "" {
		if c.won == nil {
			c.won = map[string]int{}
		}
		c.won[a.By]++
	}
	return a.Schedule, a.Unfit, err
}

// ask asks the plugin within the rest of the cycle's time.
func (c *Cycle) ask(r sdk.Request) (sdk.Answer, error) {
	if c.left <= 0 {
		return sdk.Answer{}, fmt.Errorf("it took all of the cycle's time: %w", context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(c.manager.ctx, c.left)
	defer cancel()
	began := time.Now()
	var err error
	if c.call == nil {
		c.call, err = c.process.client.Call(c.manager.ctx, c.process.values, c.process.description, c.size)
	}
	var a sdk.Answer
	if err == nil {
		a, err = c.process.plan(ctx, c.call, r)
	}
	c.left -= time.Since(began)
	if err != nil {
		err = c.process.explain(err)
	}
	return a, err
}

// hangUp ends the call of the plugin, if there was one.
func (c *Cycle) hangUp() {
	if c.call != nil {
		c.call.Close()
		c.call = nil
	}
}
