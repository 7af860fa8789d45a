package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/builtin"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// purpose is a use of strategies: planning, or resizing malleable jobs.
type purpose struct {
	kind     string // in events and messages
	option   string // of the configuration
	fallback string // the name of what stands in for a plugin that fails
	does     string // what it does then
	// Names of fields of events: of the strategy, and of what stands in for it.
	field, instead string

	can      func(sdk.Description) error // why a plugin is not fit for it
	build    func(*selection) error      // makes what is built in of the selection's name
	builtins func() []api.Strategy
	all      bool // the list has plugins that are not fit for it as well
}

// planning makes plans, by strategies in the narrow sense.
var planning = purpose{kind: "strategy", option: "strategy", fallback: fallback.Name(), does: "plans", field: "strategy", instead: "planned_by", all: true,
	can: func(d sdk.Description) error {
		if !d.Plans {
			return sdk.ErrNoPlan
		}
		return nil
	},
	// One with a definition, or a member of the paper's family by its own name.
	build: func(s *selection) error {
		d, ok := builtin.Find(s.Name)
		if !ok {
			st, err := planner.StrategyByName(s.Name)
			if err != nil {
				return fmt.Errorf("there is no strategy %q; evosctl strategy list shows the strategies", sdk.Clean(s.Name, 63))
			}
			d = sdk.Definition{Name: s.Name, New: func(sdk.Values) (planner.Strategy, error) { return st, nil }}
		}
		values, err := d.Values(s.Parameters)
		if err != nil {
			return err
		}
		s.values, s.version = values, d.Version
		s.builtin, err = d.New(values)
		return err
	},
	builtins: func() (all []api.Strategy) {
		for _, d := range builtin.All() {
			all = append(all, api.Strategy{Name: d.Name, Version: d.Version, Help: d.Help, Parameters: parameters(d)})
		}
		for _, name := range planner.PaperStrategies() {
			all = append(all, api.Strategy{Name: name, Help: paperHelp[name]})
		}
		return all
	},
}

// resizing decides which malleable jobs change size, by malleability policies.
var resizing = purpose{kind: "malleability policy", option: "malleable.policy", fallback: msg.FallbackPolicy.Name(), does: "decides", field: "policy", instead: "instead",
	can: func(d sdk.Description) error {
		if !d.Resizes {
			return sdk.ErrNoResize
		}
		return nil
	},
	build: func(s *selection) (err error) {
		if s.policy, err = malleable.PolicyByName(s.Name); err != nil {
			return fmt.Errorf("there is no malleability policy %q; evosctl strategy policies shows the policies", sdk.Clean(s.Name, 63))
		}
		if len(s.Parameters) > 0 {
			return fmt.Errorf("policy %s has no parameters", s.Name)
		}
		return nil
	},
	builtins: func() (all []api.Strategy) {
		for _, name := range malleable.Policies() {
			all = append(all, api.Strategy{Name: name, Help: malleable.Help(name)})
		}
		return all
	},
}

// Slot holds the strategy in use for one purpose, and the record of strategies there.
type Slot struct {
	*purpose
	m *Manager

	// Under the manager's mutex:
	current    *selection
	configured Chosen // by the configuration
	records    map[string]*record
}

func newSlot(m *Manager, p *purpose) *Slot {
	return &Slot{purpose: p, m: m, records: map[string]*record{}}
}

// selection is a strategy with its parameters.
type selection struct {
	Chosen
	slot    *Slot
	values  sdk.Values
	builtin planner.Strategy // planning; nil: a plugin
	policy  malleable.Policy // resizing; nil: a plugin
	file    file             // of the plugin
	process *process         // nil: not at present
	version string
	ours    bool // a restart is under way
	ended   bool // it is no longer in use
}

// plugin reports whether it is a process of its own.
func (s *selection) plugin() bool { return s.builtin == nil && s.policy == nil }

// prepare makes a selection: a plugin of that name, which is started and tried, else what is built in.
func (u *Slot) prepare(ctx context.Context, c Chosen) (*selection, error) {
	s := &selection{Chosen: c, slot: u}
	s.Parameters = maps.Clone(c.Parameters)
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	f, ok := u.m.file(c.Name)
	if !ok {
		if err := u.build(s); err != nil {
			return nil, err
		}
		return s, nil
	}
	s.file = f
	p, err := u.start(ctx, f, c.Parameters)
	if err != nil {
		return nil, err
	}
	s.process, s.values, s.version = p, p.values, p.description.Version
	return s, nil
}

