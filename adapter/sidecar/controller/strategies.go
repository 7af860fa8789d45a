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
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/pluginhost"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// size is the most that a strategy is asked at a time.
func size(p *core.Problem) sdk.Size { return sdk.Size{Jobs: p.Jobs, Steps: p.Steps} }

// strategyEvents writes what happened to strategies into the event log.
func (c *Controller) strategyEvents() {
	var rows []core.Effect
	for _, e := range c.strategies.Events() {
		rows = append(rows, core.AddEvent{At: time.Now(), Kind: e.Kind, Detail: e.Detail})
	}
	if len(rows) > 0 {
		c.books.write(rows)
	}
}

// Configure takes another configuration between two cycles. What is bound to the
// process (database, addresses, the folder of Slurm's commands) stays as it was.
func (c *Controller) Configure(ctx context.Context, cfg config.Config) error {
	change, err := c.strategies.Configure(ctx, cfg.Strategies, cfg.Strategy)
	if err != nil {
		return fmt.Errorf("strategy: %w", err)
	}
	policy, err := c.strategies.ConfigurePolicy(cfg.Malleable.Policy)
	if err != nil {
		change.Discard()
		return fmt.Errorf("malleable.policy: %w", err)
	}
	if err := c.swap(ctx, change, cfg, true); err != nil || policy == nil {
		return err
	}
	return c.swapPolicy(ctx, policy, &cfg)
}

var errMeanwhile = api.Errorf(api.ErrConflict, "another strategy has been put in use meanwhile")

var errNotRunning = api.Errorf(api.ErrUnavailable, "the sidecar is busy or stopping")

// swap changes the strategy between two cycles: first in the database, so that it
// outlives the sidecar, then in fact. cfg is the configuration from then on, another one
// perhaps. It is carried out even if ctx ends before; what was prepared must not be left
// running.
func (c *Controller) swap(ctx context.Context, change *pluginhost.Change, cfg config.Config, another bool) error {
	var err error
	var once sync.Once
	if c.onLoop(ctx, func() {
		once.Do(func() {
			if err = c.keep(change, cfg); err != nil {
				change.Discard()
				return
			}
			change.Swap()
			in := core.Configuration{Strategy: c.strategy()}
			if another {
				c.cfg, in.Config = cfg, &cfg
			}
			c.step(in)
		})
		c.strategyEvents()
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
func (c *Controller) keep(change *pluginhost.Change, cfg config.Config) error {
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
func kept(st *store.Store, cfg config.Config, log *logrus.Logger) (*pluginhost.Chosen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keptTimeout)
	defer cancel()
	choice, err := st.Choice(ctx)
	if err != nil || choice == nil {
		return nil, err
	}
	if choice.Instead == configured(cfg) {
		return &pluginhost.Chosen{Name: choice.Strategy, Parameters: choice.Parameters, By: choice.By, Since: choice.At}, nil
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
	policy, err := c.strategies.ReloadPolicy(ctx)
	if err != nil {
		return nil, api.Errorf(api.ErrInvalid, "%v; the malleability policy in use goes on as before", err)
	}
	if policy != nil {
		if err := c.swapPolicy(ctx, policy, nil); err != nil {
			return nil, err
		}
	}
	return c.strategies.List(), nil
}

// change is swap under the present configuration.
func (c *Controller) change(ctx context.Context, change *pluginhost.Change) error {
	var cfg config.Config
	if !c.onLoop(ctx, func() { cfg = c.cfg }) {
		change.Discard()
		return errNotRunning
	}
	return c.swap(ctx, change, cfg, false)
}

// TryStrategy implements api.Strategist: the strategy in use and the one to try
// plan the same state, beside the loop.
func (c *Controller) TryStrategy(ctx context.Context, name string, r api.StrategyRequest) (api.Trial, error) {
	var p *core.Problem
	if !c.onLoop(ctx, func() { p = c.core.Problem() }) {
		return api.Trial{}, errNotRunning
	}
	if p == nil {
		return api.Trial{}, api.Errorf(api.ErrUnavailable, "Slurm has not been observed yet")
	}
	presentName, presentParameters := c.strategies.InUse()
	present, before, err := c.try(ctx, p, presentName, presentParameters)
	if err != nil {
		return api.Trial{}, api.Errorf(api.ErrConflict, "the strategy in use: %v", err)
	}
	tried, after, err := c.try(ctx, p, name, r.Parameters)
	if err != nil {
		return api.Trial{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	t := api.Trial{Present: present, Tried: tried, Jobs: []api.TrialJob{}}
	for i, j := range after {
		j.Start, j.End = before[i].TriedStart, before[i].TriedEnd
		t.Jobs = append(t.Jobs, j)
	}
	return t, nil
}

// try plans the queue with a strategy.
func (c *Controller) try(ctx context.Context, p *core.Problem, name string, parameters map[string]string) (api.StrategyPlan, []api.TrialJob, error) {
	cycle, done, err := c.strategies.Try(ctx, name, parameters, size(p))
	if err != nil {
		return api.StrategyPlan{}, nil, err
	}
	defer done()
	began := time.Now()
	figures, rows, err := p.Try(cycle)
	figures.Strategy, figures.Parameters, figures.Seconds = name, parameters, time.Since(began).Seconds()
	return figures, rows, err
}
