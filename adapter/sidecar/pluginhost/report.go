package pluginhost

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/builtin"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// paperHelp is the members of the paper's family that have names of their own.
var paperHelp = map[string]string{
	"noX":    "The paper's strategy without expanding.",
	"2X":     "The paper's: a step is held for up to twice its duration.",
	"2X+c":   "As 2X, and compacted.",
	"infX":   "The paper's: steps are held as long as it takes.",
	"infX+c": "As infX, and compacted.",
}

// List is all strategies: plugins, then those built in of other names.
func (m *Manager) List() []api.Strategy {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []api.Strategy
	seen := map[string]bool{}
	for _, f := range m.files {
		s := api.Strategy{Name: f.name, Kind: "plugin", State: "ready"}
		d, known := m.known[f.name]
		switch why := f.refused + m.trouble[f.name]; {
		case f.refused != "", !known && why != "":
			s.State, s.Reason = "refused", why
		case !known:
			s.State = "starting"
		case !d.Plans:
			s.State, s.Reason = "policy", sdk.ErrNoPlan.Error()
		}
		s.Version, s.Help, s.Parameters = d.Version, d.Help, parameters(d.Definition)
		seen[f.name] = seen[f.name] || f.refused == ""
		all = append(all, m.withRecord(s))
	}
	for _, d := range builtin.All() {
		if !seen[d.Name] {
			seen[d.Name] = true
			all = append(all, m.withRecord(api.Strategy{Name: d.Name, Kind: "built in", Version: d.Version, Help: d.Help, State: "ready", Parameters: parameters(d)}))
		}
	}
	names := planner.PaperStrategies()
	if !slices.Contains(names, m.current.name) { // 1.5X, say, or a plugin whose file is gone
		names = append(names, m.current.name)
	}
	for _, name := range names {
		if !seen[name] {
			kind := "built in"
			if m.current.name == name && m.current.builtin == nil {
				kind = "plugin"
			}
			all = append(all, m.withRecord(api.Strategy{Name: name, Kind: kind, Help: paperHelp[name], State: "ready", Parameters: []api.StrategyParameter{}}))
		}
	}
	return all
}

// withRecord adds what is known of a strategy's use; mu is held.
func (m *Manager) withRecord(s api.Strategy) api.Strategy {
	if r := m.records[s.Name]; r != nil {
		s.Plans, s.Faults, s.Fallen, s.LastFault, s.FaultAt, s.Seconds = r.plans, r.faults, r.fallen, r.last, r.lastAt, r.seconds
		if r.aside {
			s.State, s.Reason = "put aside", "until "+r.until.Format("15:04:05")+", after faults in a row"
		}
	}
	c := m.current
	if c.name != s.Name {
		return s
	}
	s.InUse, s.By, s.Since = true, c.by, c.since
	if !m.configured.is(c.name, c.given) {
		s.Instead = m.configured.Name
	}
	if s.State != "put aside" {
		s.State, s.Reason = "in use", ""
		if c.builtin == nil && c.process == nil {
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

// parameters are a definition's, each with its default as the value.
func parameters(d sdk.Definition) []api.StrategyParameter {
	all := make([]api.StrategyParameter, 0, len(d.Parameters))
	for _, p := range d.Parameters {
		all = append(all, api.StrategyParameter{Name: p.Name, Type: p.Type.String(), Value: p.Default, Default: p.Default, Help: p.Help,
			Min: p.Min, Max: p.Max, Choices: p.Choices})
	}
	return all
}

// Note says why the built-in default plans at present though another strategy is
// in use; "" if it does not.
func (m *Manager) Note() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.current
	if c.builtin != nil || c.process != nil {
		return ""
	}
	r := m.record(c.name)
	if r.aside {
		return fallback.Name() + " plans in its place until " + r.until.Format("15:04:05") + ": " + r.last
	}
	return fallback.Name() + " plans until it has started: " + r.last
}

// ExpandLimit is that of the strategy in use for jobs that have none of their own;
// 0 if it does not tell.
func (m *Manager) ExpandLimit() planner.ExpandLimit {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.current
	switch {
	case c.builtin != nil:
		return sdk.Describe(sdk.Definition{}, c.builtin).ExpandLimit
	case c.process != nil:
		return c.process.description.ExpandLimit
	}
	return 0
}
