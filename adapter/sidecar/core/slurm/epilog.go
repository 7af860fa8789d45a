package slurm

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job's nodes are free once its epilog has run, and once its processes have ended. How long that takes is learnt from
// the polls, for each partition. Between two polls it is not seen: a job that was last seen COMPLETING in one poll is
// supposed to have ended in the middle of the time until the next, and one that was never seen so at once.

const (
	// epilogGap is the longest time between two polls that teaches anything.
	epilogGap = 30 * time.Second
	// mostEpilog bounds what one job can teach: a process that nothing ends keeps its job COMPLETING for hours.
	mostEpilog = 5 * time.Minute
	// epilogUsers is how many users count in a partition, and mostEpilogs how many partitions do.
	epilogUsers, mostEpilogs = 16, 256
	// epilogWeight is the weight of a user's average: a further job moves it by a quarter of the difference.
	epilogWeight = 4
)

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
			learnEpilog(c, r.Partition, r.UID, took)
		}
	}
	keepEpilogs(c, func(partition string) bool { _, known := s.Partitions[partition]; return known })
}

// learnEpilog takes how long a user's job was COMPLETING in a partition.
func learnEpilog(c *state.Core, partition string, uid uint32, took time.Duration) {
	e := c.Epilogs[partition]
	if e == nil {
		if len(c.Epilogs) >= mostEpilogs {
			return
		}
		e = &state.Epilog{}
		c.Epilogs[partition] = e
	}
	of := state.EpilogOf{uid, max(min(took, mostEpilog), 0)}
	if i := slices.IndexFunc(e.Users, func(u state.EpilogOf) bool { return u.UID == uid }); i >= 0 {
		of.Took = e.Users[i].Took + (of.Took-e.Users[i].Took)/epilogWeight
		e.Users = slices.Delete(e.Users, i, i+1)
	} else if len(e.Users) == epilogUsers {
		e.Users = slices.Delete(e.Users, 0, 1)
	}
	e.Users = append(e.Users, of)
}

// epilogSeconds returns how long jobs of a partition are COMPLETING: of the users' averages the upper quartile, but never
// the longest of several. So no user can make it longer than other users' jobs take. It reports false if none was seen.
func epilogSeconds(c *state.Core, partition string) (int64, bool) {
	e := c.Epilogs[partition]
	if e == nil || len(e.Users) == 0 {
		return 0, false
	}
	all := make([]time.Duration, len(e.Users))
	for i, u := range e.Users {
		all[i] = u.Took
	}
	slices.Sort(all)
	took := all[(len(all)-1)*3/4]
	return int64((took + time.Second - 1) / time.Second), true
}

// CopiedEpilogs returns a copy that shares nothing with the core.
func CopiedEpilogs(c *state.Core) map[string]*state.Epilog {
	all := make(map[string]*state.Epilog, len(c.Epilogs))
	for partition, e := range c.Epilogs {
		all[partition] = &state.Epilog{slices.Clone(e.Users), e.Saved}
	}
	return all
}

// keepEpilogs forgets partitions that are gone, and saves what changed.
func keepEpilogs(c *state.Core, exists func(partition string) bool) {
	for _, partition := range state.SortedKeys(c.Epilogs) {
		seconds, _ := epilogSeconds(c, partition)
		switch e := c.Epilogs[partition]; {
		case !exists(partition):
			delete(c.Epilogs, partition)
			c.Emit(msg.SaveEpilog{Row: row.Epilog{Partition: partition, Seconds: -1}})
		case e.Saved != seconds:
			e.Saved = seconds
			c.Emit(msg.SaveEpilog{Row: row.Epilog{Partition: partition, Seconds: seconds}})
		}
	}
}

// savedEpilog stands for the users of an earlier run.
const savedEpilog = 1<<32 - 1

// RestoreEpilogs takes over what an earlier run learnt.
func RestoreEpilogs(c *state.Core, rows []row.Epilog) {
	for _, r := range rows {
		learnEpilog(c, r.Partition, savedEpilog, time.Duration(r.Seconds)*time.Second)
		if e := c.Epilogs[r.Partition]; e != nil {
			e.Saved = r.Seconds
		}
	}
}
