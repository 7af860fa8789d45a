package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/pluginhost"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// size returns the most that a strategy is asked at a time.
func size(p *msg.Problem) sdk.Size { return sdk.Size{Jobs: p.Jobs, Steps: p.Steps} }

// strategyEvents writes what happened to strategies into the event log.
func (c *Controller) strategyEvents() {
	var rows []msg.Effect
	for _, e := range c.strategies.Events() {
		rows = append(rows, msg.AddEvent{At: time.Now(), Kind: e.Kind, Detail: e.Detail})
	}
	if len(rows) > 0 {
		c.books.write(rows)
	}
}

// Configure takes another configuration between two cycles. What is bound to the
// process (database, addresses, the folder of Slurm's commands) stays as it was.
func (c *Controller) Configure(ctx context.Context, cfg config.Config) error {
	if cfg.Mode != c.mode {
		c.log.WithField("mode", cfg.Mode).Warn("the mode changes when the sidecar is restarted; until then it stays " + string(c.mode))
		cfg.Mode = c.mode
	}
	changes, err := c.strategies.Configure(ctx, cfg.Strategies, cfg.Strategy, cfg.Malleable.Policy)
	if err != nil {
		return err
	}
	if err := c.swap(ctx, changes, &cfg); err != nil {
		return err
	}
	_, now := c.settings.current()
	c.warnOfNames(now)
	return nil
}

var errMeanwhile = api.Errorf(api.ErrConflict, "another strategy has been put in use meanwhile")

var errNotRunning = api.Errorf(api.ErrUnavailable, "the sidecar is busy or stopping")

// swap changes what is in use between two cycles: first in the database, so that it
// outlives the sidecar, then in fact. cfg is another configuration from then on, or nil.
// It is carried out even if ctx ends before; what was prepared must not be left running.
func (c *Controller) swap(ctx context.Context, changes []*pluginhost.Change, cfg *config.Config) error {
	discard := func() {
		for _, change := range changes {
			change.Discard()
		}
	}
	var err error
	var once sync.Once
	if c.onLoop(ctx, func() {
		once.Do(func() {
			in, now := msg.Configuration{}, c.cfg
			if cfg != nil {
				now = *cfg
				var with config.Config
				if with, err = c.settings.lay(c.ctx, now, c.log); err != nil {
					discard()
					return
				}
				in.Config = &with
			}
			if err = c.keep(changes, now); err != nil {
				discard()
				return
			}
			for _, change := range changes {
				change.Swap()
			}
			c.cfg, in.Strategy = now, c.strategy()
			c.step(in)
		})
		c.strategyEvents()
	}) {
		return err
	}
	select {
	case <-c.gone:
		once.Do(discard)
	default:
	}
	return errNotRunning
}

// keep writes changes of what is in use into the database.
func (c *Controller) keep(changes []*pluginhost.Change, cfg config.Config) error {
	for _, change := range changes {
		if change.Stale() {
			return errMeanwhile
		}
	}
	if !slices.ContainsFunc(changes, func(change *pluginhost.Change) bool { return change.Event() != nil }) {
		return nil
	}
	return c.store.Together(c.ctx, func(tx *store.Store) error {
		var errs []error
		for _, change := range changes {
			e := change.Event()
			if e == nil {
				continue
			}
			u := uses[change.Kind()]
			set := store.Setting{Key: change.Kind()}
			if kept := change.Kept(); kept != nil {
				value, err := json.Marshal(choice{kept.Name, kept.Parameters})
				errs = append(errs, err)
				set = store.Setting{Key: set.Key, Value: value, By: kept.By, At: kept.Since, Instead: u.configured(cfg)}
			}
			errs = append(errs, tx.SetSetting(c.ctx, set), tx.AddEvent(c.ctx, 0, time.Now(), e.Kind, e.Detail))
		}
		return errors.Join(errs...)
	})
}

// choice is a strategy that an operator has put in use, as a setting's value.
type choice struct {
	Strategy   string            `json:"strategy"`
	Parameters map[string]string `json:"parameters"`
}

// use says what strategies do: plan, or resize malleable jobs.
type use struct {
	named      func(config.Config) string // by the configuration
	configured func(config.Config) string // the same with its parameters, in order
}

