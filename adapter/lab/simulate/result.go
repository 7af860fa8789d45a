package simulate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// Result is the outcome of an experiment. Times are seconds from its start.
type Result struct {
	Strategy string       `json:"strategy"`
	Nodes    int          `json:"nodes"`
	Sidecar  bool         `json:"sidecar"`        // false if no job evolves, so that it had nothing to do
	Left     int64        `json:"left,omitempty"` // the second at which the run was stopped before all jobs had ended
	Made     outcome.Made `json:"made,omitzero"`
	Jobs     []JobResult  `json:"jobs"`
	Metrics  Metrics      `json:"metrics"`

	HeldIdle []outcome.Use `json:"-"` // nodes that were held and idle

	Kinds  []Kind      `json:"-"` // nil without kinds of nodes and power saving
	Uses   [][]KindUse `json:"-"` // of each job; nil without kinds of nodes
	Saving bool        `json:"-"` // Slurm switches nodes off
}

// JobResult is one job.
type JobResult struct {
	ID       string       `json:"id"`
	Evolving bool         `json:"evolving,omitempty"`
	Submit   int64        `json:"submit"`
	Wait     int64        `json:"wait"`
	Start    int64        `json:"start"` // -1: never
	End      int64        `json:"end"`   // -1: never
	State    string       `json:"state"`
	Reason   string       `json:"reason,omitempty"` // why it did not run, or not on
	User     int          `json:"user"`
	Area     int64        `json:"area"`              // node-seconds that it asked for
	Islands  int          `json:"islands,omitempty"` // of the experiment, on which it began
	Sizes    []Size       `json:"sizes"`             // of the job itself; 0 nodes: it had ended
	Steps    []StepResult `json:"steps,omitempty"`   // as its application saw them begin
	Planned  []Size       `json:"planned,omitempty"` // of an evolving job: as its plan was when it started
	KWh      float64      `json:"kwh,omitempty"`     // if Account was called
}

// States of a job that Slurm does not have.
const (
	Refused = "REFUSED" // at submission
	Waiting = "WAITING" // forever, or until the run was stopped
	ToCome  = "TO COME" // not submitted when the run was stopped
)

// Size is a job's size from a second on.
type Size = outcome.Size

// StepResult is a step that an application has begun.
type StepResult struct {
	Step  int   `json:"step"`
	Nodes int   `json:"nodes"`
	At    int64 `json:"at"`
}

// Metrics holds the figures of an experiment. What they allocate includes expanders.
type Metrics struct {
	outcome.Figures
	Unfinished int    `json:"unfinished"` // jobs that did not complete
	Commands   uint64 `json:"commands"`   // that the sidecar ran
	Polls      uint64 `json:"polls"`      // of Slurm, of three commands each
	LeftOut    uint64 `json:"left_out"`   // polls skipped because nothing had changed

	Energy *outcome.Energy  `json:"energy,omitempty"` // if Account was called
	Filled []outcome.Filled `json:"filled,omitempty"` // if Fill was called

	Moved []int64 `json:"moved,omitempty"` // how much later growths on demand made waiting jobs, in seconds, ascending
}

// Outcome returns its jobs in the form of package outcome.
func (r *Result) Outcome() []outcome.Job {
	jobs := make([]outcome.Job, len(r.Jobs))
	for i, j := range r.Jobs {
		jobs[i] = outcome.Job{ID: j.ID, Evolving: j.Evolving, User: j.User, Submit: j.Submit, Start: j.Start, End: j.End, Area: j.Area, Sizes: j.Sizes}
	}
	return jobs
}

// Fill computes how much of the idle time best-effort tasks of these lengths, in seconds, could use.
func (r *Result) Fill(lengths []int64) {
	run := outcome.Run{Nodes: r.Nodes, Jobs: r.Outcome()}
	r.Metrics.Filled = run.Fill(r.Metrics.Makespan, r.HeldIdle, lengths)
}

