package pluginhost

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// Chosen is a strategy with its parameters, and who put it in use when.
type Chosen struct {
	Name       string
	Parameters map[string]string
	By         string
	Since      time.Time
}

// byConfiguration names the configuration as the one who put a strategy in use.
const byConfiguration = "configuration"

// is reports whether it is the same strategy with the same parameters.
func (c Chosen) is(name string, parameters map[string]string) bool {
	return c.Name == name && maps.Equal(c.Parameters, parameters)
}

// Change is another strategy, ready for use: a plugin is running and has proved itself. Call either
// Swap or Discard, between two cycles.
type Change struct {
	*Slot
	event      string     // its kind
	next       *selection // nil: the one in use stays
	configured *Chosen    // by the configuration from now on; nil: as before
	of         *selection // the selection that it changes; nil for any
	forgive    bool
}

// Kind says what for: "strategy" or "malleability policy".
func (c *Change) Kind() string { return c.kind }

// Stale tells that what it is a change of is not in use any more.
func (c *Change) Stale() bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.of != nil && c.of != c.current
}

// Kept returns what is in use after the change apart from the configuration, or nil for the
// configuration's.
func (c *Change) Kept() *Chosen {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	s, configured := c.next, c.Slot.configured
	if s == nil {
		s = c.current
	}
	if c.configured != nil {
		configured = *c.configured
	}
	if configured.is(s.Name, s.Parameters) {
		return nil
	}
	kept := s.Chosen
	return &kept
}

// Event returns the entry for the event log, or nil.
func (c *Change) Event() *Event {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.next == nil || c.m.ctx.Err() != nil {
		return nil
	}
	old, s := c.current, c.next
	return &Event{c.event, map[string]any{"from": old.Name, "from_parameters": old.Parameters, "from_version": old.version,
		"to": s.Name, "to_parameters": s.Parameters, "to_version": s.version, "by": s.By}}
}

// Swap puts it in use and ends the process of the one before.
func (c *Change) Swap() {
	m, s := c.m, c.next
	m.mu.Lock()
	if m.ctx.Err() != nil { // closed meanwhile
		m.mu.Unlock()
		c.Discard()
		return
	}
	defer m.mu.Unlock()
	if c.configured != nil {
		c.Slot.configured = *c.configured
	}
	if s == nil {
		return
	}
	if c.forgive {
		c.record(s.Name).forgive()
	}
	old := c.current
	c.current = s
	m.log.WithFields(logrus.Fields{"from": old.Name, "to": s.Name, "parameters": s.Parameters, "by": s.By}).Info(c.event)
	if p := old.retire(); p != nil {
		m.work.Go(p.end)
	}
}

// retire takes a selection out of use. The caller must end what it returns. The mutex is held.
func (s *selection) retire() *process {
	p := s.process
	s.process, s.ended = nil, true
	return p
}

// Discard gives it up.
func (c *Change) Discard() {
	if c.next == nil {
		return
	}
	c.m.mu.Lock()
	p := c.next.retire()
	c.m.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// Configure takes another configuration: the limits from the next start of a
// plugin on, and what it names to be in use, if that or its parameters are others
// than in the configuration before. It prepares a change for each purpose, or none.
func (m *Manager) Configure(ctx context.Context, cfg config.Strategies, strategy, policy string) (changes []*Change, err error) {
	values, err := cfg.Values()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Planning.option, err)
	}
	m.mu.Lock()
	old := m.cfg
	m.cfg = cfg
	m.mu.Unlock()
	if err := m.rescan(); err != nil {
		m.log.WithError(err).Error("strategies.dir is not used")
	}
	named := []Chosen{{Name: strategy, Parameters: values}, {Name: policy}}
	for i, u := range m.slots() {
		change, err := u.configure(ctx, named[i])
		if err != nil {
			discard(changes)
			m.mu.Lock()
			m.cfg = old
			m.mu.Unlock()
			return nil, fmt.Errorf("%s: %w", u.option, err)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func discard(changes []*Change) {
	for _, c := range changes {
		c.Discard()
	}
}

func (u *Slot) configure(ctx context.Context, c Chosen) (*Change, error) {
	u.m.mu.Lock()
	same := u.configured.is(c.Name, c.Parameters)
	u.m.mu.Unlock()
	if same {
		return &Change{Slot: u}, nil
	}
	c.By = byConfiguration
	s, err := u.sure(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Change{Slot: u, event: u.kind, next: s, configured: &c}, nil
}

// Use prepares a strategy for use: a plugin is started and tried. Nothing has
// changed if it fails. The name api.Configured stands for what the configuration
// has.
func (u *Slot) Use(ctx context.Context, name string, parameters map[string]string, by string) (*Change, error) {
	if err := u.m.rescan(); err != nil {
		return nil, err
	}
	if name == api.Configured {
		u.m.mu.Lock()
		name, parameters = u.configured.Name, u.configured.Parameters
		u.m.mu.Unlock()
	}
	s, err := u.prepare(ctx, Chosen{Name: name, Parameters: parameters, By: by})
	if err != nil {
		return nil, err
	}
	return &Change{Slot: u, event: u.kind, next: s, forgive: true}, nil
}

// Reload looks for plugins again, forgives all faults, and restarts the plugins in use, so that an
// upgraded executable takes over. The old processes answer until the new ones have proved themselves.
// On an error, the old ones go on.
func (m *Manager) Reload(ctx context.Context, by string) (changes []*Change, err error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	for _, u := range m.slots() {
		for _, r := range u.records {
			r.forgive()
		}
	}
	m.mu.Unlock()
	m.work.Go(m.look)
	for _, u := range m.slots() {
		c, err := u.reload(ctx, by)
		if err != nil {
			discard(changes)
			return nil, fmt.Errorf("%w; the %s in use goes on as before", err, u.kind)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (u *Slot) reload(ctx context.Context, by string) (*Change, error) {
	u.m.mu.Lock()
	old := u.current
	u.m.mu.Unlock()
	if _, ok := u.m.file(old.Name); !ok && !old.plugin() {
		return &Change{Slot: u}, nil
	}
	s, err := u.prepare(ctx, Chosen{Name: old.Name, Parameters: old.Parameters, By: by})
	if err != nil {
		return nil, err
	}
	return &Change{Slot: u, event: u.kind + " reloaded", next: s, of: old}, nil
}
