package simulate

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// holdSlack is how much longer than its budget a stock job may be held back: time for a poll, a
// hold given up at the second attempt, and Slurm's next scheduling pass.
const holdSlack = 2 * time.Minute

// heldBack tracks how long holds have kept stock jobs from starting, each while first in Slurm's
// order.
type heldBack struct {
	total map[slurmctl.JobID]time.Duration
	job   slurmctl.JobID // currently; 0 for none
	since time.Duration
}

// checkDelay checks that no stock job that is first in Slurm's order, with enough idle nodes, is
// held back longer than its budget.
func (h *checks) checkDelay() {
	b, now := &h.heldBack, h.s.Cluster.Elapsed()
	if b.job != 0 {
		if b.total == nil {
			b.total = map[slurmctl.JobID]time.Duration{}
		}
		b.total[b.job] += now - b.since
		if total := b.total[b.job]; total > h.s.Config.MaxDelay+holdSlack {
			h.blame(fmt.Errorf("stock job %d is held back for longer than %v", b.job, h.s.Config.MaxDelay+holdSlack))
		}
	}
	b.job, b.since = h.firstHeldBack(), now
}

// firstHeldBack returns the first job in Slurm's order if it is a stock job that only holds keep
// from starting, otherwise 0.
func (h *checks) firstHeldBack() slurmctl.JobID {
	if h.s.Cluster.Elapsed() < h.calmFrom || h.had != nil || !h.s.Running() || len(h.stocks) == 0 {
		return 0
	}
	var first *slurmctl.Job
	queue := h.s.Cluster.Queue()
	for i := range queue {
		r := &queue[i]
		if r.State == slurmctl.Pending && r.Priority > 0 && !h.forged[r.ID] && (first == nil || r.Priority > first.Priority) {
			first = r
		}
	}
	if first == nil || !h.stocks[first.ID] || first.Reservation != "" {
		return 0
	}
	for _, j := range h.s.View().Jobs {
		if j.State == "waiting" || j.State == "starting" {
			return 0 // the growth comes first
		}
	}
	if without, with := h.s.Cluster.Idle(first.TimeLimit, "evo_"); without >= first.NumNodes && with < first.NumNodes {
		return first.ID
	}
	return 0
}
