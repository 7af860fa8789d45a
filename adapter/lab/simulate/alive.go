package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Once a storm is over nobody waits for longer than what is before him can last: as long as anybody has
// something left to do somebody gets on, that is a job begins, or begins its next step, or ends, by the
// time by which all that ran when somebody last got on, and administrators' reservations, must have ended. Time limits are what
// they were then: two jobs that wait for each other, and whose limits are raised by turns, would last
// for ever, as would a job that is planned anew behind nobody.

// patience is what it may take beside that: what failed is tried again after up to five minutes, and a
// look is taken every five minutes (320 s at most in 120 storms).
const patience = 15 * time.Minute

// progress is how far everybody has come.
type progress struct {
	left, queued int // jobs that have not ended, and have not begun
	steps        int // that applications saw begin
}

// alive is what is known of that.
type alive struct {
	progress
	since time.Duration // nobody got on
	until time.Duration // somebody is to; 0: not known
	told  bool
}

// checkAlive sees in the calm after a storm that somebody gets on.
func (h *history) checkAlive() {
	now := h.s.Cluster.Elapsed()
	var at progress
	var who []string
	longest := max(h.reserved.Sub(h.s.Cluster.Now()), 0) // what could last longest
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
		if h.tricks(r) || strings.HasPrefix(r.Name, "evo_") || h.evolving[r.ID] && h.refused(r.ID) {
			continue
		}
		at.left++
		if r.State == slurmctl.Pending {
			at.queued++
		}
		why := r.Reason
		if h.evolving[r.ID] {
			why = h.why(r.ID)
		}
		who = append(who, fmt.Sprintf("job %d (%s) is %s, %s", r.ID, r.Name, r.State, why))
	}
	for _, a := range h.apps {
		at.steps += len(a.Steps)
	}
	if l := &h.alive; at != l.progress || l.until == 0 {
		h.alive = alive{progress: at, since: now, until: now + longest + patience}
	} else if now > l.until && at.left > 0 && !l.told {
		l.told = true
		h.blame(fmt.Errorf("nobody gets on: %s\nsince %s, and what ran then could last until %s at the longest", strings.Join(who, "; "), stamp(l.since), stamp(l.until-patience)))
	}
}
