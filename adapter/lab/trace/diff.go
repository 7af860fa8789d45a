package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Difference is how two outcomes of the same jobs differ. Seconds count from the first submission of each.
type Difference struct {
	Both     int             `json:"both"` // jobs that are in both and started
	OnlyA    int             `json:"only_a"`
	OnlyB    int             `json:"only_b"`
	Earlier  int             `json:"earlier"` // of B: those that started sooner than in A
	Same     int             `json:"same"`
	Later    int             `json:"later"`
	Delay    Spread          `json:"delay"` // of those that are later
	Gain     Spread          `json:"gain"`  // of those that are earlier
	Mean     float64         `json:"mean"`  // start in B less that in A, of all
	Makespan [2]float64      `json:"makespan"`
	Jobs     []JobDifference `json:"jobs,omitempty"` // that differ, the largest delay first
}

// JobDifference is one job's.
type JobDifference struct {
	Number int64   `json:"number"`
	A      float64 `json:"a"` // start
	B      float64 `json:"b"`
	EndA   float64 `json:"end_a"`
	EndB   float64 `json:"end_b"`
}

// Starts holds when the jobs of a trace started and ended, for [Diff].
type Starts struct {
	jobs  []started
	ran   bool
	first float64 // submission of a job that ran
}

// started is a job that did, and told when.
type started struct {
	number     int64
	start, end float64
}

// Add takes a job.
func (s *Starts) Add(j Job) {
	if !j.Ran() {
		return
	}
	if !s.ran || j.Submit < s.first {
		s.ran, s.first = true, j.Submit
	}
	if j.Wait >= 0 {
		s.jobs = append(s.jobs, started{j.Number, j.Start(), j.Start() + j.Run})
	}
}

// order puts jobs in order of their numbers, and has the makespan.
func (s *Starts) order(which string) (makespan float64, err error) {
	if s.ran && len(s.jobs) == 0 {
		return 0, fmt.Errorf("%s does not tell when its jobs started (evosim baseline makes one that does)", which)
	}
	slices.SortFunc(s.jobs, func(a, b started) int { return cmp.Compare(a.number, b.number) })
	for i, j := range s.jobs {
		if i > 0 && j.number == s.jobs[i-1].number {
			return 0, fmt.Errorf("%s: job %d is there twice", which, j.number)
		}
		makespan = max(makespan, j.end-s.first)
	}
	return makespan, nil
}

// Diff compares two outcomes job by job, by their numbers.
func Diff(a, b *Starts) (Difference, error) {
	var d Difference
	for i, s := range []*Starts{a, b} {
		makespan, err := s.order([]string{"the first trace", "the second trace"}[i])
		if err != nil {
			return d, err
		}
		d.Makespan[i] = makespan
	}
	left := b.jobs
	for _, p := range a.jobs {
		for len(left) > 0 && left[0].number < p.number {
			left = left[1:]
		}
		if len(left) == 0 || left[0].number > p.number {
			d.OnlyA++
			continue
		}
		d.Both++
		j := JobDifference{p.number, p.start - a.first, left[0].start - b.first, p.end - a.first, left[0].end - b.first}
		if j.A != j.B || j.EndA != j.EndB {
			d.Jobs = append(d.Jobs, j)
		}
	}
	d.OnlyB = len(b.jobs) - d.Both
	slices.SortFunc(d.Jobs, func(x, y JobDifference) int {
		if l := (y.B - y.A) - (x.B - x.A); l != 0 {
			return int(math.Copysign(1, l))
		}
		return int(min(max(x.Number-y.Number, -1), 1))
	})
	var later, earlier []float64
	sum := 0.
	for _, j := range d.Jobs { // in an order that is always the same
		delay := j.B - j.A
		sum += delay
		if delay > 0 {
			later = append(later, delay)
		} else if delay < 0 {
			earlier = append(earlier, -delay)
		}
	}
	d.Same = d.Both - len(later) - len(earlier)
	d.Earlier, d.Later, d.Delay, d.Gain = len(earlier), len(later), SpreadOf(later), SpreadOf(earlier)
	if d.Both > 0 {
		d.Mean = sum / float64(d.Both)
	}
	return d, nil
}