// uses has them by their kind in the event log, which is also their setting's key.
var uses = map[string]use{
	"strategy": {named: func(cfg config.Config) string { return cfg.Strategy }, configured: func(cfg config.Config) string {
		return strings.Join(append([]string{cfg.Strategy}, slices.Sorted(slices.Values(cfg.Strategies.Parameters))...), " ")
	}},
	"malleability policy": {named: policyOf, configured: policyOf},
}

func policyOf(cfg config.Config) string { return cfg.Malleable.Policy }

// kept holds the choice made before this process; nil: the configuration's.
// Where that is another one since, it is its turn.
func kept(st *store.Store, cfg config.Config, kind string, log *logrus.Logger) (*pluginhost.Chosen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keptTimeout)
	defer cancel()
	u := uses[kind]
	set, err := st.Setting(ctx, kind)
	if err != nil || set == nil {
		return nil, err
	}
	var was choice
	if err := json.Unmarshal(set.Value, &was); err != nil {
		return nil, fmt.Errorf("read the %s in use: %w", kind, err)
	}
	if set.Instead == u.configured(cfg) {
		return &pluginhost.Chosen{Name: was.Strategy, Parameters: was.Parameters, By: set.By, Since: set.At}, nil
	}
	log.WithFields(logrus.Fields{"from": was.Strategy, "to": u.named(cfg)}).Info("the configuration names another " + kind + " than before: it is used")
	return nil, st.Together(ctx, func(tx *store.Store) error {
		return errors.Join(tx.SetSetting(ctx, store.Setting{Key: kind}), tx.AddEvent(ctx, 0, time.Now(), kind, map[string]any{
			"from": was.Strategy, "from_parameters": was.Parameters, "to": u.named(cfg), "by": "configuration"}))
	})
}

// keptTimeout bounds reading the database at the start.
const keptTimeout = 10 * time.Second

// slot has what strategies are asked about.
func (c *Controller) slot(kind api.StrategyKind) *pluginhost.Slot {
	if kind == api.Resizing {
		return c.strategies.Resizing
	}
	return c.strategies.Planning
}

// Strategies implements api.Backend.
func (c *Controller) Strategies(_ context.Context, kind api.StrategyKind) ([]api.Strategy, error) {
	return c.slot(kind).List(), nil
}

// UseStrategy implements api.Backend.
func (c *Controller) UseStrategy(ctx context.Context, kind api.StrategyKind, name string, r api.StrategyRequest, caller string) (api.Strategy, error) {
	change, err := c.slot(kind).Use(ctx, name, r.Parameters, caller)
	if err != nil {
		return api.Strategy{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	if err := c.swap(ctx, []*pluginhost.Change{change}, nil); err != nil {
		return api.Strategy{}, err
	}
	c.share(ctx)
	all := c.slot(kind).List()
	if i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.InUse && (s.Name == name || name == api.Configured) }); i >= 0 {
		return all[i], nil
	}
	return api.Strategy{}, errMeanwhile
}

// ReloadStrategies implements api.Backend.
func (c *Controller) ReloadStrategies(ctx context.Context, caller string) ([]api.Strategy, error) {
	changes, err := c.strategies.Reload(ctx, caller)
	if err != nil {
		return nil, api.Errorf(api.ErrInvalid, "%v", err)
	}
	if err := c.swap(ctx, changes, nil); err != nil {
		return nil, err
	}
	return c.strategies.Planning.List(), nil
}

// resize has the policy in use, a plugin, say who grows or shrinks.
func (c *Controller) resize(q msg.Question) msg.Resized {
	changes, err := c.strategies.Resize(q)
	c.strategyEvents()
	if err != nil {
		return msg.Resized{Fault: err.Error()}
	}
	return msg.Resized{Changes: changes}
}

// TryStrategy implements api.Backend: the strategy in use and the one to try
// plan the same state, beside the loop.
func (c *Controller) TryStrategy(ctx context.Context, name string, r api.StrategyRequest) (api.Trial, error) {
	var p *msg.Problem
	if !c.onLoop(ctx, func() { p = c.core.Problem() }) {
		return api.Trial{}, errNotRunning
	}
	if p == nil {
		return api.Trial{}, api.Errorf(api.ErrUnavailable, "Slurm has not been observed yet")
	}
	presentName, presentParameters := c.strategies.Planning.InUse()
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
func (c *Controller) try(ctx context.Context, p *msg.Problem, name string, parameters map[string]string) (api.StrategyPlan, []api.TrialJob, error) {
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
