package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/bag"
	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/planner"
)

// cigriLocal is the local jobs of a cluster, as they ran and as they were planned.
type cigriLocal struct {
	bag.Cluster
	number, waited int
}

// local draws local jobs until their load is within a percentage point of what is wanted: the
// thesis chose its parts of a log by their load.
func (e Cigri) local(ctx context.Context, cpus int, seed uint64) (cigriLocal, error) {
	const most = 5_000
	random := rand.New(rand.NewPCG(seed, 0))
	for range most {
		if ctx.Err() != nil {
			return cigriLocal{}, ctx.Err()
		}
		jobs := e.draw(cpus, random)
		s := localJobs{jobs: jobs, ahead: e.Ahead, until: e.Seconds, cpus: make(map[*machine.Run][]int), local: cigriLocal{Cluster: bag.Cluster{Uses: make([][]bag.Use, cpus), Until: e.Seconds}}}
		if e.Load > 0 {
			runs, err := machine.Simulate(ctx, cpus, jobs, &s, machine.Options{Until: e.Seconds})
			if err != nil {
				return cigriLocal{}, err
			}
			s.finish(runs)
		}
		if math.Abs(s.used/float64(int64(cpus)*e.Seconds)*100-float64(e.Load)) <= 1 {
			return s.local, nil
		}
	}
	return cigriLocal{}, fmt.Errorf("%d drawn workloads do not load %d CPUs by %d %%", most, cpus, e.Load)
}

// draw draws local jobs: those that run at the beginning, and one after the other from then on. The
// number of CPUs is a power of two, up to a quarter of the cluster. Arrivals are Poisson, times
// exponential.
func (e Cigri) draw(cpus int, random *rand.Rand) (jobs []machine.Job) {
	sizes := max(bits.Len(uint(cpus/4)), 1)
	mean := float64(int(1)<<sizes-1) / float64(sizes)
	busy := float64(cpus*e.Load) / 100
	apart := float64(e.Length) * mean / busy // seconds between two arrivals
	at := 0.
	for at < float64(e.Seconds) {
		n := 1 << random.IntN(sizes)
		takes := max(int64(random.ExpFloat64()*float64(e.Length)), 1)
		jobs = append(jobs, machine.Job{Submit: int64(at), Limit: takes * int64(e.Limit),
			Phases: []machine.Phase{{Work: float64(takes * int64(n)), Speed: machine.Linear(n), Min: n, Pref: n, Max: n}}})
		if busy -= float64(n); busy <= 0 {
			at += random.ExpFloat64() * apart
		}
	}
	return jobs
}

// localJobs plans local jobs by conservative backfilling, as OAR does: each has the earliest place
// that is left by those submitted before it, by the times they request. Each gets the first CPUs
// that are free.
type localJobs struct {
	jobs  []machine.Job // in order of time
	ahead int64         // seconds for which they are known before they may start
	until int64
	cpus  map[*machine.Run][]int // of running jobs
	local cigriLocal
	used  float64 // CPU-seconds
}

// planned is the planned place of a job.
type planned struct {
	start, end int64
	cpus       int
}

// Schedule implements [machine.Scheduler].
func (s *localJobs) Schedule(m *machine.Machine) {
	var all planner.Timeline
	free := make([]int64, m.Nodes) // when each CPU is free, as far as is known
	for _, r := range m.Running {
		all.Add(m.Now, r.Start+r.Limit, r.Size)
		for _, cpu := range s.cpus[r] {
			free[cpu] = r.Start + r.Limit
		}
	}
	var later []planned
	for _, r := range slices.Clone(m.Queue) {
		n := r.Phases[0].Pref
		at := all.EarliestFree(m.Now, n, r.Limit, m.Nodes)
		all.Add(at, at+r.Limit, n)
		if p := (planned{at, at + r.Limit, n}); at > m.Now {
			later = append(later, p)
		} else {
			m.Start(r, n)
			s.cpus[r] = p.take(free)
		}
	}
	for _, j := range s.jobs {
		if known := j.Submit - s.ahead; known > m.Now && len(s.local.Plans) == 0 {
			m.Wake(known)
		} else if known <= m.Now && j.Submit > m.Now {
			n := j.Phases[0].Pref
			at := all.EarliestFree(j.Submit, n, j.Limit, m.Nodes)
			all.Add(at, at+j.Limit, n)
			later = append(later, planned{at, at + j.Limit, n})
		}
	}
	slices.SortStableFunc(later, func(a, b planned) int { return cmp.Compare(a.start, b.start) })
	next := make([]int64, m.Nodes)
	for cpu := range next {
		next[cpu] = bag.Never
	}
	for _, p := range later {
		for _, cpu := range p.take(free) {
			next[cpu] = min(next[cpu], p.start)
		}
	}
	s.local.Plans = append(s.local.Plans, bag.Plan{At: m.Now, Next: next})
}

// take gives a job the first CPUs that are free at its start, until its end.
func (p planned) take(free []int64) (cpus []int) {
	for cpu := range free {
		if len(cpus) < p.cpus && free[cpu] <= p.start {
			cpus, free[cpu] = append(cpus, cpu), p.end
		}
	}
	return cpus
}

// finish notes what came of the jobs.
func (s *localJobs) finish(runs []*machine.Run) {
	for _, r := range runs {
		s.local.number++
		if r.Start > r.Submit || s.cpus[r] == nil {
			s.local.waited++
		}
		end := s.until
		if r.End > 0 {
			end = r.End
		}
		for _, cpu := range s.cpus[r] {
			s.used += float64(end - r.Start)
			s.local.Uses[cpu] = append(s.local.Uses[cpu], bag.Use{Job: r.Number, Start: r.Start, End: end})
		}
	}
	for _, uses := range s.local.Uses {
		slices.SortFunc(uses, func(a, b bag.Use) int { return cmp.Compare(a.Start, b.Start) })
	}
}
