package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/planner/malleable"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// policy is a malleability policy in use.
type policy struct {
	Chosen
	builtin malleable.Policy // nil: a plugin
	file    file
	process *process // nil: not at present
	ours    bool     // a start is under way
	ended   bool     // it is no longer in use
}

// preparePolicy makes one ready: a plugin that resizes jobs is started and tried.
func (m *Manager) preparePolicy(ctx context.Context, c Chosen) (*policy, error) {
	p := &policy{Chosen: c}
	if p.Since.IsZero() {
		p.Since = time.Now()
	}
	f, ok := m.file(c.Name)
	if !ok {
		var err error
		if p.builtin, err = malleable.PolicyByName(c.Name); err != nil {
			return nil, fmt.Errorf("there is no malleability policy %q; evosctl strategy policies tells which there are", sdk.Clean(c.Name, 63))
		}
		if len(c.Parameters) > 0 {
			return nil, fmt.Errorf("policy %s has no parameters", c.Name)
		}
		return p, nil
	}
	p.file = f
	process, err := m.startPolicy(ctx, f, c.Parameters)
	if err != nil {
		return nil, err
	}
	p.process = process
	return p, nil
}

func (m *Manager) startPolicy(ctx context.Context, f file, given map[string]string) (*process, error) {
	p, err := m.startPlugin(ctx, f, given)
	if err == nil && !p.description.Resizes {
		p.end()
		return nil, fmt.Errorf("strategy %s: %w", f.name, sdk.ErrNoResize)
	}
	return p, err
}

// BeginPolicy takes the first malleability policy in use: the one that was put in use before
// (kept), if there is one, else the configuration's. A plugin that does not start now is a
// fault. The error is a name that does not exist.
func (m *Manager) BeginPolicy(name string, kept *Chosen) error {
	m.configuredPolicy = Chosen{Name: name, By: byConfiguration}
	if kept != nil {
		p, err := m.surePolicy(*kept)
		if err == nil {
			m.policy = p
			return nil
		}
		m.log.WithError(err).Errorf("the malleability policy that was put in use is not available, the configured %s is used", name)
	}
	p, err := m.surePolicy(m.configuredPolicy)
	m.policy = p
	return err
}

// surePolicy prepares one, even if it has no process for now.
func (m *Manager) surePolicy(c Chosen) (*policy, error) {
	p, err := m.preparePolicy(m.ctx, c)
	if err == nil {
		return p, nil
	}
	f, ok := m.file(c.Name)
	if !ok {
		return nil, err
	}
	p = &policy{Chosen: c, file: f}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.policyFault(p, err)
	return p, nil
}

// PolicyChange is another policy, ready to be put in use. Either Swap or Discard must be called.
type PolicyChange struct {
	manager    *Manager
	next       *policy
	configured *Chosen // by the configuration from now on; nil: as before
	of         *policy // that it is a change of; nil: of any
}

// Stale tells that what it is a change of is not in use any more.
func (c *PolicyChange) Stale() bool {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	return c.of != nil && c.of != c.manager.policy
}

// UsePolicy prepares a policy for use, as Use does a strategy.
func (m *Manager) UsePolicy(ctx context.Context, name string, parameters map[string]string, by string) (*PolicyChange, error) {
	if err := m.rescan(); err != nil {
		return nil, err
	}
	if name == api.Configured {
		m.mu.Lock()
		name, parameters = m.configuredPolicy.Name, nil
		m.mu.Unlock()
	}
	p, err := m.preparePolicy(ctx, Chosen{Name: name, Parameters: parameters, By: by})
	if err != nil {
		return nil, err
	}
	return &PolicyChange{manager: m, next: p}, nil
}

// ReloadPolicy starts the plugin in use anew, so that an upgraded executable takes over; nil: it is none.
func (m *Manager) ReloadPolicy(ctx context.Context) (*PolicyChange, error) {
	m.mu.Lock()
	old := m.policy
	m.mu.Unlock()
	if _, ok := m.file(old.Name); !ok {
		return nil, nil
	}
	p, err := m.preparePolicy(ctx, old.Chosen)
	if err != nil {
		return nil, err
	}
	return &PolicyChange{manager: m, next: p, of: old}, nil
}

