package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Besides lists alternatives that a site could use, for [Experiment.Beside].
var Besides = append(append([]string{Slurm}, sim.Baselines...), Neighbour)

// Slurm is only stock Slurm, as modelled.
const Slurm = "slurm"

// Neighbour models a scheduler that also places stock jobs: jobs evolve, and no job
// starts later than with EASY and rigid jobs ([sim.Neighbour]).
const Neighbour = "neighbour"

// AtPeak returns the job as a stock job: always on its largest size. For a moldable job, it uses
// the first alternative; for a malleable one, its profile as a rigid job.
func (s Submission) AtPeak() Submission {
	if s.Evolves() {
		s.Profile, s.Alternatives, s.Least, s.Most, s.Planned = s.Profile.Rigid(), nil, 0, 0, false
		s.Limit = s.Profile[0].Duration + 120 // what evosbatch requests
	}
	return s
}

// Beside returns the outcome of the same work if evolving jobs are submitted rigid at peak: to
// stock Slurm as modelled, or to one of [sim.Baselines], on one machine of all nodes without
// partitions. Jobs keep their positions, whether they evolve, and their requests.
func (e Experiment) Beside(ctx context.Context, name string) (*Result, error) {
	if !slices.Contains(Besides, name) {
		return nil, fmt.Errorf("unknown scheduler %q: must be %s", name, strings.Join(Besides, ", "))
	}
	if name == Neighbour {
		return e.neighbour(ctx)
	}
	rigid := e
	rigid.Jobs = make([]Submission, len(e.Jobs))
	for i, s := range e.Jobs {
		rigid.Jobs[i] = s.AtPeak()
	}
	var r *Result
	var err error
	if name == Slurm {
		r, err = rigid.Run(ctx)
	} else {
		r, err = rigid.baseline(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	r.Strategy = name
	for i := range r.Jobs {
		r.Jobs[i].Evolving, r.Jobs[i].Area = e.Jobs[i].Evolves(), e.Jobs[i].Profile.Area()
	}
	r.measure(r.Metrics.Allocated, 0)
	return r, nil
}

// baseline runs rigid jobs on the planner's own machine.
func (e Experiment) baseline(ctx context.Context, name string) (*Result, error) {
	r := &Result{Nodes: len(e.Cluster.NodeList), Jobs: make([]JobResult, len(e.Jobs))}
	if r.Nodes == 0 {
		r.Nodes = e.Cluster.Nodes
	}
	var jobs []sim.RigidJob
	var of []int
	for i, s := range e.Jobs {
		r.Jobs[i] = JobResult{ID: s.ID, User: s.User, Submit: s.Submit, Start: -1, End: -1, Area: s.Profile.Area()}
		if n := s.Profile.Peak(); n > r.Nodes {
			r.Jobs[i].State, r.Jobs[i].Reason = Refused, fmt.Sprintf("it asks for %d nodes, the cluster has %d", n, r.Nodes)
			continue
		}
		j := sim.RigidJob{Submit: s.Submit, Seconds: s.cut().Duration(), Nodes: s.Profile.Peak(), Limit: s.Limit}
		if j.Limit == 0 {
			j.Limit = j.Seconds + 60
		}
		jobs, of = append(jobs, j), append(of, i)
	}
	if err := sim.Rigid(ctx, name, r.Nodes, jobs); err != nil {
		return nil, err
	}
	for k, j := range jobs {
		one := &r.Jobs[of[k]]
		one.Start, one.End, one.Wait, one.State = j.Start, j.Start+j.Seconds, j.Start-j.Submit, string(slurmctl.Completed)
		one.Sizes = []Size{{At: one.Start, Nodes: j.Nodes}, {At: one.End}}
	}
	r.measure(0, 0)
	return r, e.place(r)
}

// neighbour runs jobs by [sim.Neighbour].
func (e Experiment) neighbour(ctx context.Context) (*Result, error) {
	r := &Result{Strategy: Neighbour, Nodes: len(e.Cluster.NodeList), Jobs: make([]JobResult, len(e.Jobs))}
	if r.Nodes == 0 {
		r.Nodes = e.Cluster.Nodes
	}
	var jobs []sim.NeighbourJob
	var of []int
	for i, s := range e.Jobs {
		r.Jobs[i] = JobResult{ID: s.ID, Evolving: s.Evolves(), User: s.User, Submit: s.Submit, Start: -1, End: -1, Area: s.Profile.Area()}
		if n := s.Profile.Peak(); n > r.Nodes {
			r.Jobs[i].State, r.Jobs[i].Reason = Refused, fmt.Sprintf("it asks for %d nodes, the cluster has %d", n, r.Nodes)
			continue
		}
		j := sim.NeighbourJob{Submit: s.Submit, Profile: s.cut(), Limit: s.AtPeak().Limit}
		if j.Limit == 0 {
			j.Limit = j.Profile.Duration() + 60
		}
		jobs, of = append(jobs, j), append(of, i)
	}
	if err := sim.Neighbour(ctx, "easy", r.Nodes, jobs); err != nil {
		return nil, err
	}
	for k, j := range jobs {
		one := &r.Jobs[of[k]]
		one.Start, one.Wait, one.State = j.Start, j.Start-j.Submit, string(slurmctl.Completed)
		one.End = j.Start
		for _, step := range j.Profile {
			one.Sizes = append(one.Sizes, Size{At: one.End, Nodes: step.Nodes})
			one.End += step.Duration
		}
		one.Sizes = append(one.Sizes, Size{At: one.End})
	}
	r.measure(0, 0)
	return r, e.place(r)
}

// cut returns what really runs: Slurm ends a stock job at its limit.
func (s Submission) cut() planner.Profile {
	if s.Limit == 0 || s.Evolves() || s.Limit >= s.Profile[0].Duration {
		return s.Profile
	}
	return planner.Profile{{Duration: s.Limit, Nodes: s.Profile[0].Nodes}}
}