// measure computes the jobs' figures; allocated and held idle are node-seconds.
func (r *Result) measure(allocated, heldIdle float64) {
	r.Metrics.Figures = outcome.Run{Nodes: r.Nodes, Jobs: r.Outcome(), Allocated: allocated, HeldIdle: heldIdle, Left: r.Left}.Measure()
	r.Metrics.Unfinished = 0
	for _, j := range r.Jobs {
		if j.State != "COMPLETED" {
			r.Metrics.Unfinished++
		}
	}
}

// list writes the jobs for people, and returns how many are still to come.
func (r *Result) list(out io.Writer, all bool) (toCome int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "JOB\tSUBMIT\tWAIT\tSTART\tEND\tSTATE\tSIZES\n"
	kwh := func(*JobResult) string { return "" }
	if r.Metrics.Energy != nil {
		head = "JOB\tSUBMIT\tWAIT\tSTART\tEND\tSTATE\tKWH\tSIZES\n"
		kwh = func(j *JobResult) string { return fmt.Sprintf("%.2f\t", j.KWh) }
	}
	for _, j := range r.Jobs {
		if j.State == ToCome {
			toCome++
		}
		if !all && (j.State == "COMPLETED" || j.State == ToCome) {
			continue
		}
		fmt.Fprint(w, head)
		head = ""
		state := j.State
		if j.Reason != "" {
			state += " (" + j.Reason + ")"
		}
		wait := "-"
		if j.Start >= 0 {
			wait = fmt.Sprint(j.Wait)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s%s\n", j.ID, j.Submit, wait, or(j.Start), or(j.End), state, kwh(&j), j.sizes())
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	if head == "" {
		fmt.Fprintln(out)
	}
	return toCome, nil
}

// Table writes the result for people, with completed jobs only if all is set.
func (r *Result) Table(out io.Writer, all bool) error {
	toCome, err := r.list(out, all)
	if err != nil {
		return err
	}
	if r.Left > 0 {
		fmt.Fprintf(out, "left at second %d, with %d of %d jobs still to come: figures are up to then\n", r.Left, toCome, len(r.Jobs))
	}
	m := r.Metrics
	who := "stock Slurm alone"
	if r.Sidecar {
		who = "strategy " + r.Strategy
	}
	_, err = fmt.Fprintf(out, `%s on %d nodes: %d jobs, %d started, %d ended, %d did not complete
makespan %d s (%.1f days), average wait %.0f s, turnaround %.0f s, bounded slowdown %.1f
utilisation %.1f %%, effective utilisation %.1f %%, waste %.2f %%
node-seconds: %.0f allocated, %.0f idle (%.0f of them on held nodes)
jobs changed their size %d times; fairness %.2f
`, who, r.Nodes, len(r.Jobs), m.Started, m.Ended, m.Unfinished, m.Makespan, (time.Duration(m.Makespan)*time.Second).Hours()/24,
		m.Wait.Mean, m.Turnaround.Mean, m.Slowdown.Mean, m.Utilisation, m.EffectiveUtilisation, m.Waste, m.Allocated, m.Idle, m.HeldIdle, m.Changes, m.Fairness)
	if err == nil && m.Energy != nil {
		err = m.Energy.Table(out)
	}
	for _, f := range m.Filled {
		_, more := fmt.Fprintf(out, "idle time for tasks of %v: %d would fit, in %.1f %% of it, and in %.1f %% of that on held nodes\n", time.Duration(f.Task)*time.Second, f.Tasks, f.Part, f.Held)
		err = errors.Join(err, more)
	}
	if err == nil && r.Sidecar {
		_, err = fmt.Fprintf(out, "%d commands of the sidecar, %d polls of Slurm\n", m.Commands, m.Polls)
	}
	return err
}

func or(second int64) string {
	if second < 0 {
		return "-"
	}
	return fmt.Sprint(second)
}

// sizes returns the job's sizes as a profile.
func (j *JobResult) sizes() string {
	var all []string
	for i, s := range j.Sizes[:max(len(j.Sizes)-1, 0)] {
		all = append(all, fmt.Sprintf("%d@%ds", s.Nodes, j.Sizes[i+1].At-s.At))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ",")
}