// ConfigurePolicy takes another configuration; nil: it names the same policy as before.
func (m *Manager) ConfigurePolicy(name string) (*PolicyChange, error) {
	m.mu.Lock()
	same := m.configuredPolicy.Name == name
	m.mu.Unlock()
	if same {
		return nil, nil
	}
	c := Chosen{Name: name, By: byConfiguration}
	p, err := m.surePolicy(c)
	if err != nil {
		return nil, err
	}
	return &PolicyChange{manager: m, next: p, configured: &c}, nil
}

// Kept is what is in use after the change beside the configuration; nil: what that has.
func (c *PolicyChange) Kept() *Chosen {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	if configured := c.manager.configuredPolicy; c.configured != nil || configured.is(c.next.Name, c.next.Parameters) {
		return nil
	}
	kept := c.next.Chosen
	return &kept
}

// Event is what the event log is to say.
func (c *PolicyChange) Event() Event {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	from := ""
	if old := c.manager.policy; old != nil {
		from = old.Name
	}
	kind := "malleability policy"
	if c.of != nil {
		kind += " reloaded"
	}
	return Event{kind, map[string]any{"from": from, "to": c.next.Name, "to_parameters": c.next.Parameters, "by": c.next.By}}
}

// Swap puts it in use and ends the process of the one before.
func (c *PolicyChange) Swap() {
	m := c.manager
	if m.ctx.Err() != nil { // closed meanwhile
		c.Discard()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.configured != nil {
		m.configuredPolicy = *c.configured
	}
	m.record(policyRecord(c.next.Name)).forgive()
	old := m.policy
	old.ended = true
	if p := old.process; p != nil {
		old.process = nil
		m.work.Go(p.end)
	}
	m.policy = c.next
	m.log.WithFields(logrus.Fields{"to": c.next.Name, "by": c.next.By}).Info("malleability policy")
}

// Discard gives it up.
func (c *PolicyChange) Discard() {
	c.manager.mu.Lock()
	p := c.next.process
	c.next.process, c.next.ended = nil, true
	c.manager.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// policyRecord is under what name is kept how a policy has done: a plugin may be both.
func policyRecord(name string) string { return "policy " + name }

// Policy is the name of the policy in use.
func (m *Manager) Policy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy.Name
}

// PolicyPlugin reports whether the policy in use is a plugin, to be asked by Resize.
func (m *Manager) PolicyPlugin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy.builtin == nil
}

// Resize asks the policy in use, which is a plugin. An error says why the core's default has to answer in its
// place: the plugin has failed, was too late, has answered what cannot be, or there is none at present.
func (m *Manager) Resize(q core.Question) ([]malleable.Change, error) {
	m.mu.Lock()
	p, timeout, record := m.policy, m.cfg.Timeout, m.record(policyRecord(m.policy.Name))
	if p.builtin == nil && record.aside && time.Now().After(record.until) {
		record.aside = false // one more fault, and it rests for longer
		m.restartPolicy(p)
	}
	if p.process != nil && p.process.exited() {
		m.policyFault(p, p.process.explain(fmt.Errorf("%w between two questions", sdk.ErrBroken)))
	}
	process, aside, until := p.process, record.aside, record.until
	m.mu.Unlock()
	var changes []malleable.Change
	var err error
	began := time.Now()
	switch {
	case p.builtin != nil: // it was swapped meanwhile
		changes = p.builtin.Apply(q.Jobs, q.Asked, malleable.Declared)
	case process != nil:
		ctx, cancel := context.WithTimeout(m.ctx, timeout)
		defer cancel()
		r := sdk.ResizeRequest{Asked: q.Asked, Jobs: q.Jobs, Nodes: q.Nodes, Now: q.Now, Free: q.Free, Waiting: q.Waiting}
		if changes, err = process.client.Resize(ctx, process.values, r); err != nil {
			err = process.explain(err)
		}
	case aside:
		err = fmt.Errorf("it is put aside until %s", until.Format(time.TimeOnly))
	default:
		err = errors.New("it is being started")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		record.plans++
		record.inARow, record.rest, record.seconds = 0, 0, time.Since(began).Seconds()
		return changes, nil
	}
	record.fallen++
	if process != nil && p.process == process { // else it was swapped or has failed meanwhile
		m.policyFault(p, err)
	}
	return nil, err
}

