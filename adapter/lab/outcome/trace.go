package outcome

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
)

// Outcome is one run of a workload. Times are seconds from its first submission.
type Outcome struct {
	Name string // the strategy or scheduler, or the user's name for it
	Made Made
	Run  // with processors as nodes if a trace counts them, and jobs in order of submission
}

// Made says how an outcome was made.
type Made struct {
	Command string `json:"command,omitempty"`
	Version string `json:"version,omitempty"` // of Evoslurm
	Seed    string `json:"seed,omitempty"`
}

// FromTrace returns the outcome in a trace. Jobs that ran without a known start are unknown.
func FromTrace(t trace.Trace, name string) (Outcome, error) {
	o := Outcome{Name: name, Run: Run{Nodes: t.Header.Machine()}}
	o.Made = Made{Command: t.Header.Value("Command"), Version: t.Header.Value("MadeBy"), Seed: t.Header.Value("Seed")}
	if s := t.Header.Value("Scheduler"); s != "" {
		o.Name = s
	}
	if o.Nodes == 0 {
		return o, errors.New("it does not tell of its machine (MaxNodes, MaxProcs)")
	}
	first := math.Inf(1)
	for i := range t.Jobs {
		if t.Jobs[i].Submit >= 0 {
			first = min(first, math.Floor(t.Jobs[i].Submit))
		}
	}
	sizes := make([]Size, 0, len(t.Jobs)*2)
	told := 0
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Submit < 0 {
			continue
		}
		one := Job{ID: strconv.FormatInt(j.Number, 10), Evolving: j.Kind() == trace.Evolving, Submit: int64(j.Submit - first), Start: -1, End: -1, Limit: j.LimitSeconds(), User: int(max(j.User, 0)), State: state(j)}
		if j.Shape != nil && j.Shape.ID != "" {
			one.ID = j.Shape.ID
		}
		if at := j.Start(); at >= 0 && j.Ran() {
			told++
			if one.Area = int64(j.Size()) * j.Seconds(); j.Kind() == trace.Evolving {
				one.Area = j.Shape.Profile.Area()
			}
			one.Start, one.End = int64(at-first), int64(at-first)+j.Seconds()
			n := len(sizes)
			sizes = append(sizes, Size{one.Start, j.Size()}, Size{one.End, 0})
			one.Sizes = sizes[n : n+2 : n+2]
		}
		o.Jobs = append(o.Jobs, one)
	}
	if told == 0 {
		return o, errors.New("it does not tell of any job when it started and how long it ran: no outcome")
	}
	o.sort()
	return o, nil
}

func state(j *trace.Job) string {
	switch {
	case !j.Ran():
		return "CANCELLED"
	case j.Status == 0:
		return "FAILED"
	case j.Status == 5:
		return "CANCELLED"
	}
	return Completed
}

func (o *Outcome) sort() {
	slices.SortStableFunc(o.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
}

// Check returns what is wrong with an outcome, which may come from a file.
func (o *Outcome) Check() error {
	if o.Nodes < 1 || o.Nodes > planner.MaxNodes {
		return fmt.Errorf("%d nodes: must be within 1 … %d", o.Nodes, planner.MaxNodes)
	}
	const most = int64(trace.MostTime)
	for i := range o.Jobs {
		j := &o.Jobs[i]
		bad := func(format string, args ...any) error {
			return fmt.Errorf("job %d (%q): "+format, append([]any{i + 1, j.ID}, args...)...)
		}
		if j.Submit < 0 || j.Submit > most || j.Start > most || j.End > most || j.Start < -1 || j.End < -1 {
			return bad("submitted %d, started %d, ended %d: not times", j.Submit, j.Start, j.End)
		}
		if j.Start >= 0 && j.Start < j.Submit || j.End >= 0 && j.End < j.Start {
			return bad("submitted %d, started %d, ended %d: not in this order", j.Submit, j.Start, j.End)
		}
		for _, sizes := range [][]Size{j.Sizes, j.Planned} {
			last := int64(0)
			for _, s := range sizes {
				if s.At < last || s.At > most || s.Nodes < 0 || s.Nodes > o.Nodes {
					return bad("%d nodes from %d on: not on %d nodes, or before what is in front of it", s.Nodes, s.At, o.Nodes)
				}
				last = s.At
			}
		}
	}
	return nil
}
