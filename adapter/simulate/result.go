package simulate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is what became of an experiment. Times are seconds from its start.
type Result struct {
	Strategy string      `json:"strategy"`
	Nodes    int         `json:"nodes"`
	Sidecar  bool        `json:"sidecar"` // false: no job evolves, and it had nothing to do
	Jobs     []JobResult `json:"jobs"`
	Metrics  Metrics     `json:"metrics"`
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
	Sizes    []Size       `json:"sizes"`            // of the job itself; 0 nodes: it had ended
	Steps    []StepResult `json:"steps,omitempty"`  // as its application saw them begin
}

// States of a job that Slurm does not have.
const (
	Refused = "REFUSED" // at submission
	Waiting = "WAITING" // for ever
)

// Size is that a job has so many nodes from then on.
type Size struct {
	At    int64 `json:"at"`
	Nodes int   `json:"nodes"`
}

// StepResult is a step that an application has begun.
type StepResult struct {
	Step  int   `json:"step"`
	Nodes int   `json:"nodes"`
	At    int64 `json:"at"`
}

// Metrics are the figures of an experiment.
type Metrics struct {
	Makespan             int64   `json:"makespan"` // until the last job's end
	Started              int     `json:"started"`
	Ended                int     `json:"ended"`
	Unfinished           int     `json:"unfinished"`            // jobs that did not complete
	Utilisation          float64 `json:"utilisation"`           // percent of nodes × makespan that was allocated
	EffectiveUtilisation float64 `json:"effective_utilisation"` // percent that jobs asked for
	Waste                float64 `json:"waste"`                 // percent of what jobs asked for that was allocated beyond it
	AvgWait              float64 `json:"avg_wait"`
	Allocated            float64 `json:"allocated"` // node-seconds
	Used                 float64 `json:"used"`      // node-seconds that jobs which ran asked for
	Idle                 float64 `json:"idle"`      // node-seconds
	HeldIdle             float64 `json:"held_idle"` // of these, on nodes that a hold named
	Commands             uint64  `json:"commands"`  // that the sidecar ran
	Polls                uint64  `json:"polls"`     // of Slurm, of three commands each
	LeftOut              uint64  `json:"left_out"`  // of these, since nothing had changed
}

// Table writes the result for people; jobs that completed only if all is asked for.
func (r *Result) Table(out io.Writer, all bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "JOB\tSUBMIT\tWAIT\tSTART\tEND\tSTATE\tSIZES\n"
	for _, j := range r.Jobs {
		if !all && j.State == "COMPLETED" {
			continue
		}
		fmt.Fprint(w, head)
		head = ""
		state := j.State
		if j.Reason != "" {
			state += " (" + j.Reason + ")"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", j.ID, j.Submit, j.Wait, or(j.Start), or(j.End), state, j.sizes())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if head == "" {
		fmt.Fprintln(out)
	}
	m := r.Metrics
	who := "stock Slurm alone"
	if r.Sidecar {
		who = "strategy " + r.Strategy
	}
	_, err := fmt.Fprintf(out, `%s on %d nodes: %d jobs, %d started, %d ended, %d did not complete
makespan %d s (%.1f days), average wait %.0f s
utilisation %.1f %%, effective utilisation %.1f %%, waste %.2f %%
node-seconds: %.0f allocated, %.0f idle, of which %.0f on held nodes
`, who, r.Nodes, len(r.Jobs), m.Started, m.Ended, m.Unfinished, m.Makespan, (time.Duration(m.Makespan)*time.Second).Hours()/24, m.AvgWait,
		m.Utilisation, m.EffectiveUtilisation, m.Waste, m.Allocated, m.Idle, m.HeldIdle)
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

// sizes are the job's sizes as a profile.
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
