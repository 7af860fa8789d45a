package slurm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Candidate is a pending job in the order of the list: an evolving job, or a stock job of higher priority,
// which no evolving job may overtake.
type Candidate struct {
	Job      *state.Job    // nil: stock
	Record   *slurmctl.Job // Slurm's record
	Turn     Turn
	Nodes    []int   // eligible
	Choices  [][]int // eligible nodes by partition and alternative, if it has several; it gets one of them
	Prefer   []int   // preferred among otherwise equal nodes, for a stock job
	Parts    []Part  // of a stock job's nodes, if its constraint has numbers of nodes by feature: it gets all
	Profile  planner.Profile
	Molds    []int              // possible alternatives of a moldable job, profile's first; nil: there is no choice
	Earliest int64              // Unix second
	Licenses []slurmctl.License // what must be free when it starts
	Rank     msg.Rank
	Exceeds  bool        // jobs of its user exceed their steps
	Aim      planner.Aim // what the job wants of its own placement, if that counts at present
	AimTurn  int         // its turn among such jobs
	Late     int64       // seconds by which it may come later: its last step may end later by these
	Arrived  Arrival
}

// Arrival tells when a job came, or when its user asked for a place for it: the last job that was there, and which of several
// questions it was.
type Arrival struct {
	Job   slurmctl.JobID
	Asked time.Time // zero: it is that job
}

// Compare returns a negative number if a is earlier.
func (a Arrival) Compare(b Arrival) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), a.Asked.Compare(b.Asked))
}

// Part is a part of the nodes of a stock job: that many of some nodes. Parts of a job have no node in common.
type Part struct {
	Nodes []int
	Count int
}

// Inside returns the reservation of the site in which the candidate runs, or "".
func (cand *Candidate) Inside() string {
	if cand.Job != nil {
		return cand.Job.Reservation
	}
	if cand.Record == nil {
		return ""
	}
	return cand.Record.Reservation
}

// Queues reports whether a pending job waits only for its turn or for nodes, and not for something outside of
// the plan (a begin time, another job, a limit of its account).
func Queues(r *slurmctl.Job) bool {
	switch r.Reason {
	case "None", "Priority", "Resources":
		return r.Priority > 0
	}
	return r.Priority > 0 && (strings.HasPrefix(r.Reason, "ReqNodeNotAvail") || strings.HasPrefix(r.Reason, "Nodes required for job"))
}

// Seconds converts a time limit to whole seconds for the planner.
func Seconds(limit time.Duration) int64 {
	if s := int64(limit / time.Second); limit != slurmctl.Unlimited && s < planner.MaxDuration {
		return s
	}
	return planner.MaxDuration
}

// Margin is how much longer released nodes count as busy, in seconds.
func Margin(c *state.Core) int64 { return int64(c.Config.Margin / time.Second) }

// Profiles returns the possible profiles of the candidate, which gets one of them.
func (cand Candidate) Profiles() []planner.Profile {
	if cand.Molds == nil && cand.Late == 0 {
		return []planner.Profile{cand.Profile}
	}
	all := []planner.Profile{cand.Job.Profile}
	if cand.Molds != nil {
		all = make([]planner.Profile, len(cand.Molds))
	}
	for i, k := range cand.Molds {
		all[i] = cand.Job.Moldable.Alternatives[k]
	}
	for i, p := range all {
		if cand.Late > 0 {
			all[i] = slices.Clone(p)
			all[i][len(p)-1].Duration += cand.Late
		}
	}
	return all
}
