package msg

import "github.com/evoslurm/evoslurm/planner"

// PadLimit returns the expand limit for the padded profile that keeps the requested profile within its own
// limit. Padding makes some steps longer, and a multiple of them even more so.
func PadLimit(p planner.Profile, margin int64, limit planner.ExpandLimit) planner.ExpandLimit {
	if limit == planner.Infinite || limit <= 1 {
		return limit
	}
	safe := limit
	for i, step := range planner.Pad(p, margin) {
		grown := step.Duration - p[i].Duration
		safe = min(safe, planner.ExpandLimit(float64(limit.Stretch(p[i].Duration)+grown)/float64(step.Duration)))
	}
	return max(safe, 1)
}