// sure prepares a selection, even if it has no process for now.
func (u *Slot) sure(ctx context.Context, c Chosen) (*selection, error) {
	s, err := u.prepare(ctx, c)
	if err == nil {
		return s, nil
	}
	f, ok := u.m.file(c.Name)
	if !ok {
		return nil, err
	}
	s = &selection{Chosen: c, slot: u, file: f}
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	s.fault(err)
	return s, nil
}

// start starts a plugin that is fit for the purpose.
func (u *Slot) start(ctx context.Context, f file, given map[string]string) (*process, error) {
	p, err := u.m.startPlugin(ctx, f, given)
	if err != nil {
		return nil, err
	}
	if err := u.can(p.description); err != nil {
		p.end()
		return nil, fmt.Errorf("strategy %s: %w", f.name, err)
	}
	return p, nil
}

// Take takes the first one in use: the one that was put in use before (kept), if there is one, else the
// configuration's. An error is a name or a parameter in the configuration that does not exist; a plugin that
// does not start at present is a fault.
func (u *Slot) Take(name string, parameters map[string]string, kept *Chosen) error {
	u.configured = Chosen{Name: name, Parameters: parameters, By: byConfiguration}
	if kept != nil {
		detail := map[string]any{u.field: kept.Name, "parameters": kept.Parameters, "by": kept.By, "since": kept.Since, "configured": name}
		s, err := u.sure(u.m.ctx, *kept)
		if err == nil {
			u.current = s
			u.m.event(u.kind+" kept", detail)
			u.m.log.WithFields(logrus.Fields{u.field: kept.Name, "parameters": kept.Parameters, "by": kept.By}).Infof("the %s that was put in use is kept; the configuration has %s", u.kind, name)
			return nil
		}
		detail["error"] = err.Error()
		u.m.event(u.kind+" not kept", detail)
		u.m.log.WithError(err).Errorf("the %s that was put in use is not available, the configured %s %s", u.kind, name, u.does)
	}
	s, err := u.sure(u.m.ctx, u.configured)
	if err != nil {
		return err
	}
	u.current = s
	return nil
}

// Name returns the name of the one in use.
func (u *Slot) Name() string {
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	return u.current.Name
}

// InUse returns the name and the parameters of the one in use.
func (u *Slot) InUse() (name string, parameters map[string]string) {
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	return u.current.Name, maps.Clone(u.current.Parameters)
}

// Plugin reports whether the one in use is a plugin.
func (u *Slot) Plugin() bool {
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	return u.current.plugin()
}

// ready looks after the plugin of a selection before it is asked: one that has rested enough is started again,
// and one that has ended is a fault. missing says why there is no process; nil: there is one. detail is of a fault, in the event log.
// The mutex is held.
func (s *selection) ready(between string) (detail map[string]any, missing error) {
	m, r := s.slot.m, s.slot.record(s.Name)
	if r.aside && time.Now().After(r.until) {
		r.aside = false // one more fault, and it rests for longer
		m.restart(s)
	}
	if s.process != nil && s.process.exited() {
		detail = s.fault(s.process.explain(fmt.Errorf("%w between two %s", sdk.ErrBroken, between)))
	}
	switch {
	case s.process != nil:
	case r.aside:
		missing = fmt.Errorf("it is put aside until %s", r.until.Format(time.TimeOnly))
	default:
		missing = errors.New("it is being started")
	}
	return detail, missing
}

