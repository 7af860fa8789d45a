package pluginhost

import (
	"context"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// Chosen is a strategy with its parameters, and who put it in use since when.
type Chosen struct {
	Name       string
	Parameters map[string]string
	By         string
	Since      time.Time
}

// byConfiguration is who put the configuration's strategy in use.
const byConfiguration = "configuration"

// is reports whether it is the same strategy with the same parameters.
func (c Chosen) is(name string, parameters map[string]string) bool {
	return c.Name == name && maps.Equal(c.Parameters, parameters)
}

// Change is another strategy, ready to be put in use: a plugin runs and has proved
// itself. Either Swap or Discard must be called, between two cycles.
type Change struct {
	manager    *Manager
	kind       string     // of the event
	next       *selection // nil: the one in use stays
	configured *Chosen    // by the configuration from now on; nil: as before
	of         *selection // that it is a change of; nil: of any
	forgive    bool
}

// Stale tells that what it is a change of is not in use any more.
func (c *Change) Stale() bool {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	return c.of != nil && c.of != c.manager.current
}

// Kept is what is in use after the change beside the configuration; nil: what the
// configuration has.
func (c *Change) Kept() *Chosen {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	s, configured := c.next, m.configured
	if s == nil {
		s = m.current
	}
	if c.configured != nil {
		configured = *c.configured
	}
	if s == nil || configured.is(s.name, s.given) {
		return nil
	}
	return &Chosen{Name: s.name, Parameters: s.given, By: s.by, Since: s.since}
}

// Event is what the event log is to say; nil: nothing.
func (c *Change) Event() *Event {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.next == nil || m.current == nil {
		return nil
	}
	old, s := m.current, c.next
	return &Event{c.kind, map[string]any{"from": old.name, "from_parameters": old.given, "from_version": old.version,
		"to": s.name, "to_parameters": s.given, "to_version": s.version, "by": s.by}}
}

// Swap puts it in use and ends the process of the one before.
func (c *Change) Swap() {
	m, s := c.manager, c.next
	m.mu.Lock()
	old := m.current
	if old == nil { // closed meanwhile
		m.mu.Unlock()
		c.Discard()
		return
	}
	if c.configured != nil {
		m.configured = *c.configured
	}
	if s == nil {
		m.mu.Unlock()
		return
	}
	if c.forgive {
		m.record(s.name).forgive()
	}
	old.ended = true
	p := old.process
	old.process = nil
	m.current = s
	m.mu.Unlock()
	m.log.WithFields(logrus.Fields{"from": old.name, "to": s.name, "parameters": s.given, "by": s.by}).Info(c.kind)
	if p != nil {
		m.work.Go(p.end)
	}
}

// Discard gives it up.
func (c *Change) Discard() {
	if c.next != nil && c.next.process != nil {
		c.next.process.end()
	}
}

// Configure takes another configuration: the limits from the next start of a
// plugin on, and the strategy that it names, if that or its parameters are others
// than in the configuration before.
func (m *Manager) Configure(ctx context.Context, cfg config.Strategies, name string) (*Change, error) {
	values, err := cfg.Values()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	old, before := m.cfg, m.configured
	m.cfg = cfg
	m.mu.Unlock()
	if err := m.rescan(); err != nil {
		m.log.WithError(err).Error("strategies.dir is not used")
	}
	if before.is(name, values) {
		return &Change{manager: m}, nil
	}
	configured := Chosen{Name: name, Parameters: values, By: byConfiguration}
	s, err := m.sure(ctx, configured)
	if err != nil {
		m.mu.Lock()
		m.cfg = old
		m.mu.Unlock()
		return nil, err
	}
	return &Change{manager: m, kind: "strategy", next: s, configured: &configured}, nil
}

// Use prepares a strategy for use: a plugin is started and tried. Nothing has
// changed if it fails. The name api.Configured stands for what the configuration
// has.
func (m *Manager) Use(ctx context.Context, name string, parameters map[string]string, by string) (*Change, error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	if name == api.Configured {
		m.mu.Lock()
		name, parameters = m.configured.Name, m.configured.Parameters
		m.mu.Unlock()
	}
	s, err := m.prepare(ctx, name, parameters)
	if err != nil {
		return nil, err
	}
	s.by = by
	return &Change{manager: m, kind: "strategy", next: s, forgive: true}, nil
}

// Reload looks for plugins again, forgives all faults and starts the plugin in use
// anew, so that an upgraded executable takes over: the old process plans until the
// new one has proved itself. On an error the old one goes on.
func (m *Manager) Reload(ctx context.Context, by string) (*Change, error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	for _, r := range m.records {
		r.forgive()
	}
	old := m.current
	m.mu.Unlock()
	m.work.Go(m.look)
	if old.builtin != nil {
		if _, ok := m.file(old.name); !ok {
			return &Change{manager: m}, nil
		}
	}
	s, err := m.prepare(ctx, old.name, old.given)
	if err != nil {
		return nil, err
	}
	s.by = by
	return &Change{manager: m, kind: "strategy reloaded", next: s, of: old}, nil
}
