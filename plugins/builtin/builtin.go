// Package builtin holds the strategies and malleability policies that come with Evoslurm. The
// sidecar has them built in. The main packages in ../cmd make plugins of the strategies, except auto, and of the
// policy gain.
package builtin

import (
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

const version = "1"

// All returns the definitions, in the order in which they are listed.
func All() []strategy.Definition {
	return append([]strategy.Definition{Auto()}, Plugins()...)
}

// Plugins returns the definitions that ../cmd makes plugins of. Auto is not among them, because only in the sidecar's
// process it says whose plans it took.
func Plugins() []strategy.Definition {
	return []strategy.Definition{Klein(), MinWaste(), Search(), Rigid()}
}

// Policy returns the definition of the malleability policy of that name.
func Policy(name string) strategy.Definition {
	return strategy.Definition{Name: name, Version: version, Help: malleable.Help(name),
		NewPolicy: func(strategy.Values) (malleable.Policy, error) { return malleable.PolicyByName(name) }}
}

// Find returns the definition of that name.
func Find(name string) (strategy.Definition, bool) {
	for _, d := range All() {
		if d.Name == name {
			return d, true
		}
	}
	return strategy.Definition{}, false
}

// expandLimit returns a parameter that several strategies share.
func expandLimit(preset string) strategy.Parameter {
	return strategy.Parameter{Name: "expand_limit", Type: strategy.Number, Default: preset, Min: "1",
		Help: "how long a step may keep its nodes while it waits for the next, as a multiple of its duration, for jobs that say nothing themselves; inf is without bound"}
}

// Klein returns the paper's family of strategies: noX, 2X, 2X+c, infX, and infX+c.
func Klein() strategy.Definition {
	return strategy.Definition{
		Name:    "klein",
		Version: version,
		Help:    "List scheduling of evolving jobs with expanding and compacting (Klein and Pérez 2011).",
		Parameters: []strategy.Parameter{
			expandLimit("2"),
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

// MinWaste returns a strategy with the least possible waste that completes no job later.
func MinWaste() strategy.Definition {
	return strategy.Definition{
		Name:       "minwaste",
		Version:    version,
		Help:       "List scheduling; of all placements that complete a job as early as any, the one that wastes least.",
		Parameters: []strategy.Parameter{expandLimit("2")},
		New: func(v strategy.Values) (planner.Strategy, error) {
			return planner.StrategyByName(v.String("expand_limit") + "X+m")
		},
	}
}

// Search returns a strategy that plans the whole list at once.
func Search() strategy.Definition {
	return strategy.Definition{
		Name:    "search",
		Version: version,
		Help:    "Looks for a better order than the list's: beams, then simulated annealing. Never worse than noX on the objective.",
		Parameters: []strategy.Parameter{
			{Name: "objective", Type: strategy.String, Default: "makespan", Choices: []string{"makespan", "mean-completion"}, Help: "what is made as small as can be found"},
			{Name: "fair", Type: strategy.Bool, Default: "false", Help: "complete no job later than list order would; expanding is then all there is to gain by"},
			expandLimit("1"),
			{Name: "effort", Type: strategy.Int, Default: "100000", Min: "1000", Max: "100000000", Help: "placements of one job that are tried"},
			{Name: "time", Type: strategy.Duration, Default: "1s", Min: "10ms", Max: "1m", Help: "stop searching after so long; must be less than strategies.timeout"},
			{Name: "seed", Type: strategy.Int, Default: "1", Min: "0", Help: "of the random choices"},
		},
		New: func(v strategy.Values) (planner.Strategy, error) {
			s := planner.Search{Fair: v.Bool("fair"), Seed: uint64(v.Int("seed")), MaxEvaluations: v.Int("effort")}
			limit, err := planner.ParseExpandLimit(v.String("expand_limit"))
			s.Limit = limit
			if v.String("objective") == "mean-completion" {
				s.Objective = planner.MeanCompletion
			}
			return search{s, v.Duration("time")}, err
		},
	}
}

// search stops after a time.
type search struct {
	planner.Search
	time time.Duration
}

// Plan implements planner.Strategy.
func (s search) Plan(p planner.Problem) (planner.Schedule, error) {
	end := time.Now().Add(s.time)
	s.Stop = func() bool { return time.Now().After(end) }
	return s.Search.Plan(p)
}

// Rigid returns the baseline without evolution.
func Rigid() strategy.Definition {
	return strategy.Definition{
		Name:    "rigid",
		Version: version,
		Help:    "The baseline without evolution: a job starts when its peak is free for its whole duration, and no other evolving job gets what it does not use of that. (It is allocated what its profile says.)",
		New:     func(strategy.Values) (planner.Strategy, error) { return planner.StrategyByName("rigid") },
	}
}
