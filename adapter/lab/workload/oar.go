package workload

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/planner"
)

// OAR is the rigid background of Georgiou's experiment (thesis 2010, section 5.5): five hours of a
// DAS2 log on 64 cores, which use 40 % of them. The hours are unknown, and the log is not
// available. So it is drawn to match the text and table 5.3. Until second 5500 it delays no job, so
// it begins then. Five best-effort jobs are killed, so jobs come in five bursts, all of a burst at
// once. Best-effort jobs use little after that, so a burst leaves little free. Without malleable
// jobs they wait only for OAR, so they fit beside each other. Jobs take whole nodes, a power of two
// up to a quarter of the cluster, and last half to one and a half times the mean, which follows
// from the load.
type OAR struct {
	Cores, Node int   // of the cluster, of a node
	Seconds     int64 // of the experiment
	Quiet       int64 // seconds before the first job
	Load        int   // percent of all core-seconds
	Jobs        int
	Bursts      int
}

// DefaultOAR holds the published values.
var DefaultOAR = OAR{Cores: 64, Node: 4, Seconds: 5 * 3600, Quiet: 5500, Load: 40, Jobs: 35, Bursts: 5}

// Validate returns what cannot be generated.
func (o OAR) Validate() error {
	switch {
	case o.Node < 1 || o.Cores < 2*o.Node || o.Cores > 1<<20 || o.Cores%o.Node != 0:
		return fmt.Errorf("cores: %d is no multiple of the %d of a node, two of these at least", o.Cores, o.Node)
	case o.Seconds < 60 || o.Seconds > 1e7:
		return fmt.Errorf("seconds: %d is not within 60 … 10000000", o.Seconds)
	case o.Quiet < 0 || o.Quiet >= o.Seconds:
		return fmt.Errorf("quiet: %d is not within 0 … %d s", o.Quiet, o.Seconds-1)
	case o.Load < 1 || o.Load > 100:
		return fmt.Errorf("load: %d is not within 1 … 100 %%", o.Load)
	case int64(o.Load)*o.Seconds > 80*(o.Seconds-o.Quiet):
		return fmt.Errorf("load: %d %% of %d s does not fit into the last %d s of them", o.Load, o.Seconds, o.Seconds-o.Quiet)
	case o.Bursts < 1 || o.Bursts > 1000:
		return fmt.Errorf("bursts: %d is not within 1 … 1000", o.Bursts)
	case o.Jobs < o.Bursts || o.Jobs > 10_000:
		return fmt.Errorf("jobs: %d is not within %d … 10000, one for every burst at least", o.Jobs, o.Bursts)
	}
	return nil
}

// Generate draws test number test (from 0) of a seed.
func (o OAR) Generate(seed uint64, test int) ([]machine.Job, error) {
	random := rand.New(rand.NewPCG(seed, uint64(test)))
	for range 100_000 {
		if jobs := o.draw(random); jobs != nil {
			return jobs, nil
		}
	}
	return nil, errors.New("such jobs do not fit beside each other: fewer, or less load")
}

// draw returns one attempt; nil where jobs do not fit beside each other.
func (o OAR) draw(random *rand.Rand) []machine.Job {
	starts := make([]int64, o.Bursts)
	apart := float64(o.Seconds-o.Quiet) / float64(o.Bursts)
	for i := range starts {
		starts[i] = o.Quiet + int64(apart*(float64(i)+.3*random.Float64()))
	}
	cores, lengths, area := make([]int, o.Jobs), make([]float64, o.Jobs), 0.
	sizes := max(bits.Len(uint(o.Cores/o.Node/4)), 1) // 1, 2, … a quarter of the nodes
	for i := range cores {
		cores[i], lengths[i] = o.Node<<random.IntN(sizes), .5+random.Float64()
		area += float64(cores[i]) * lengths[i]
	}
	scale := float64(o.Load) / 100 * float64(o.Cores) * float64(o.Seconds) / area
	jobs := make([]machine.Job, o.Jobs)
	var used planner.Timeline
	for i := range jobs {
		at, length, n := starts[i*o.Bursts/o.Jobs], max(int64(lengths[i]*scale), 1), cores[i]
		if used.Add(at, at+length, n); at+length > o.Seconds || used.Max(at, at+length) > o.Cores {
			return nil
		}
		jobs[i] = machine.Job{Submit: at, Phases: []machine.Phase{{Work: float64(length) * float64(n),
			Speed: machine.Linear(n), Min: n, Pref: n, Max: n}}}
	}
	return jobs
}
