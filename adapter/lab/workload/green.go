package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// Green is a workload of Georgiou's experiment with nodes that are switched off (thesis 2010, section 6.3.2): five hours of
// a DAS2 log on 32 nodes. The log is not available, so the hours are drawn to match the text:
//
//   - Load and number of jobs are table 6.2's. Of the load, LargeWork percent is in LargeJobs percent of the jobs: 50.32 % is
//     "composed by a small number of large jobs", 89.62 % "mostly by small jobs".
//   - A large job has a quarter, half, or all of the nodes, a small one 1, 2, or 4. Lengths are exponential.
//   - Jobs of the normal mode wait 8 s and 1 s on average, so each is submitted when its nodes are free: at the first such
//     time after a random second.
//   - Time limits are the next round time (5, 15, 30 minutes, 1, 2, 5 hours, and then whole days).
type Green struct {
	Nodes     int
	Seconds   int64
	Load      float64 // percent of all node-seconds
	Jobs      int
	LargeJobs int // percent of the jobs
	LargeWork int // percent of the load
}

// GreenJob is a rigid job.
type GreenJob struct {
	Submit, Length, Limit int64
	Nodes                 int
}

// Validate returns what cannot be generated.
func (g Green) Validate() error {
	switch {
	case g.Nodes < 4 || g.Nodes > 1024:
		return fmt.Errorf("nodes: %d is not within 4 … 1024", g.Nodes)
	case g.Seconds < 3600 || g.Seconds > 1e6:
		return fmt.Errorf("seconds: %d is not within 3600 … 1000000", g.Seconds)
	case !(g.Load >= 1 && g.Load <= 95):
		return fmt.Errorf("load: %v is not within 1 … 95 %%", g.Load)
	case g.Jobs < 1 || g.Jobs > 10_000:
		return fmt.Errorf("jobs: %d is not within 1 … 10000", g.Jobs)
	case g.LargeJobs < 0 || g.LargeJobs > 100:
		return fmt.Errorf("large jobs: %d is not within 0 … 100 %%", g.LargeJobs)
	case g.LargeWork < 0 || g.LargeWork > 100:
		return fmt.Errorf("large work: %d is not within 0 … 100 %%", g.LargeWork)
	}
	return nil
}

// Generate draws test number test (from 0) of a seed, in order of submission.
func (g Green) Generate(seed uint64, test int) ([]GreenJob, error) {
	random := rand.New(rand.NewPCG(seed, uint64(test)))
	for range 1000 {
		if jobs := g.place(random, g.draw(random)); jobs != nil {
			return jobs, nil
		}
	}
	return nil, errors.New("such jobs do not fit beside each other: use more of them, or less load")
}

// draw returns jobs with sizes and lengths.
func (g Green) draw(random *rand.Rand) []GreenJob {
	jobs, large := make([]GreenJob, g.Jobs), g.Jobs*g.LargeJobs/100
	work := float64(g.Nodes) * float64(g.Seconds) * g.Load / 100
	part := func(jobs []GreenJob, work float64, least, sizes int) {
		lengths, area := make([]float64, len(jobs)), 0.
		for i := range jobs {
			jobs[i].Nodes, lengths[i] = least<<random.IntN(sizes), random.ExpFloat64()
			area += lengths[i] * float64(jobs[i].Nodes)
		}
		for i := range jobs {
			jobs[i].Length = max(int64(math.Round(lengths[i]*work/area)), 1)
			jobs[i].Limit = roundLimit(jobs[i].Length)
		}
	}
	heavy := work * float64(g.LargeWork) / 100
	if large == 0 {
		heavy = 0
	} else if large == g.Jobs {
		heavy = work
	}
	part(jobs[:large], heavy, g.Nodes/4, 3)
	part(jobs[large:], work-heavy, 1, min(bits.Len(uint(g.Nodes/4)), 3))
	return jobs
}

// place gives the jobs their times, the largest first; nil where they do not fit.
func (g Green) place(random *rand.Rand, jobs []GreenJob) []GreenJob {
	area := func(j GreenJob) int64 { return int64(j.Nodes) * j.Length }
	slices.SortFunc(jobs, func(a, b GreenJob) int { return cmp.Compare(area(b), area(a)) })
	var used planner.Timeline
	for i := range jobs {
		j := &jobs[i]
		j.Submit = used.EarliestFree(random.Int64N(g.Seconds), j.Nodes, j.Length, g.Nodes)
		if j.Submit+j.Length > g.Seconds {
			j.Submit = used.EarliestFree(0, j.Nodes, j.Length, g.Nodes)
		}
		if j.Submit+j.Length > g.Seconds {
			return nil
		}
		used.Add(j.Submit, j.Submit+j.Length, j.Nodes)
	}
	slices.SortStableFunc(jobs, func(a, b GreenJob) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs
}

// roundLimit returns the time limit that a user sets for a job of that length.
func roundLimit(length int64) int64 {
	for _, limit := range []int64{300, 900, 1800, 3600, 7200, 5 * 3600} {
		if length <= limit {
			return limit
		}
	}
	const day = 24 * 3600
	return (length + day - 1) / day * day
}
