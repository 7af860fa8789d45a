package trace

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// Scale is how a trace is made to load a machine in another way. 0 and 1 leave it as it is.
type Scale struct {
	Load float64 // jobs come so many times as fast, and do the same work
	Time float64 // all times are divided by this
	Size float64 // jobs and machine are so many times as large; no job is smaller than 1
	CPUs int     // so many processors are a node
}

// Header scales what the header tells.
func (s Scale) Header(h *Header) {
	if n := h.Machine(); n > 0 && (s.sized() || s.CPUs > 1) {
		machine := s.size(int64(n))
		h.Set("MaxNodes", fmt.Sprint(machine))
		h.Set("MaxProcs", fmt.Sprint(machine))
	}
	h.InNodes = h.InNodes || s.CPUs > 1
}

func (s Scale) sized() bool { return s.Size > 0 && s.Size != 1 }

func (s Scale) size(n int64) int64 {
	if n < 1 {
		return n
	}
	if s.CPUs > 1 {
		n = (n + int64(s.CPUs) - 1) / int64(s.CPUs)
	}
	if s.sized() {
		n = max(int64(math.Round(float64(n)*s.Size)), 1)
	}
	return min(n, planner.MaxNodes)
}

// Job scales a job; first is when the first one was submitted.
func (s Scale) Job(j *Job, first float64) error {
	if j.Shape != nil && j.Kind() != Rigid && (s.sized() || s.CPUs > 1 || s.Time > 0 && s.Time != 1) {
		return fmt.Errorf("job %d is %s: only the load of such a trace can be scaled; scale first, and have jobs evolve then", j.Number, j.Kind())
	}
	if s.Load > 0 && s.Load != 1 {
		j.Wait = -1 // as it came then
	}
	if s.Load > 0 && j.Submit >= 0 {
		j.Submit = math.Round((first+(j.Submit-first)/s.Load)*1000) / 1000
	}
	j.Processors, j.Wanted = s.size(j.Processors), s.size(j.Wanted)
	if s.Time > 0 && s.Time != 1 {
		if j.Submit >= 0 {
			j.Submit = first + (j.Submit-first)/s.Time
		}
		for _, t := range []*float64{&j.Wait, &j.Run, &j.Limit, &j.CPU, &j.Think} {
			if *t > 0 {
				*t /= s.Time
			}
		}
	}
	return nil
}

// Window is a period of a trace.
type Window struct {
	From, To float64 // seconds, as submissions are
	Share    float64 // percent of the machine
}

// FindWindow finds the period of that length whose utilisation, or load, is nearest to the wanted
// percentage; the first of several. Utilisation counts what runs in the period, including jobs that
// started before it (starts must be known). Load counts the work submitted in it. It visits jobs
// twice.
func FindWindow(jobs iter.Seq[Job], machine int, length float64, want float64, byLoad bool) (Window, error) {
	step := math.Max(length/24, 1)
	if machine < 1 {
		return Window{}, errors.New("the trace does not tell of its machine (MaxNodes, MaxProcs); give --nodes")
	}
	first, last := math.Inf(1), math.Inf(-1)
	for j := range jobs {
		if j.Ran() {
			if j.Wait < 0 && !byLoad {
				return Window{}, fmt.Errorf("job %d does not tell when it started: take --load", j.Number)
			}
			first, last = min(first, j.Submit), max(last, j.Submit)
		}
	}
	cells := (last - first) / step
	switch {
	case first > last:
		return Window{}, errors.New("there is no job that ran")
	case last-first < length:
		return Window{}, fmt.Errorf("jobs are submitted for %.0f seconds only", last-first)
	case cells > 100e6:
		return Window{}, fmt.Errorf("%.0f seconds are too short for a trace of %.0f", length, last-first)
	}
	work := make([]float64, int(cells)+1)
	for j := range jobs {
		if !j.Ran() {
			continue
		}
		if byLoad {
			work[int((j.Submit-first)/step)] += j.Run * float64(j.Size())
			continue
		}
		start := j.Start() - first
		for c := int(start / step); c < len(work) && float64(c)*step < start+j.Run; c++ {
			work[c] += float64(j.Size()) * (min(start+j.Run, float64(c+1)*step) - max(start, float64(c)*step))
		}
	}
	width := min(int(math.Ceil(length/step)), len(work))
	sum := 0.
	for _, w := range work[:width] {
		sum += w
	}
	best, all := Window{Share: math.Inf(1)}, step*float64(width)*float64(machine)/100
	for c := 0; ; c++ {
		if share := sum / all; math.Abs(share-want) < math.Abs(best.Share-want) {
			best = Window{first + float64(c)*step, first + float64(c)*step + length, share}
		}
		if c+width >= len(work) {
			return best, nil
		}
		sum += work[c+width] - work[c]
	}
}

// Filter is which jobs are kept. Zero values keep all.
type Filter struct {
	Users, Groups, Queues, Partitions, Statuses []int64
	MinSize, MaxSize                            int
	MinRun, MaxRun                              float64
	Ran                                         bool
}

// Keeps reports whether a job is kept.
func (f *Filter) Keeps(j *Job) bool {
	in := func(list []int64, x int64) bool { return len(list) == 0 || slices.Contains(list, x) }
	return in(f.Users, j.User) && in(f.Groups, j.Group) && in(f.Queues, j.Queue) && in(f.Partitions, j.Partition) && in(f.Statuses, j.Status) &&
		(f.MinSize == 0 || j.Size() >= f.MinSize) && (f.MaxSize == 0 || j.Size() <= f.MaxSize) &&
		(f.MinRun == 0 || j.Run >= f.MinRun) && (f.MaxRun == 0 || j.Run <= f.MaxRun) && (!f.Ran || j.Ran())
}
