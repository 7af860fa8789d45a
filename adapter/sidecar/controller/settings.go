package controller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// settings holds what operators have set at run time in place of the configuration's values, by its
// keys ([config.Settable]). A setting is kept in the database until an operator takes it back, or until
// the configuration's own value changes.
type settings struct {
	store *store.Store
	mu    sync.Mutex
	file  config.Config // the administrator's
	now   config.Config // with the settings
}

// current returns the administrator's configuration, and what counts now.
func (s *settings) current() (file, now config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file, s.now
}

// lay returns the administrator's configuration with the settings over it. Settings that the
// configuration has overtaken are dropped first.
func (s *settings) lay(ctx context.Context, cfg config.Config, log *logrus.Logger) (config.Config, error) {
	stored, err := s.store.Settings(ctx)
	if err != nil {
		return cfg, err
	}
	with, lapsed := cfg, []store.Setting(nil)
	for _, set := range stored {
		if !slices.Contains(config.Settable(), set.Key) {
			continue // a strategy, or of another release
		}
		next, err := with.With(set.Key, textOf(set))
		if err != nil || set.Instead != cfg.Text(set.Key) {
			lapsed = append(lapsed, set)
			continue
		}
		with = next
	}
	for _, set := range lapsed {
		if err := s.store.Together(ctx, func(tx *store.Store) error {
			return errors.Join(tx.SetSetting(ctx, store.Setting{Key: set.Key}), tx.AddEvent(ctx, 0, time.Now(), "setting",
				changed(set.Key, textOf(set), cfg.Text(set.Key), "configuration")))
		}); err != nil {
			return cfg, err
		}
		log.WithFields(logrus.Fields{"key": set.Key, "from": textOf(set), "to": cfg.Text(set.Key)}).Info("the configuration's value changed: it replaces the operator's setting")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file, s.now = cfg, with
	return with, nil
}

// textOf returns a setting's value as config.With reads it.
func textOf(set store.Setting) (text string) {
	_ = json.Unmarshal(set.Value, &text) // "" is refused or right
	return text
}

// mostShown bounds a value in the event log, in characters.
const mostShown = 500

func changed(key, from, to, by string) map[string]string {
	return map[string]string{"key": key, "from": legible.Cut(from, mostShown, "…"), "to": legible.Cut(to, mostShown, "…"), "by": by}
}

// change changes settings between two cycles: first in the database, so that they outlive the sidecar, then
// in the core. decide returns new texts by key from the present configuration with its settings, and from
// the administrator's; a text equal to the administrator's takes a setting back. Nothing changes unless all can.
func (c *Controller) change(ctx context.Context, caller string, decide func(now, configured config.Config) (map[string]string, error)) (err error) {
	if !c.onLoop(ctx, func() { err = c.settle(caller, decide) }) {
		return errNotRunning
	}
	if err == nil {
		c.share(ctx)
	}
	return err
}

func (c *Controller) settle(caller string, decide func(now, configured config.Config) (map[string]string, error)) error {
	now, err := c.settings.lay(c.ctx, c.cfg, c.log)
	if err != nil {
		return err
	}
	texts, err := decide(now, c.cfg)
	if err != nil {
		return err
	}
	with, at := now, time.Now().Truncate(time.Second)
	for key, text := range texts {
		if with, err = with.With(key, text); err != nil {
			return api.Errorf(api.ErrInvalid, "%v", err)
		}
	}
	if err := c.store.Together(c.ctx, func(tx *store.Store) error {
		var errs []error
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			set, from, to := store.Setting{Key: key}, now.Text(key), with.Text(key)
			if from == to {
				continue
			}
			if configured := c.cfg.Text(key); to != configured {
				value, err := json.Marshal(to)
				errs = append(errs, err)
				set = store.Setting{Key: key, Value: value, By: caller, At: at, Instead: configured}
			}
			errs = append(errs, tx.SetSetting(c.ctx, set), tx.AddEvent(c.ctx, 0, time.Now(), "setting", changed(key, from, to, caller)))
		}
		return errors.Join(errs...)
	}); err != nil {
		return err
	}
	if with, err = c.settings.lay(c.ctx, c.cfg, c.log); err != nil {
		return err
	}
	c.step(msg.Configuration{Config: &with, Strategy: c.strategy()})
	return nil
}
