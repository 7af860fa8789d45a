package sim

import (
	"context"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// Starts returns when the jobs of a load's first workload start in a mode, and the node-seconds. watch, if not nil, is called
// for each change of a node's state.
func (e Green) Starts(ctx context.Context, load GreenLoad, mode string, watch func(now int64, node int, s energy.State, busy bool)) (starts []int64, seconds energy.Seconds, err error) {
	jobs, err := load.Generate(e.Seed, 0)
	if err != nil {
		return nil, seconds, err
	}
	for _, policy := range e.policies(e.watts(load)) {
		if policy.name != mode {
			continue
		}
		p := powered{powerPolicy: policy, boot: e.Boot, shutdown: e.Shutdown, watch: watch}
		if err := p.simulate(ctx, load.Nodes, e.arrivals(jobs, 0, policy.declared), load.Seconds); err != nil {
			return nil, seconds, err
		}
		for _, j := range p.started {
			starts = append(starts, j.start)
		}
		seconds = p.meter.Seconds
	}
	return starts, seconds, nil
}

// PlanStarts returns when jobs start, in the order in which they are known, under the plan that keeps one node awake.
func (e Green) PlanStarts(ctx context.Context, nodes int, jobs []workload.GreenJob) (starts []int64, err error) {
	e.Reserves = []int{1}
	policies := e.policies(e.watts(e.Loads[0]))
	p := powered{powerPolicy: policies[slices.IndexFunc(policies, func(p powerPolicy) bool { return p.series == greenPlan })], boot: e.Boot, shutdown: e.Shutdown}
	all := e.arrivals(jobs, 0, 0)
	err = p.simulate(ctx, nodes, slices.Clone(all), 0)
	for _, j := range all {
		starts = append(starts, j.start)
	}
	return starts, err
}

// Clairvoyant returns the node-seconds and boots with the least energy for jobs that start when they are submitted.
func (e Green) Clairvoyant(w energy.Watts, nodes int, jobs []workload.GreenJob, until int64) (energy.Seconds, int) {
	var all []poweredJob
	for _, j := range jobs {
		all = append(all, poweredJob{GreenJob: j, start: j.Submit})
	}
	return e.clairvoyant(w, nodes, all, until)
}
