package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// Baselines lists schedulers that sites use, for rigid jobs.
var Baselines = []string{"fcfs", "easy", "conservative"}

func baseline(name string) (machine.Scheduler, error) {
	switch name {
	case "fcfs":
		return machine.Queue{Order: machine.FCFS}, nil
	case "easy":
		return &machine.Backfill{}, nil
	case "conservative":
		return &machine.Backfill{Conservative: true}, nil
	}
	return nil, fmt.Errorf("unknown scheduler %q: must be %s", name, strings.Join(Baselines, ", "))
}

// RigidJob is a job of one size.
type RigidJob struct {
	Submit, Seconds, Limit int64 // Limit 0 means the job's duration
	Nodes                  int
	Start                  int64 // the result
}

// Rigid runs jobs, in any order, by one of [Baselines] on that many nodes, and sets their starts.
func Rigid(ctx context.Context, name string, nodes int, jobs []RigidJob) error {
	s, err := baseline(name)
	if err != nil {
		return err
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Submit, jobs[b].Submit) })
	flat := make(machine.Curve, nodes+1) // durations are given
	for n := 1; n <= nodes; n++ {
		flat[n] = 1
	}
	phases := make([]machine.Phase, len(jobs))
	runs := make([]machine.Job, len(jobs))
	for i, k := range order {
		j := &jobs[k]
		phases[i] = machine.Phase{Work: float64(j.Seconds), Speed: flat, Min: j.Nodes, Pref: j.Nodes, Max: j.Nodes}
		runs[i] = machine.Job{Submit: j.Submit, Limit: j.Limit, Phases: phases[i : i+1]}
	}
	done, err := machine.Simulate(ctx, nodes, runs, s, machine.Options{})
	if err != nil {
		return err
	}
	for i, r := range done {
		jobs[order[i]].Start = r.Start
	}
	return nil
}

// mostBaseline bounds the nodes of a machine; each needs memory.
const mostBaseline = 10_000_000

// Baseline runs again the jobs of a trace, by one of [Baselines] on that many nodes with that many
// processors each. It returns a trace with their new waits. All jobs are rigid: evolving and
// malleable jobs have their largest size all the time. Jobs have their nodes exclusively. If a job
// ran longer than requested, its run time counts as its request.
func Baseline(ctx context.Context, t trace.Trace, name string, nodes, cpus int) (trace.Trace, error) {
	if nodes > mostBaseline {
		return trace.Trace{}, fmt.Errorf("a machine of %d nodes; at most %d can be run: give --nodes or --cpus-per-node", nodes, mostBaseline)
	}
	jobs, _ := t.Runnable()
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return int(min(max(int64(a.Submit)-int64(b.Submit), -1), 1)) })
	runs := make([]RigidJob, len(jobs))
	for i, j := range jobs {
		n := (j.Size() + cpus - 1) / cpus
		if n > nodes {
			return trace.Trace{}, fmt.Errorf("job %d: %d nodes, and the machine has %d", j.Number, n, nodes)
		}
		runs[i] = RigidJob{Submit: int64(j.Submit), Seconds: j.Seconds(), Limit: j.LimitSeconds(), Nodes: n}
	}
	if err := Rigid(ctx, name, nodes, runs); err != nil {
		return trace.Trace{}, err
	}
	for i, r := range runs {
		j := &jobs[i]
		j.Submit, j.Wait, j.Run, j.Shape = float64(r.Submit), float64(r.Start-r.Submit), float64(r.Seconds), nil
		j.Processors = int64(r.Nodes)
	}
	h := t.Header
	h.Busy, h.InNodes = nil, h.InNodes || cpus > 1
	h.Set("MaxNodes", fmt.Sprint(nodes))
	h.Set("MaxProcs", fmt.Sprint(nodes))
	h.Set("MaxJobs", fmt.Sprint(len(jobs)))
	return trace.Trace{Header: h, Jobs: jobs}, nil
}
