package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
)

// PECS23 is the workload model of Posner, Hupfeld and Finnerty, "Enhancing Supercomputer
// Performance with Malleable Job Scheduling Strategies" (PECS 2023). It has as many jobs as would
// keep all nodes computing for Days days without gaps, submitted at any second of these. Sizes are
// 1 … Nodes, rounded down to a power of two. The work grows with the size and is normally
// distributed around that. It speeds up as Amdahl says, with that one of eleven parallel parts for
// which the job's size is just above 80 % efficient. A malleable job can shrink to the last power
// of two that is more than 95 % efficient, and grow to the last above 50 %. Its work has parts of
// about a minute, between which it can change.
//
// What the paper leaves open is from its generator, whose numbers come out as they were: the
// seeds are the texts S0 … S9 (the mean run time of rigid jobs, 3353.6868 s, tells).
//
// With Phases the applications evolve, which theirs do not: the work is done in 1 … Phases
// phases, one of the job's size, the others of 1 up to that, rounded down to a power of two, each
// with that size's speed-up and bounds. On the nodes of its size a phase lasts as long as a step
// of the paper's, 500 … 3600 s, all scaled to the job's work. Rigid users ask for the job's size,
// and there are as many jobs as keep all nodes allocated if all are.
type PECS23 struct {
	Nodes  int
	Days   int
	Phases int // of an application, at most
}

// DefaultPECS23 holds the published values.
var DefaultPECS23 = PECS23{Nodes: 128, Days: 30, Phases: 1}

// PECSJob is a job of the model, before its kind is chosen.
type PECSJob struct {
	Submit int64
	Draw   float64         // 0 … 1: of a share s of jobs that are not rigid it is one from 1-s on
	Phases []machine.Phase // each with its own bounds
}

// As returns the job as one of a kind. What does not declare its phases has to ask for what the largest
// one needs, and is not told apart from it.
func (j PECSJob) As(kind machine.Kind) machine.Job {
	job := machine.Job{Submit: j.Submit, Kind: kind, Phases: slices.Clone(j.Phases)}
	if kind == machine.Evolving || kind == machine.Both {
		return job
	}
	var least, preferred, most int
	for _, p := range j.Phases {
		least, preferred, most = max(least, p.Min), max(preferred, p.Pref), max(most, p.Max)
	}
	for i := range job.Phases {
		p := &job.Phases[i]
		p.Min, p.Pref, p.Max = least, preferred, most
	}
	return job
}

const (
	pecsSpeed     = 1e12             // operations of a node a second
	pecsLeast     = 5e12             // operations of a job
	pecsMost      = 4e17             //
	pecsPart      = 60               // seconds between which a malleable job can change, on a perfect machine
	pecsParts     = 1000             // at most
	pecsPreferred = .8               // efficiency above which the preferred size is
	pecsMin       = .95              //
	pecsMax       = .5               //
	pecsDay       = int64(24 * 3600) // seconds
)

// pecsParallel are the parallel parts of the applications.
var pecsParallel = []float64{.999, .995, .99, .985, .98, .975, .97, .965, .96, .955, .95}

// Validate returns what cannot be generated.
func (p PECS23) Validate() error {
	switch {
	case p.Nodes < 2 || p.Nodes > 4096:
		return fmt.Errorf("nodes: %d is not within 2 … 4096", p.Nodes)
	case p.Days < 1 || p.Days > 366:
		return fmt.Errorf("days: %d is not within 1 … 366", p.Days)
	case p.Phases < 1 || p.Phases > 100:
		return fmt.Errorf("phases: %d is not within 1 … 100", p.Phases)
	}
	return nil
}

// phase returns a phase of a size: all but its work.
func (p PECS23) phase(size int) machine.Phase {
	parallel, gap := slices.Max(pecsParallel), 1.
	for _, f := range pecsParallel {
		if over := efficiency(f, size) - pecsPreferred; over > 0 && over < gap {
			parallel, gap = f, over
		}
	}
	least, most := 1, 1
	for n := 1; n <= p.Nodes && efficiency(parallel, n) > pecsMax; n++ {
		most = n
		if efficiency(parallel, n) > pecsMin {
			least = n
		}
	}
	phase := machine.Phase{Speed: machine.Amdahl(parallel, p.Nodes), Min: min(floorPower(least), size), Pref: size,
		Max: max(floorPower(most), size)}
	for n := phase.Max + 1; n <= p.Nodes; n++ {
		phase.Speed[n] = phase.Speed[phase.Max] // it takes no more
	}
	return phase
}

func efficiency(parallel float64, nodes int) float64 {
	return 1 / ((1 - parallel) + parallel/float64(nodes)) / float64(nodes)
}

func floorPower(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// Generate draws the jobs of a seed, by submission.
func (p PECS23) Generate(seed string) []PECSJob {
	phases := make(map[int]machine.Phase)
	of := func(size int) machine.Phase {
		phase, ok := phases[size]
		if !ok {
			phase = p.phase(size)
			phases[size] = phase
		}
		return phase
	}
	seconds := int64(p.Days) * pecsDay
	all := float64(seconds) * pecsSpeed * float64(p.Nodes)
	var jobs []PECSJob
	for drawn := 0.; ; {
		last := drawn >= all-pecsMost // the generator has another speed then, and so no parts
		var r mersenne
		r.seedText(seed + strconv.Itoa(len(jobs)))
		job := PECSJob{Draw: r.float(), Submit: int64(r.below(uint32(seconds)))}
		size := floorPower(1 + int(r.below(uint32(p.Nodes-1))))
		mean := float64(size-1)*(pecsMost-pecsLeast)/float64(p.Nodes-1) + pecsLeast
		work := min(max(r.gauss(mean, (pecsMost-pecsLeast)/100), pecsLeast), pecsMost)
		job.Phases = []machine.Phase{of(size)}
		if p.Phases > 1 {
			job.Phases = p.evolve(&r, size, of)
		}
		share := 0.
		for i := range job.Phases {
			share += job.Phases[i].Work
		}
		area := 0.
		for i := range job.Phases {
			phase := &job.Phases[i]
			if len(job.Phases) > 1 {
				phase.Work *= work / share / pecsSpeed
			} else {
				phase.Work = work / pecsSpeed
			}
			parts := math.Floor(math.Floor(phase.Work/float64(phase.Pref)) / pecsPart)
			if phase.Points = int(min(max(parts, 1), pecsParts)); last {
				phase.Points = 1
			}
			area += phase.Work / phase.Speed[size] * float64(size)
		}
		drawn += area * pecsSpeed
		if jobs = append(jobs, job); last {
			break
		}
	}
	first := jobs[0].Submit
	for _, j := range jobs {
		first = min(first, j.Submit)
	}
	for i := range jobs {
		jobs[i].Submit -= first
	}
	slices.SortStableFunc(jobs, func(a, b PECSJob) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs
}

// evolve draws the phases of a job; their work is shares of it.
func (p PECS23) evolve(r *mersenne, size int, of func(size int) machine.Phase) []machine.Phase {
	phases := make([]machine.Phase, 1+r.below(uint32(p.Phases)))
	peak := int(r.below(uint32(len(phases))))
	for i := range phases {
		n := floorPower(1 + int(r.below(uint32(size))))
		if i == peak {
			n = size
		}
		lasts := DefaultPaper.Duration.Min + int64(r.below(uint32(DefaultPaper.Duration.Max-DefaultPaper.Duration.Min+1)))
		phases[i] = of(n)
		phases[i].Work = float64(lasts) * phases[i].Speed[n]
	}
	return phases
}
