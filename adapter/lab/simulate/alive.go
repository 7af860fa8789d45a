package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// The calm after a storm must show progress: as long as any job has something left to do, some job
// must begin, begin its next step, or end in time. The deadline is when everything that ran at the
// last progress, and administrators' reservations, must have ended. Time limits count as they were
// then. Otherwise two jobs that wait for each other while their limits are raised by turns would
// last forever, as would a job that is replanned behind nothing.

// patience is the extra time allowed: failed actions are retried after up to five minutes, and
// Slurm is polled every five minutes (at most 320 s in 120 storms).
const patience = 15 * time.Minute

// progress is how far all jobs have come.
type progress struct {
	left, queued int            // jobs that have not ended, and jobs that have not begun
	newest       slurmctl.JobID // users' jobs may come as others end, and last long (hands=leaves)
	forged       int            // forged jobs that have not begun: each keeps its nodes until its limit
	steps        int            // steps that applications saw begin, and those that the sidecar began for applications that overrun
}

// alive records the last progress.
type alive struct {
	progress
	since time.Duration // time without progress
	until time.Duration // deadline for progress; 0 if unknown
	told  bool
}

// checkAlive checks in the calm after a storm that some job makes progress.
func (h *checks) checkAlive() {
	now := h.s.Cluster.Elapsed()
	var at progress
	var who []string
	longest := max(h.reserved.Sub(h.s.Cluster.Now()), 0) // the longest possible cause of waiting
	for _, r := range h.s.Cluster.Queue() {
		switch {
		case r.State == slurmctl.Suspended || r.State == slurmctl.Pending && r.Priority == 0:
			h.alive = alive{} // the script has left it so, and others may wait for it
			return
		case r.Ended():
			continue
		}
		if r.State != slurmctl.Pending {
			longest = max(longest, r.EndTime.Sub(h.s.Cluster.Now()))
		}
		if start := r.StartTime.Sub(h.s.Cluster.Now()); h.evolving[r.ArrayJobID] && h.refused(r.ID) && r.State == slurmctl.Pending && start < parkedFor/2 {
			longest = max(longest, start) // other links may wait for it
		}
		if h.tricks(r) && r.State == slurmctl.Pending {
			at.forged++
		}
		if h.tricks(r) || strings.HasPrefix(r.Name, "evo_") || h.evolving[r.ArrayJobID] && h.refused(r.ID) {
			continue
		}
		at.left++
		at.newest = max(at.newest, r.ID)
		if r.State == slurmctl.Pending {
			at.queued++
		}
		why := r.Reason
		if h.evolving[r.ArrayJobID] {
			why = h.why(r.ID)
		}
		who = append(who, fmt.Sprintf("job %d (%s) is %s, %s", r.ID, r.Name, r.State, why))
	}
	for _, a := range h.apps {
		at.steps += len(a.Steps)
	}
	if h.s.Running() {
		for _, j := range h.s.View().Jobs {
			at.steps += j.Step
		}
	}
	if l := &h.alive; at != l.progress || l.until == 0 {
		h.alive = alive{progress: at, since: now, until: now + longest + patience}
	} else if now > l.until && at.left > 0 && !l.told {
		l.told = true
		h.blame(fmt.Errorf("no job makes progress: %s\nsince %s, and what ran then could last until %s at the longest", strings.Join(who, "; "), stamp(l.since), stamp(l.until-patience)))
	}
}
