package paper

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner/profile"
)

// VerifyError says which condition of the paper a schedule breaks.
type VerifyError struct {
	Condition string // "C1" or "C2" (paper, section 3.3)
	Job       int    // index; -1 if none
	Reason    string
}

func (e *VerifyError) Error() string {
	if e.Job < 0 {
		return fmt.Sprintf("%s broken: %s", e.Condition, e.Reason)
	}
	return fmt.Sprintf("%s broken by job %d: %s", e.Condition, e.Job+1, e.Reason)
}

// Verify checks a schedule. Every placement must be the job's profile (for a moldable job, the one
// of its Choice), delayed to its submission or later and expanded within its limit, the last step
// never (C1; limit is for jobs without their own). At no time may more nodes be in use than there
// are (C2). For rigid, verify against Problem.Rigid.
func Verify(p Problem, s Schedule, limit profile.ExpandLimit) error {
	if len(s) != len(p.Jobs) {
		return &VerifyError{"C1", -1, fmt.Sprintf("%d placements for %d jobs", len(s), len(p.Jobs))}
	}
	for i, j := range p.Jobs {
		if err := verifyPlacement(j, s[i], limit); err != nil {
			return &VerifyError{"C1", i, err.Error()}
		}
	}
	var changes []usage
	for _, b := range p.Busy {
		changes = append(changes, usage{b.Start, int64(b.Nodes), int64(b.Nodes)}, usage{b.end(), -int64(b.Nodes), -int64(b.Nodes)})
	}
	for _, placed := range s {
		at, before := placed.Start, int64(0)
		for _, step := range placed.Steps {
			changes = append(changes, usage{at, int64(step.Nodes) - before, 0})
			at, before = at+step.Duration, int64(step.Nodes)
		}
		changes = append(changes, usage{at, -before, 0})
	}
	slices.SortFunc(changes, func(a, b usage) int { return cmp.Compare(a.at, b.at) })
	var now usage
	for i, c := range changes {
		now.at, now.used, now.busy = c.at, now.used+c.used, now.busy+c.busy
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		// If Busy exceeds the nodes, no schedule can help.
		if now.used > max(int64(p.Nodes), now.busy) {
			return &VerifyError{"C2", -1, fmt.Sprintf("%d nodes in use from second %d on, there are %d", now.used, now.at, p.Nodes)}
		}
	}
	return nil
}

// usage holds how many more nodes are in use from a second on, and how many of them by Busy.
type usage struct{ at, used, busy int64 }

func verifyPlacement(j Job, got profile.Placement, limit profile.ExpandLimit) error {
	if j.ExpandLimit != 0 {
		limit = j.ExpandLimit
	}
	if got.Choice < 0 || got.Choice >= j.Choices() {
		return fmt.Errorf("alternative %d of %d", got.Choice+1, j.Choices())
	}
	profile := j.Choice(got.Choice)
	if got.Start < j.Submit {
		return fmt.Errorf("starts at second %d, submitted at %d", got.Start, j.Submit)
	}
	if len(got.Steps) != len(profile) {
		return fmt.Errorf("%d steps instead of %d", len(got.Steps), len(profile))
	}
	if got.End() > math.MaxInt64-1 {
		return errors.New("never ends")
	}
	for k, want := range profile {
		step := got.Steps[k]
		longest := limit.Stretch(want.Duration)
		if k == len(profile)-1 {
			longest = want.Duration
		}
		switch {
		case step.Nodes != want.Nodes:
			return fmt.Errorf("step %d has %d nodes instead of %d", k+1, step.Nodes, want.Nodes)
		case step.Duration < want.Duration:
			return fmt.Errorf("step %d lasts %d s instead of %d s", k+1, step.Duration, want.Duration)
		case step.Duration > longest:
			return fmt.Errorf("step %d lasts %d s, at most %d s are allowed", k+1, step.Duration, longest)
		}
	}
	return nil
}
