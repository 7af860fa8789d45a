package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/pluginhost"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// Policies implements api.PolicyChooser.
func (c *Controller) Policies(context.Context) ([]api.Strategy, error) {
	return c.strategies.Policies(), nil
}

// UsePolicy implements api.PolicyChooser.
func (c *Controller) UsePolicy(ctx context.Context, name string, r api.StrategyRequest, caller string) (api.Strategy, error) {
	change, err := c.strategies.UsePolicy(ctx, name, r.Parameters, caller)
	if err != nil {
		return api.Strategy{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	if err := c.swapPolicy(ctx, change, nil); err != nil {
		return api.Strategy{}, err
	}
	all := c.strategies.Policies()
	if i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.InUse && (s.Name == name || name == api.Configured) }); i >= 0 {
		return all[i], nil
	}
	return api.Strategy{}, errMeanwhile
}

// swapPolicy changes the policy between two cycles, as swap does the strategy: first in the
// database, then in fact. cfg is another configuration, if it is that. It is carried out even if ctx ends
// before; what was prepared must not be left running.
func (c *Controller) swapPolicy(ctx context.Context, change *pluginhost.PolicyChange, cfg *config.Config) error {
	var err error
	var once sync.Once
	if c.onLoop(ctx, func() {
		once.Do(func() {
			if cfg == nil {
				cfg = &c.cfg
			}
			if err = c.keepPolicy(change, cfg.Malleable.Policy); err != nil {
				change.Discard()
				return
			}
			change.Swap()
			c.step(core.Configuration{Strategy: c.strategy()})
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

// keepPolicy writes a change of policy into the database.
func (c *Controller) keepPolicy(change *pluginhost.PolicyChange, configured string) error {
	if change.Stale() {
		return errMeanwhile
	}
	var choice *store.Choice
	if kept := change.Kept(); kept != nil {
		choice = &store.Choice{Strategy: kept.Name, Parameters: kept.Parameters, By: kept.By, At: kept.Since, Instead: configured}
	}
	e := change.Event()
	return c.store.Together(c.ctx, func(tx *store.Store) error {
		return errors.Join(tx.SetPolicy(c.ctx, choice), tx.AddEvent(c.ctx, 0, time.Now(), e.Kind, e.Detail))
	})
}

// resize has the policy in use, a plugin, say who grows or shrinks.
func (c *Controller) resize(q core.Question) core.Resized {
	changes, err := c.strategies.Resize(q)
	c.strategyEvents()
	if err != nil {
		return core.Resized{Fault: err.Error()}
	}
	return core.Resized{Changes: changes}
}

// keptPolicy is the policy that was put in use before this process, as kept is the strategy.
func keptPolicy(st *store.Store, cfg config.Config, log *logrus.Logger) (*pluginhost.Chosen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keptTimeout)
	defer cancel()
	choice, err := st.Policy(ctx)
	if err != nil || choice == nil {
		return nil, err
	}
	if choice.Instead == cfg.Malleable.Policy {
		return &pluginhost.Chosen{Name: choice.Strategy, Parameters: choice.Parameters, By: choice.By, Since: choice.At}, nil
	}
	log.WithFields(logrus.Fields{"from": choice.Strategy, "to": cfg.Malleable.Policy}).Info("the configuration names another malleability policy than before: it is used")
	return nil, st.SetPolicy(ctx, nil)
}
