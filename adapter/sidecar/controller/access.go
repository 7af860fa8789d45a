package controller

import (
	"context"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// Settings implements api.Backend.
func (c *Controller) Settings(ctx context.Context) (api.Settings, error) {
	return c.shown(ctx, config.Settable())
}

// shown returns settings as they count now, with warnings about their names.
func (c *Controller) shown(ctx context.Context, keys []string) (api.Settings, error) {
	all, err := c.store.Settings(ctx)
	if err != nil {
		return api.Settings{}, err
	}
	file, now := c.settings.current()
	shown := api.Settings{Settings: []api.Setting{}, Warnings: c.doubts(ctx, now, keys)}
	for _, key := range keys {
		one := api.Setting{Key: key, Value: now.Text(key), Configured: file.Text(key)}
		for _, set := range all {
			if set.Key == key {
				one.By, one.At = set.By, set.At
			}
		}
		shown.Settings = append(shown.Settings, one)
	}
	return shown, nil
}

// ChangeSettings implements api.Backend.
func (c *Controller) ChangeSettings(ctx context.Context, r api.SettingsRequest, caller string) (api.Settings, error) {
	keys := slices.Concat(slices.Collect(maps.Keys(r.Set)), slices.Collect(maps.Keys(r.Add)), slices.Collect(maps.Keys(r.Remove)), r.Configured)
	slices.Sort(keys)
	if len(keys) == 0 {
		return api.Settings{}, api.Errorf(api.ErrInvalid, "nothing to change: name a setting")
	}
	keys = slices.Compact(keys)
	for _, key := range keys {
		if !slices.Contains(config.Settable(), key) {
			_, err := config.Default().With(key, "")
			return api.Settings{}, api.Errorf(api.ErrInvalid, "%v", err)
		}
	}
	if err := c.change(ctx, caller, func(now, configured config.Config) (map[string]string, error) { return wanted(r, now, configured) }); err != nil {
		return api.Settings{}, err
	}
	return c.shown(ctx, keys)
}

// budgetFor is how long a budget counts as current: users ask for it, and it takes time of the loop.
const budgetFor = time.Second

// Budget implements api.Backend.
func (c *Controller) Budget(ctx context.Context) (api.Budget, error) {
	b, err := c.budget.of(ctx, budgetFor, func(ctx context.Context) (b api.Budget, err error) {
		if !c.onLoop(ctx, func() { b = c.core.Budget() }) {
			err = errNotRunning
		}
		return b, err
	})
	if err != nil {
		return b, err
	}
	limits, err := c.shown(ctx, config.BudgetKeys())
	b.Limits = limits.Settings
	return b, err
}

// Power implements api.Backend.
func (c *Controller) Power(ctx context.Context) (p api.Power, err error) {
	if !c.onLoop(ctx, func() { p = c.core.Power() }) {
		err = errNotRunning
	}
	return p, err
}

// PowerHistory implements api.Backend.
func (c *Controller) PowerHistory(ctx context.Context) (h api.PowerHistory, err error) {
	if !c.onLoop(ctx, func() { h = c.core.PowerHistory() }) {
		err = errNotRunning
	}
	return h, err
}

// wanted returns the texts of the settings that a request asks for.
func wanted(r api.SettingsRequest, now, configured config.Config) (map[string]string, error) {
	texts := map[string]string{}
	for _, key := range r.Configured {
		texts[key] = configured.Text(key)
	}
	maps.Copy(texts, r.Set)
	for _, change := range []struct {
		lists map[string][]string
		apply func(list, names []string) []string
	}{{r.Add, func(list, names []string) []string { return append(list, without(names, list)...) }}, {r.Remove, without}} {
		for key, names := range change.lists {
			if !now.IsList(key) {
				return nil, api.Errorf(api.ErrInvalid, "%s is no list: set its value", key)
			}
			text, set := texts[key]
			if !set {
				text = now.Text(key)
			}
			texts[key] = strings.Join(change.apply(config.ListOf(text), names), ",")
		}
	}
	return texts, nil
}

// without returns a list without some names.
func without(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}

// mostAsked is how many names a question for access may have: each is compared with the lists.
const mostAsked = 100

// Access implements api.Backend.
func (c *Controller) Access(_ context.Context, uid uint32, q api.AccessQuery) (api.Access, error) {
	_, now := c.settings.current()
	if strings.Count(q.Account+q.QOS+q.Partition, ",") >= mostAsked {
		return api.Access{}, api.Errorf(api.ErrInvalid, "too many accounts, QOS, and partitions; want %d at most", mostAsked)
	}
	job := config.Names{Accounts: config.ListOf(q.Account), QOS: config.ListOf(q.QOS), Partitions: config.ListOf(q.Partition)}
	who, err := c.slurm.LookupUser(uid)
	if err == nil {
		job.Users = []string{who.Name}
		if groups := now.AccessGroups(); len(groups) > 0 {
			if in, err := c.slurm.InGroups(who, groups); err == nil {
				job.Groups = append([]string{}, in...)
			}
		}
	}
	a := api.Access{Allowed: true, Unchecked: append([]string{}, now.Unchecked(job)...)}
	if err := now.MayEvolve(job); err != nil {
		a.Allowed, a.Reason = false, err.Error()
	}
	return a, nil
}

// doubts returns a warning for each name in the lists that does not exist, as far as that is known. A name may be
// created later, so it is no error.
func (c *Controller) doubts(ctx context.Context, cfg config.Config, keys []string) []string {
	warnings := []string{}
	known := map[string]func(name string) bool{ // by kind
		"users":  func(name string) bool { _, err := user.Lookup(name); return err == nil },
		"groups": func(name string) bool { _, err := user.LookupGroup(name); return err == nil },
	}
	slurm := map[string]func(context.Context) ([]string, error){"accounts": c.slurm.AccountNames, "qos": c.slurm.QOSNames, "partitions": c.slurm.PartitionNames}
	for _, key := range keys {
		list, kind, _ := strings.Cut(key, ".")
		names := config.ListOf(cfg.Text(key))
		if list != "allow" && list != "deny" || len(names) == 0 {
			continue
		}
		if ask := slurm[kind]; ask != nil {
			all, err := ask(ctx)
			if err != nil || len(all) == 0 {
				continue // without slurmdbd there are no accounts
			}
			known[kind] = func(name string) bool {
				return slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, name) })
			}
		}
		for _, name := range names {
			if ctx.Err() == nil && !known[kind](name) {
				warnings = append(warnings, fmt.Sprintf("%s names %q, which does not exist", key, name))
			}
			if list == "allow" && slices.Contains(cfg.Deny.Of(kind), name) {
				warnings = append(warnings, fmt.Sprintf("deny.%s names %q, too, and wins", kind, name))
			}
		}
	}
	return warnings
}

// warnOfNames logs doubts about the configuration's names, beside the loop.
func (c *Controller) warnOfNames(cfg config.Config) {
	c.all.Go(func() {
		ctx, cancel := context.WithTimeout(c.pollCtx, keptTimeout)
		defer cancel()
		for _, text := range c.doubts(ctx, cfg, config.Settable()) {
			c.log.Warn(text)
		}
	})
}