// Resize asks the policy in use, which is a plugin. An error says why the core's default has to answer in its
// place: the plugin has failed, was too late, has answered what cannot be, or there is none at present.
func (m *Manager) Resize(q msg.Question) ([]malleable.Change, error) {
	m.mu.Lock()
	s := m.Resizing.current
	timeout, record := m.cfg.Timeout, m.Resizing.record(s.Name)
	var err error
	if s.plugin() {
		_, err = s.ready("questions")
	}
	process := s.process
	m.mu.Unlock()
	var changes []malleable.Change
	began := time.Now()
	switch {
	case s.policy != nil: // it was swapped meanwhile
		changes = s.policy.Apply(q.Jobs, q.Asked, malleable.Declared)
	case process != nil:
		ctx, cancel := context.WithTimeout(m.ctx, timeout)
		defer cancel()
		r := sdk.ResizeRequest{Asked: q.Asked, Jobs: q.Jobs, Nodes: q.Nodes, Now: q.Now, Free: q.Free, Waiting: q.Waiting}
		if changes, err = process.client.Resize(ctx, process.values, r); err != nil {
			err = process.explain(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		record.plans++
		record.inARow, record.rest, record.seconds = 0, 0, time.Since(began).Seconds()
		return changes, nil
	}
	record.fallen++
	if process != nil && s.process == process { // else it was swapped or has failed meanwhile
		s.fault(err)
	}
	return nil, err
}

// List returns all strategies for the purpose: plugins, then those built in of other names.
func (u *Slot) List() []api.Strategy {
	m := u.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.Strategy
	seen := map[string]bool{}
	for _, f := range m.files {
		s := api.Strategy{Name: f.name, Kind: "plugin", State: "ready"}
		d, known := m.known[f.name]
		unfit := u.can(d)
		if !u.all && (!known || unfit != nil) {
			continue
		}
		switch why := f.refused + m.trouble[f.name]; {
		case f.refused != "", !known && why != "":
			s.State, s.Reason = "refused", why
		case !known:
			s.State = "starting"
		case unfit != nil:
			s.State, s.Reason = "policy", unfit.Error()
		}
		s.Version, s.Help, s.Parameters = d.Version, d.Help, parameters(d.Definition)
		seen[f.name] = seen[f.name] || f.refused == ""
		all = append(all, u.withRecord(s))
	}
	more := append(u.builtins(), api.Strategy{Name: u.current.Name}) // 1.5X, say, or a plugin whose file is gone
	for _, s := range more {
		if seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		s.Kind, s.State = "built in", "ready"
		s.Parameters = slices.Concat([]api.StrategyParameter{}, s.Parameters)
		all = append(all, u.withRecord(s))
	}
	return all
}

// withRecord adds what is known of a strategy's use; the mutex is held.
func (u *Slot) withRecord(s api.Strategy) api.Strategy {
	if r := u.records[s.Name]; r != nil {
		s.Plans, s.Faults, s.Fallen, s.LastFault, s.FaultAt, s.Seconds = r.plans, r.faults, r.fallen, r.last, r.lastAt, r.seconds
		s.Won = maps.Clone(r.won)
		if r.aside {
			s.State, s.Reason = "put aside", "until "+r.until.Format("15:04:05")+", after faults in a row"
		}
	}
	c := u.current
	if c.Name != s.Name {
		return s
	}
	s.InUse, s.By, s.Since = true, c.By, c.Since
	if !u.configured.is(c.Name, c.Parameters) {
		s.Instead = u.configured.Name
	}
	if c.plugin() {
		s.Kind = "plugin"
	}
	if s.State != "put aside" {
		s.State, s.Reason = "in use", ""
		if c.plugin() && c.process == nil {
			s.State = "starting"
		}
	}
	if p := c.process; p != nil {
		s.SHA256, s.Protocol, s.Version = p.sum, p.client.Version(), p.description.Version
		s.Help, s.Parameters = p.description.Help, parameters(p.description.Definition)
	}
	for i, p := range s.Parameters {
		if v, ok := c.values[p.Name]; ok {
			s.Parameters[i].Value = v
		}
	}
	return s
}

// Note says why the built-in default stands in at present though another strategy is in use; "" if it does not.
func (u *Slot) Note() string {
	u.m.mu.Lock()
	defer u.m.mu.Unlock()
	c := u.current
	if !c.plugin() || c.process != nil {
		return ""
	}
	r := u.record(c.Name)
	if r.aside {
		return u.fallback + " " + u.does + " in its place until " + r.until.Format(time.TimeOnly) + ": " + r.last
	}
	return u.fallback + " " + u.does + " until it has started: " + r.last
}
