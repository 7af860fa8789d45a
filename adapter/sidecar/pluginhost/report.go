package pluginhost

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
)

// paperHelp describes the members of the paper's family with their own names.
var paperHelp = map[string]string{
	"noX":    "The paper's strategy without expanding.",
	"2X":     "The paper's: a step is held for up to twice its duration.",
	"2X+c":   "As 2X, and compacted.",
	"infX":   "The paper's: steps are held as long as it takes.",
	"infX+c": "As infX, and compacted.",
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

// ExpandLimit returns the limit of the strategy in use for jobs that have none of their own; 0 if it does not tell.
func (m *Manager) ExpandLimit() planner.ExpandLimit {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.Planning.current
	switch {
	case c.builtin != nil:
		return sdk.Describe(sdk.Definition{}, c.builtin).ExpandLimit
	case c.process != nil:
		return c.process.description.ExpandLimit
	}
	return 0
}
