package outcome

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// Job is one job.
type Job struct {
	ID       string  `json:"id"`
	Evolving bool    `json:"evolving,omitempty"` // evolving, moldable, or malleable; otherwise a stock job
	User     int     `json:"user"`
	Submit   int64   `json:"submit"`
	Start    int64   `json:"start"`           // negative if never
	End      int64   `json:"end"`             // negative if never
	Limit    int64   `json:"limit,omitempty"` // seconds; 0 if unknown
	Area     int64   `json:"area"`            // node-seconds requested
	State    string  `json:"state"`           // Slurm's state at its end, or our reason why it did not run
	Reason   string  `json:"reason,omitempty"`
	Sizes    []Size  `json:"sizes"`
	KWh      float64 `json:"kwh,omitempty"`     // 0 if unknown
	Planned  []Size  `json:"planned,omitempty"` // of an evolving job: its plan at its start
}

// Completed is the state of a job that ended successfully.
const Completed = "COMPLETED"

// Ran reports whether the job has run and ended.
func (j *Job) Ran() bool { return j.Start >= 0 && j.End >= j.Start && len(j.Sizes) > 0 }

// Wait returns how long the job waited before it started.
func (j *Job) Wait() int64 { return j.Start - j.Submit }

// Peak returns the largest number of nodes that the job had.
func (j *Job) Peak() (nodes int) {
	for _, s := range j.Sizes {
		nodes = max(nodes, s.Nodes)
	}
	return nodes
}

// spans calls see for each period of constant size.
func (j *Job) spans(see func(start, end int64, nodes int)) {
	for i, s := range j.Sizes {
		end := j.End
		if i+1 < len(j.Sizes) {
			end = j.Sizes[i+1].At
		}
		if s.Nodes > 0 && end > s.At {
			see(s.At, end, s.Nodes)
		}
	}
}

// Size is a job's size from a second on; 0 after its end.
type Size struct {
	At    int64 `json:"at"`
	Nodes int   `json:"nodes"`
}

// Run is the outcome of jobs on a cluster.
type Run struct {
	Nodes     int
	Jobs      []Job
	Allocated float64 // node-seconds; 0 for the sum of the jobs' sizes
	HeldIdle  float64 // node-seconds
	Energy    *Energy // nil: unknown
	Left      int64   // the second at which the run was stopped before all jobs had ended; 0 if it was not
}

// Figures holds the measurements of a run.
type Figures struct {
	Jobs       int          `json:"jobs"`
	Started    int          `json:"started"`
	Ended      int          `json:"ended"`
	Makespan   int64        `json:"makespan"` // until the last job's end, or until the run was stopped
	Wait       trace.Spread `json:"wait"`
	Turnaround trace.Spread `json:"turnaround"`
	Slowdown   trace.Spread `json:"bounded_slowdown"`

	Utilisation          float64 `json:"utilisation"`           // percent of nodes × makespan
	EffectiveUtilisation float64 `json:"effective_utilisation"` // percent
	Waste                float64 `json:"waste"`                 // allocated beyond the request, in percent of the request

	Allocated float64 `json:"allocated"` // node-seconds
	Used      float64 `json:"used"`      // requested by ended jobs, plus what running jobs have had
	Idle      float64 `json:"idle"`
	HeldIdle  float64 `json:"held_idle"`
	Changes   int     `json:"changes"`
	Fairness  float64 `json:"fairness"` // 0 … 1
}

// shortest is the run time below which slowdown is bounded.
const shortest = 10

// Makespan returns when the last job ended.
func (r *Run) Makespan() (last int64) {
	for i := range r.Jobs {
		last = max(last, r.Jobs[i].End)
	}
	return last
}

// Of returns a run with only the jobs that keep accepts, without figures for all jobs together.
func (r *Run) Of(keep func(*Job) bool) Run {
	some := Run{Nodes: r.Nodes}
	for i := range r.Jobs {
		if keep(&r.Jobs[i]) {
			some.Jobs = append(some.Jobs, r.Jobs[i])
		}
	}
	return some
}

// Unfinished returns how many jobs did not complete.
func (r *Run) Unfinished() (n int) {
	for i := range r.Jobs {
		if r.Jobs[i].State != Completed {
			n++
		}
	}
	return n
}

// Measure measures a run.
func (r Run) Measure() Figures {
	f := Figures{Jobs: len(r.Jobs), Allocated: r.Allocated, HeldIdle: r.HeldIdle, Makespan: r.Left}
	var waits, turnarounds, slowdowns []float64
	users := make(map[int][]float64)
	sizes := 0.
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Start >= 0 {
			f.Started++
			waits = append(waits, float64(j.Start-j.Submit))
		}
		f.Changes += j.changes()
		if j.Start >= 0 && j.End < 0 && r.Left > 0 {
			so := *j
			so.End = r.Left
			sizes, f.Used = sizes+so.had(), f.Used+so.had()
			continue
		}
		sizes += j.had()
		if j.Start < 0 || j.End < 0 {
			continue
		}
		f.Ended++
		f.Makespan = max(f.Makespan, j.End)
		f.Used += float64(j.Area)
		turnaround, slowdown := float64(j.End-j.Submit), j.slowdown()
		turnarounds, slowdowns = append(turnarounds, turnaround), append(slowdowns, slowdown)
		users[j.User] = append(users[j.User], slowdown)
	}
	if f.Allocated == 0 {
		f.Allocated = sizes
	}
	if whole := float64(r.Nodes) * float64(f.Makespan); whole > 0 {
		f.Utilisation, f.EffectiveUtilisation = 100*f.Allocated/whole, 100*f.Used/whole
		f.Idle = whole - f.Allocated
	}
	if f.Used > 0 {
		f.Waste = 100 * (f.Allocated - f.Used) / f.Used
	}
	f.Wait, f.Turnaround, f.Slowdown = trace.SpreadOf(waits), trace.SpreadOf(turnarounds), trace.SpreadOf(slowdowns)
	f.Fairness = jain(users)
	return f
}

// slowdown returns the job's bounded slowdown.
func (j *Job) slowdown() float64 {
	return max(1, float64(j.End-j.Submit)/max(float64(j.End-j.Start), shortest))
}

// changes returns how often the job grew or shrank while it ran.
func (j *Job) changes() (n int) {
	for i, s := range j.Sizes {
		if i > 0 && s.Nodes > 0 {
			n++
		}
	}
	return n
}

// had returns the node-seconds that the job had.
func (j *Job) had() (area float64) {
	j.spans(func(start, end int64, nodes int) { area += float64(nodes) * float64(end-start) })
	return area
}

// jain returns Jain's index over the means of users; 1 without users.
func jain(users map[int][]float64) float64 {
	var means []float64
	for _, all := range users {
		means = append(means, mean(all))
	}
	if len(means) == 0 {
		return 1
	}
	slices.Sort(means) // the same sum whatever the order of the map
	sum, squares := 0., 0.
	for _, m := range means {
		sum += m
		squares += float64(m * m) // no fused multiply-add: the same on every processor
	}
	return sum * sum / (float64(len(means)) * squares)
}

func mean(x []float64) float64 {
	sum := 0.
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
