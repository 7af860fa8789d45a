package slurm

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job's nodes are free once its epilog has run, and once its processes have ended. How long that takes is learnt from
// the polls, for each partition. Between two polls it is not seen: a job that was last seen COMPLETING in one poll is
// supposed to have ended in the middle of the time until the next, and one that was never seen so at once.

// epilogGap is the longest time between two polls that teaches anything.
const epilogGap = 30 * time.Second

// LearnEpilogs learns from the jobs that are no longer there, or no longer COMPLETING.
func LearnEpilogs(c *state.Core, before, s *state.Snapshot) {
	if before == nil {
		return
	}
	gap := s.Taken.Sub(before.Taken)
	if gap <= 0 || gap > epilogGap {
		return
	}
	for i := range before.Jobs {
		r := &before.Jobs[i]
		took := time.Duration(0)
		switch next := s.ByID[r.ID]; {
		case r.State == slurmctl.Running && (next == nil || next.Ended()):
		case r.State == slurmctl.Completing && (next == nil || next.State != slurmctl.Completing) && !r.EndTime.IsZero():
			took = before.Taken.Sub(r.EndTime) + gap/2
		default:
			continue
		}
		if _, known := s.Partitions[r.Partition]; known {
			c.LearnEpilog(r.Partition, r.UID, took)
		}
	}
	c.KeepEpilogs(func(partition string) bool { _, known := s.Partitions[partition]; return known })
}
