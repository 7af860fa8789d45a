// Package builtin holds the strategies that come with Evoslurm. The sidecar has
// them built in; the main packages in ../cmd make a plugin of each.
package builtin

import (
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

const version = "1"

// All are the definitions, in the order in which they are listed.
func All() []strategy.Definition {
	return []strategy.Definition{Klein(), Rigid()}
}

// Find is the definition of that name.
func Find(name string) (strategy.Definition, bool) {
	for _, d := range All() {
		if d.Name == name {
			return d, true
		}
	}
	return strategy.Definition{}, false
}

// Klein is the paper's family of strategies: noX, 2X, 2X+c, infX, infX+c are
// members of it.
func Klein() strategy.Definition {
	return strategy.Definition{
		Name:    "klein",
		Version: version,
		Help:    "List scheduling of evolving jobs with expanding and compacting (Klein and Pérez 2011).",
		Parameters: []strategy.Parameter{
			{Name: "expand_limit", Type: strategy.Number, Default: "2", Min: "1",
				Help: "how long a step may be held while it waits for the next, as a multiple of its duration, for jobs that say nothing themselves; inf is without bound"},
			{Name: "compact", Type: strategy.Bool, Default: "true",
				Help: "place the steps again from right to left, to waste less"},
		},
		New: func(v strategy.Values) (planner.Strategy, error) {
			name := v.String("expand_limit") + "X"
			if v.Bool("compact") {
				name += "+c"
			}
			return planner.StrategyByName(name)
		},
	}
}

// Rigid is the baseline without evolution.
func Rigid() strategy.Definition {
	return strategy.Definition{
		Name:    "rigid",
		Version: version,
		Help:    "The baseline without evolution: every job holds its peak for its whole duration.",
		New:     func(strategy.Values) (planner.Strategy, error) { return planner.StrategyByName("rigid") },
	}
}
