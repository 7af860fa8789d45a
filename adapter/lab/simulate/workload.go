package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
)

// MostNodes bounds the nodes of a simulated cluster.
const MostNodes = 100_000

// FromProblem makes submissions of a workload file; what it has in use at the start is a
// job of its own.
func FromProblem(p planner.Problem) ([]Submission, error) {
	var all []Submission
	for i, b := range p.Busy {
		switch {
		case b.Start != 0:
			return nil, &planner.ProblemError{Job: -1, Field: fmt.Sprintf("busy[%d].start", i), Err: fmt.Errorf("%d: only what is in use from the start, 0, can be run", b.Start)}
		case b.Duration > planner.MaxDuration:
			return nil, &planner.ProblemError{Job: -1, Field: fmt.Sprintf("busy[%d].duration", i), Err: fmt.Errorf("%d is more than %d", b.Duration, planner.MaxDuration)}
		}
		all = append(all, Submission{ID: fmt.Sprintf("busy[%d]", i), Profile: planner.Profile{{Duration: b.Duration, Nodes: b.Nodes}}})
	}
	for i, j := range p.Jobs {
		all = append(all, Submission{ID: j.ID, Submit: j.Submit, Profile: j.Profile, ExpandLimit: j.ExpandLimit, User: i % 20})
		if j.IsMoldable() {
			last := &all[len(all)-1]
			last.Alternatives, last.By = append([]planner.Profile{j.Profile}, j.Alternatives...), j.By
		}
	}
	return all, nil
}

// FromTrace makes submissions from the jobs of a trace that ran, on exclusive nodes with that many
// CPUs. A share of them, 0 to 1, gets an evolving profile with the same area, from the seed. The
// others are stock jobs, unless the trace itself has them evolving, moldable, or malleable.
func FromTrace(t trace.Trace, cpus, nodes int, evolving float64, seed uint64) []Submission {
	jobs, _ := t.Runnable()
	all := make([]Submission, len(jobs))
	var able []int
	for i, j := range jobs {
		n := (j.Size() + cpus - 1) / cpus
		all[i] = Submission{ID: fmt.Sprint(j.Number), Submit: int64(j.Submit), Limit: j.LimitSeconds(), User: submitter(j, i),
			Profile: planner.Profile{{Duration: j.Seconds(), Nodes: n}}}
		if s := j.Shape; s != nil && s.ID != "" {
			all[i].ID = s.ID
		}
		switch s := j.Shape; j.Kind() {
		case trace.Moldable:
			all[i].Profile, all[i].Limit, all[i].By = perNode(s.Profile, cpus), 0, s.By
			all[i].Alternatives = []planner.Profile{all[i].Profile}
			for _, p := range s.Alternatives {
				all[i].Alternatives = append(all[i].Alternatives, perNode(p, cpus))
			}
		case trace.Malleable:
			all[i].Profile = perNode(s.Profile, cpus)
			all[i].bounds(s, cpus)
		case trace.Evolving:
			all[i].Profile, all[i].Limit = perNode(s.Profile, cpus), 0
		default:
			if n <= nodes && j.Seconds() >= shortestEvolving {
				able = append(able, i)
			}
		}
	}
	chance := rand.New(rand.NewPCG(seed, 89))
	chance.Shuffle(len(able), func(i, k int) { able[i], able[k] = able[k], able[i] })
	for _, i := range able[:min(len(able), int(math.Round(evolving*float64(len(all)))))] {
		s := &all[i]
		s.Profile, s.Limit = evolve(s.Profile[0], nodes, chance), 0
	}
	return all
}

// LeaveFar removes from a trace the jobs submitted so long after second 0 that the model's clock
// would not reach them, and returns which. Second 0 is that of the first submission, except in a
// workload file.
func LeaveFar(t *trace.Trace, workload bool) (faults []error) {
	first := math.Inf(1)
	if workload {
		first = 0
	}
	for i := range t.Jobs {
		if t.Jobs[i].Ran() {
			first = min(first, t.Jobs[i].Submit)
		}
	}
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j trace.Job) bool {
		far := j.Submit - first
		if far <= planner.MaxDuration {
			return false
		}
		faults = append(faults, fmt.Errorf("job %d: submit: %.0f seconds after the beginning; at most %d can be run", j.Number, far, planner.MaxDuration))
		return true
	})
	return faults
}

// perNode returns a profile of processors on nodes of so many.
func perNode(p planner.Profile, cpus int) planner.Profile {
	p = slices.Clone(p)
	for i := range p {
		p[i].Nodes = (p[i].Nodes + cpus - 1) / cpus
	}
	return p
}

// bounds makes it malleable as a trace has it; with nodes of so many processors it may be rigid.
func (s *Submission) bounds(shape *trace.Shape, cpus int) {
	least, most := (shape.Min+cpus-1)/cpus, (shape.Max+cpus-1)/cpus
	if least < most {
		s.Limit, s.Least, s.Most, s.Speedup = 0, least, most, shape.Speedup
	}
}

// submitter returns the user of job i: the trace's, else one of twenty.
func submitter(j trace.Job, i int) int {
	if j.User < 0 {
		return i % 20
	}
	return int(j.User)
}

// FromWorkload makes submissions of a trace that is a workload file, with the limits and users that it has
// beside what is planned.
func FromWorkload(t trace.Trace) ([]Submission, error) {
	all, err := FromProblem(t.Problem())
	if err != nil {
		return nil, err
	}
	jobs, _ := t.Runnable()
	first := len(all) - len(jobs) // behind what is in use
	for i, j := range jobs {
		s := &all[first+i]
		s.User = submitter(j, i)
		if j.Kind() == trace.Malleable {
			s.bounds(j.Shape, 1)
		}
		if !s.Evolves() {
			s.Limit = j.LimitSeconds()
		}
	}
	return all, nil
}

// shortestEvolving is how many seconds a job lasts that is given a profile.
const shortestEvolving = 60

// evolve makes three steps of the same area as one.
func evolve(s planner.Step, nodes int, chance *rand.Rand) planner.Profile {
	d, n := s.Duration, s.Nodes
	room := min(n-1, nodes-n) // by which it can grow and shrink alike
	switch {
	case room > 0:
		k, t := 1+chance.IntN(room), d/4+chance.Int64N(d/8)
		p := planner.Profile{{Duration: t, Nodes: n - k}, {Duration: t, Nodes: n + k}, {Duration: d - 2*t, Nodes: n}}
		chance.Shuffle(len(p), func(i, k int) { p[i], p[k] = p[k], p[i] })
		return p
	case n == 1 && nodes > 1: // shorter, and on two nodes in between
		t := d/8 + chance.Int64N(d/8)
		first := (d - 2*t) / 2
		return planner.Profile{{Duration: first, Nodes: 1}, {Duration: t, Nodes: 2}, {Duration: d - 2*t - first, Nodes: 1}}
	case n > 1: // the whole cluster: longer, and on fewer at its ends
		k := n - max(n/8, 1)
		m := d / int64(8*n)
		if m < 1 {
			return planner.Profile{s}
		}
		return planner.Profile{{Duration: int64(n) * m, Nodes: k}, {Duration: d - 2*int64(k)*m, Nodes: n}, {Duration: int64(n) * m, Nodes: k}}
	}
	return planner.Profile{s}
}
