// Command known is a plugin for the benchmark: it plans only once and then always returns that
// plan.
package main

import (
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

type known struct{ schedule *planner.Schedule }

func (known) Name() string                     { return "known" }
func (known) ExpandLimit() planner.ExpandLimit { return 1 }

func (k known) Plan(p planner.Problem) (planner.Schedule, error) {
	if len(*k.schedule) != len(p.Jobs) {
		s, err := planner.StrategyByName("noX")
		if err != nil {
			return nil, err
		}
		if *k.schedule, err = s.Plan(p); err != nil {
			return nil, err
		}
	}
	return *k.schedule, nil
}

func main() {
	strategy.Serve(strategy.Definition{Name: "known", Version: "1", Help: "For benchmarks.",
		New: func(strategy.Values) (planner.Strategy, error) { return known{new(planner.Schedule)}, nil }})
}
