package pluginhost

import (
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner/malleable"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// choosePolicy sees that a malleability policy may be used: one that is built in. Plugins are
// tried and listed; jobs are not resized by them yet.
func (m *Manager) choosePolicy(c Chosen) (*Chosen, error) {
	if c.Since.IsZero() {
		c.Since = time.Now()
	}
	_, err := malleable.PolicyByName(c.Name)
	_, plugin := m.file(c.Name)
	switch {
	case err == nil && len(c.Parameters) > 0:
		return nil, fmt.Errorf("policy %s has no parameters", c.Name)
	case err == nil:
		return &c, nil
	case plugin:
		return nil, fmt.Errorf("%s is a plugin, and malleable jobs are resized by the policies built in only: %v", c.Name, malleable.Policies())
	}
	return nil, fmt.Errorf("there is no malleability policy %q; evosctl strategy policies tells which there are", sdk.Clean(c.Name, 63))
}

// BeginPolicy takes the first malleability policy in use: the one that was put in use before
// (kept), if there is one, else the configuration's. The error is a name that does not exist.
func (m *Manager) BeginPolicy(name string, kept *Chosen) (err error) {
	m.configuredPolicy = Chosen{Name: name, By: byConfiguration}
	if kept != nil {
		if m.policy, err = m.choosePolicy(*kept); err == nil {
			return nil
		}
		m.log.WithError(err).Errorf("the malleability policy that was put in use is not available, the configured %s is used", name)
	}
	m.policy, err = m.choosePolicy(m.configuredPolicy)
	return err
}

// PolicyChange is another policy, ready to be put in use by Swap.
type PolicyChange struct {
	manager    *Manager
	next       *Chosen
	configured bool // by the configuration from now on
}

// UsePolicy prepares a policy for use, as Use does a strategy.
func (m *Manager) UsePolicy(name string, parameters map[string]string, by string) (*PolicyChange, error) {
	if name == api.Configured {
		m.mu.Lock()
		name, parameters = m.configuredPolicy.Name, nil
		m.mu.Unlock()
	}
	next, err := m.choosePolicy(Chosen{Name: name, Parameters: parameters, By: by})
	if err != nil {
		return nil, err
	}
	return &PolicyChange{manager: m, next: next}, nil
}

// ConfigurePolicy takes another configuration; nil: it names the same policy as before.
func (m *Manager) ConfigurePolicy(name string) (*PolicyChange, error) {
	m.mu.Lock()
	same := m.configuredPolicy.Name == name
	m.mu.Unlock()
	if same {
		return nil, nil
	}
	next, err := m.choosePolicy(Chosen{Name: name, By: byConfiguration})
	if err != nil {
		return nil, err
	}
	return &PolicyChange{manager: m, next: next, configured: true}, nil
}

// Kept is what is in use after the change beside the configuration; nil: what that has.
func (c *PolicyChange) Kept() *Chosen {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	if c.configured || c.manager.configuredPolicy.Name == c.next.Name {
		return nil
	}
	kept := *c.next
	return &kept
}

// Event is what the event log is to say.
func (c *PolicyChange) Event() Event {
	return Event{"malleability policy", map[string]any{"from": c.manager.Policy(), "to": c.next.Name, "by": c.next.By}}
}

// Swap puts it in use.
func (c *PolicyChange) Swap() {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.WithFields(logrus.Fields{"from": m.policy.Name, "to": c.next.Name, "by": c.next.By}).Info("malleability policy")
	if m.policy = c.next; c.configured {
		m.configuredPolicy = *c.next
	}
}

// Policy is the name of the policy in use.
func (m *Manager) Policy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy.Name
}

// Policies are all malleability policies: those built in, then plugins of other names.
func (m *Manager) Policies() []api.Strategy {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.Strategy
	for _, name := range malleable.Policies() {
		s := api.Strategy{Name: name, Kind: "built in", Help: malleable.Help(name), State: "ready", Parameters: []api.StrategyParameter{}}
		if c := m.policy; c.Name == name {
			s.State, s.InUse, s.By, s.Since = "in use", true, c.By, c.Since
			if m.configuredPolicy.Name != name {
				s.Instead = m.configuredPolicy.Name
			}
		}
		all = append(all, s)
	}
	for _, f := range m.files {
		d, known := m.known[f.name]
		if known && d.Resizes && !slices.Contains(malleable.Policies(), f.name) {
			all = append(all, api.Strategy{Name: f.name, Kind: "plugin", Version: d.Version, Help: d.Help, State: "tried",
				Reason: "jobs are resized by the policies built in only", Parameters: parameters(d.Definition)})
		}
	}
	return all
}
