package plan

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// A job with --switches=N@T waits for up to T until its first nodes are on at most N leaf switches. The time counts from
// when the job could start on more. The planner chooses the start (planner/together.go), so Slurm must not wait as well.

// MostTogether is how many jobs with --switches of a user are planned at a time. So one user's jobs cannot have all
// others planned again and again.
const MostTogether = 8

// SwitchesOf returns on how many leaf switches a job wants to start at most; 0 for any number.
func SwitchesOf(j *state.Job) int {
	if j == nil || j.Asked == nil {
		return 0
	}
	return j.Asked.Switches
}

// waitsTogether reports whether a queued job still waits for nodes on few switches, at a second. Slurm ignores --switches
// where it knows no switches, and on blocks.
func waitsTogether(c *state.Core, j *state.Job, now int64) bool {
	return SwitchesOf(j) > 0 && len(c.Topology.Switches) > 0 && !c.Topology.Blocks &&
		(j.CouldStart == 0 || !c.ReachedSecond(now, j.CouldStart+patience(j)))
}

// patience returns how long a job waits for nodes on few switches, in seconds.
func patience(j *state.Job) int64 { return slurm.Seconds(j.Asked.SwitchWait) }

// together returns the largest number of leaf switches that a job wants to start on (0: any), and how long it waits for that.
func together(c *state.Core, j *state.Job, now int64) (leaves int, wait int64) {
	if j == nil || !waitsTogether(c, j, now) {
		return 0, 0
	}
	if wait = patience(j); j.CouldStart > 0 {
		wait = c.Since(now, j.CouldStart+wait) - now
	}
	return SwitchesOf(j), wait
}

// waitTogether is called with how many seconds later a job is planned than it could start on more switches.
func waitTogether(c *state.Core, j *state.Job, by int64) {
	if by == 0 || len(j.Plan) == 0 {
		return
	}
	could := j.Plan[0].Start - by
	if j.CouldStart == 0 && c.ReachedSecond(c.Snapshot.Taken.Unix(), could) {
		j.CouldStart = could
	}
	if j.CouldStart > 0 {
		j.WaitsFor(state.Reason{Kind: state.WhyFewSwitches, Nodes: SwitchesOf(j), At: time.Unix(j.CouldStart+patience(j), 0)})
	}
}

// inTurns leaves out the jobs with --switches of a user who has too many that come before.
func inTurns(c *state.Core, list []slurm.Candidate, now int64) []slurm.Candidate {
	of, kept := map[uint32]int{}, list[:0]
	for _, cand := range list {
		if j := cand.Job; j != nil && waitsTogether(c, j, now) {
			if of[j.UID]++; of[j.UID] > MostTogether {
				dropPlan(c, j, fmt.Sprintf("is planned when earlier jobs of %s with --switches have begun: %d of these are planned at a time", j.User, MostTogether))
				continue
			}
		}
		kept = append(kept, cand)
	}
	return kept
}
