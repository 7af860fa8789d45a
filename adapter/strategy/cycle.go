package strategy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// Cycle plans one cycle with the strategy in use. It implements planner.Strategy,
// for one goroutine. Where a plugin fails, the fallback plans the same problem at
// once, and the rest of the cycle: the time that a plugin may take is that of the
// whole cycle.
type Cycle struct {
	// Pinned are the running jobs of the problem that is planned next.
	Pinned []planner.Placement

	manager *Manager
	chosen  *selection
	process *process
	left    time.Duration // for the plugin
	trial   bool          // without the fallback
	fallen  error         // why the fallback plans
	planned bool

	// What is left of an answer with jobs that fit nowhere: planner.Pool wants to
	// hear of one at a time, and asks again without it.
	rest   planner.Problem
	answer sdk.Answer
}

// Begin begins a cycle.
func (m *Manager) Begin() *Cycle {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.current
	c := &Cycle{manager: m, chosen: s, left: m.cfg.Timeout}
	if s.builtin != nil {
		return c
	}
	r := m.record(s.name)
	if r.aside && time.Now().After(r.until) {
		r.aside = false // one more fault, and it rests for longer
		m.restart(s)
	}
	if s.process != nil && s.process.exited() {
		m.fault(s, s.process.explain(fmt.Errorf("%w between two plans", sdk.ErrBroken)))
	}
	switch c.process = s.process; {
	case c.process != nil:
	case r.aside:
		c.fallen = fmt.Errorf("it is put aside until %s", r.until.Format(time.TimeOnly))
	default:
		c.fallen = fmt.Errorf("it is being started")
	}
	return c
}

// Try prepares a strategy for one plan that nobody acts on; done ends it. Its
// faults are errors of Plan, and count for nothing else.
func (m *Manager) Try(ctx context.Context, name string, parameters map[string]string) (c *Cycle, done func(), err error) {
	if err := m.rescan(); err != nil {
		return nil, nil, err
	}
	s, err := m.prepare(ctx, name, parameters)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	left := m.cfg.Timeout
	m.mu.Unlock()
	return &Cycle{manager: m, chosen: s, process: s.process, left: left, trial: true}, func() {
		if s.process != nil {
			s.process.end()
		}
	}, nil
}

// InUse is the name and the parameters of the strategy in use.
func (m *Manager) InUse() (name string, parameters map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.name, maps.Clone(m.current.given)
}

// End ends the cycle and counts it.
func (c *Cycle) End() {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.record(c.chosen.name)
	switch {
	case !c.planned:
	case c.fallen != nil:
		r.fallen++
	default:
		r.plans++
		if c.process != nil {
			r.inARow, r.rest = 0, 0
			r.seconds = (m.cfg.Timeout - c.left).Seconds()
		}
	}
}

// Fallen says why the fallback planned; nil: it did not.
func (c *Cycle) Fallen() error { return c.fallen }

// Name implements planner.Strategy.
func (c *Cycle) Name() string { return c.chosen.name }

// strategy is what plans in this process; nil: the plugin plans.
func (c *Cycle) strategy() planner.Strategy {
	switch {
	case c.chosen.builtin != nil:
		return c.chosen.builtin
	case c.fallen != nil:
		return fallback
	}
	return nil
}

// ExpandLimit is that of jobs that have none of their own.
func (c *Cycle) ExpandLimit() planner.ExpandLimit {
	if s := c.strategy(); s != nil {
		return planner.ExpandLimitOf(s)
	}
	return c.process.limit()
}

// Rigid tells whether the plan just made is one without evolution.
func (c *Cycle) Rigid() bool {
	if s := c.strategy(); s != nil {
		return planner.IsRigid(s)
	}
	return c.process.description.Rigid
}

// Plan implements planner.Strategy.
func (c *Cycle) Plan(p planner.Problem) (planner.Schedule, error) {
	c.planned = true
	if s := c.strategy(); s != nil {
		return s.Plan(p)
	}
	if !c.continues(p) {
		a, err := c.ask(p)
		if err != nil && c.trial {
			return nil, err
		}
		if err != nil {
			c.fallen = err
			c.manager.mu.Lock()
			if c.chosen.process == c.process { // else it was swapped or has failed meanwhile
				c.manager.fault(c.chosen, err)
			}
			c.manager.mu.Unlock()
			return fallback.Plan(p)
		}
		c.rest, c.answer = p, a
		c.rest.Jobs = slices.Clone(p.Jobs)
	}
	if len(c.answer.Unfit) == 0 {
		c.rest = planner.Problem{}
		return c.answer.Schedule, nil
	}
	return nil, c.dropUnfit()
}

// ask asks the plugin within what is left of the cycle's time.
func (c *Cycle) ask(p planner.Problem) (sdk.Answer, error) {
	if c.left <= 0 {
		return sdk.Answer{}, fmt.Errorf("it took all of the cycle's time: %w", context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(c.manager.ctx, c.left)
	defer cancel()
	began := time.Now()
	a, err := c.process.plan(ctx, sdk.Request{Problem: p, Pinned: c.Pinned})
	c.left -= time.Since(began)
	if err != nil {
		err = c.process.explain(err)
	}
	return a, err
}

// continues tells whether p is what was left of the last problem.
func (c *Cycle) continues(p planner.Problem) bool {
	return c.answer.Schedule != nil && c.rest.Nodes == p.Nodes && slices.Equal(c.rest.Busy, p.Busy) &&
		slices.EqualFunc(c.rest.Jobs, p.Jobs, func(a, b planner.Job) bool {
			return a.ID == b.ID && a.Submit == b.Submit && a.ExpandLimit == b.ExpandLimit && slices.Equal(a.Profile, b.Profile)
		})
}

// dropUnfit takes the first job that fits nowhere out of the answer and tells of it.
func (c *Cycle) dropUnfit() error {
	first := slices.Min(slices.Collect(maps.Keys(c.answer.Unfit)))
	err := &planner.FitError{Job: first, ID: c.rest.Jobs[first].ID, Reason: c.answer.Unfit[first]}
	c.rest.Jobs = slices.Delete(c.rest.Jobs, first, first+1)
	c.answer.Schedule = slices.Delete(c.answer.Schedule, first, first+1)
	unfit := make(map[int]string, len(c.answer.Unfit))
	for i, why := range c.answer.Unfit {
		if i > first {
			unfit[i-1] = why
		}
	}
	c.answer.Unfit = unfit
	return err
}