// policyFault notes that the plugin has failed and sees to another process; mu is held.
func (m *Manager) policyFault(p *policy, err error) {
	r := m.record(policyRecord(p.Name))
	r.faults++
	r.inARow++
	r.last, r.lastAt = err.Error(), time.Now()
	m.log.WithFields(logrus.Fields{"policy": p.Name, "faults": r.faults}).Warn("a malleability policy failed, " + core.FallbackPolicy.Name() + " is used in its place: " + r.last)
	m.event("malleability policy fault", map[string]any{"policy": p.Name, "fault": r.last, "faults": r.faults, "instead": core.FallbackPolicy.Name()})
	if process := p.process; process != nil {
		p.process = nil
		m.work.Go(process.end)
	}
	if r.inARow >= faultsInARow {
		r.rest = min(max(2*r.rest, firstRest), longestRest)
		r.aside, r.until = true, r.lastAt.Add(r.rest)
		m.event("malleability policy put aside", map[string]any{"policy": p.Name, "faults_in_a_row": r.inARow, "seconds": int(r.rest.Seconds())})
		return
	}
	m.restartPolicy(p)
}

// restartPolicy starts a process in the background; mu is held.
func (m *Manager) restartPolicy(p *policy) {
	if p.ours || p.ended || m.ctx.Err() != nil {
		return
	}
	p.ours = true
	m.work.Go(func() {
		process, err := m.startPolicy(m.ctx, p.file, p.Parameters)
		m.mu.Lock()
		defer m.mu.Unlock()
		p.ours = false
		over := p.ended || m.ctx.Err() != nil
		switch {
		case err == nil && over:
			m.work.Go(process.end)
		case over:
		case err == nil:
			p.process = process
			m.event("malleability policy back", map[string]any{"policy": p.Name})
		default:
			m.policyFault(p, err)
		}
	})
}

// PolicyNote says why the default decides at present though a plugin is in use; "" if it does not.
func (m *Manager) PolicyNote() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.policy
	if p.builtin != nil || p.process != nil {
		return ""
	}
	r := m.record(policyRecord(p.Name))
	if r.aside {
		return core.FallbackPolicy.Name() + " decides in its place until " + r.until.Format(time.TimeOnly) + ": " + r.last
	}
	return core.FallbackPolicy.Name() + " decides until it has started: " + r.last
}

// Policies are all malleability policies: plugins, then those built in of other names.
func (m *Manager) Policies() []api.Strategy {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.Strategy
	add := func(s api.Strategy) {
		if slices.ContainsFunc(all, func(other api.Strategy) bool { return other.Name == s.Name }) {
			return
		}
		s.State, s.Parameters = "ready", append([]api.StrategyParameter{}, s.Parameters...)
		if r := m.records[policyRecord(s.Name)]; r != nil {
			s.Plans, s.Faults, s.Fallen, s.LastFault, s.FaultAt, s.Seconds = r.plans, r.faults, r.fallen, r.last, r.lastAt, r.seconds
			if r.aside {
				s.State, s.Reason = "put aside", "until "+r.until.Format("15:04:05")+", after faults in a row"
			}
		}
		if c := m.policy; c.Name == s.Name {
			s.InUse, s.By, s.Since = true, c.By, c.Since
			if !m.configuredPolicy.is(c.Name, c.Parameters) {
				s.Instead = m.configuredPolicy.Name
			}
			if s.State == "ready" {
				if s.State = "in use"; c.builtin == nil && c.process == nil {
					s.State = "starting"
				}
			}
			for i, p := range s.Parameters {
				if v, ok := c.Parameters[p.Name]; ok {
					s.Parameters[i].Value = v
				}
			}
		}
		all = append(all, s)
	}
	for _, f := range m.files {
		if d, known := m.known[f.name]; known && d.Resizes {
			add(api.Strategy{Name: f.name, Kind: "plugin", Version: d.Version, Help: d.Help, Parameters: parameters(d.Definition)})
		}
	}
	for _, name := range malleable.Policies() {
		add(api.Strategy{Name: name, Kind: "built in", Help: malleable.Help(name)})
	}
	if c := m.policy; c.builtin == nil { // a plugin that has not told yet what it is, or whose file is gone
		add(api.Strategy{Name: c.Name, Kind: "plugin"})
	}
	return all
}
