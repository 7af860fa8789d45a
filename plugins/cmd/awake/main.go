// Command awake is a strategy that spares powered-down nodes. It shows how a strategy plans by what tells nodes apart.
package main

import (
	"context"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

func main() { strategy.Serve(definition) }

var definition = strategy.Definition{
	Name:    "awake",
	Version: "1",
	Help:    "Every job as early as possible; a job waits for a while if it then needs no node that is powered down.",
	Parameters: []strategy.Parameter{
		{Name: "wait", Type: strategy.Duration, Default: "5m", Min: "0s", Max: "24h", Help: "how much later a job may start to spare powered-down nodes"},
	},
	New: func(v strategy.Values) (planner.Strategy, error) {
		return awake{int64(v.Duration("wait").Seconds())}, nil
	},
}

type awake struct{ wait int64 }

func (awake) Name() string                     { return "awake" }
func (awake) ExpandLimit() planner.ExpandLimit { return 1 }
func (awake) Moldable() bool                   { return true }
func (awake) NodeSets() bool                   { return true }

// Plan implements planner.Strategy. It knows nothing about the nodes.
func (a awake) Plan(p planner.Problem) (planner.Schedule, error) { return a.among(nil).Plan(p) }

// PlanRequest implements strategy.Planner.
func (a awake) PlanRequest(ctx context.Context, r strategy.Request) (strategy.Answer, error) {
	return strategy.Run(ctx, a.among(r.Sets), r)
}

// among returns the strategy for these nodes.
func (a awake) among(sets []planner.NodeSet) planner.Strategy {
	asleep, ready := 0, int64(0)
	for _, s := range sets {
		if s.Power == planner.PoweredDown || s.Power == planner.PowerDown {
			asleep, ready = asleep+s.Free, max(ready, s.Ready)
		}
	}
	return strategy.FromFit(a.Name(), a.ExpandLimit(), func(res *planner.Timeline, nodes int, j planner.Job) (planner.Placement, bool) {
		options := planner.FitOptions{NotBefore: j.Submit, Limit: j.ExpandLimit}
		soon, ok := planner.Fit(res, nodes, j.Profile, options)
		if !ok || asleep == 0 || asleep >= nodes || soon.Start < ready { // or it starts on nodes that are up
			return soon, ok
		}
		options.NotBefore = soon.Start
		if late, fits := planner.Fit(res, nodes-asleep, j.Profile, options); fits && late.Start-soon.Start <= a.wait {
			return late, true
		}
		return soon, true
	})
}
