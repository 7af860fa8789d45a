package state

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

const (
	// mostEpilog bounds what one job can teach: a process that nothing ends keeps its job COMPLETING for hours.
	mostEpilog = 5 * time.Minute
	// epilogUsers is how many users count in a partition, and mostEpilogs how many partitions do.
	epilogUsers, mostEpilogs = 16, 256
	// epilogWeight is the weight of a user's average: a further job moves it by a quarter of the difference.
	epilogWeight = 4
)

// Epilog holds how long the jobs of a partition were COMPLETING, by user: the user whose job ended last comes last.
type Epilog struct {
	Users []EpilogOf
	Saved int64 // seconds, in the database
}

// EpilogOf is how long the jobs of a user were COMPLETING: a moving average.
type EpilogOf struct {
	UID  uint32
	Took time.Duration
}

// LearnEpilog takes how long a user's job was COMPLETING in a partition.
func (c *Core) LearnEpilog(partition string, uid uint32, took time.Duration) {
	e := c.Epilogs[partition]
	if e == nil {
		if len(c.Epilogs) >= mostEpilogs {
			return
		}
		e = &Epilog{}
		c.Epilogs[partition] = e
	}
	of := EpilogOf{uid, max(min(took, mostEpilog), 0)}
	if i := slices.IndexFunc(e.Users, func(u EpilogOf) bool { return u.UID == uid }); i >= 0 {
		of.Took = e.Users[i].Took + (of.Took-e.Users[i].Took)/epilogWeight
		e.Users = slices.Delete(e.Users, i, i+1)
	} else if len(e.Users) == epilogUsers {
		e.Users = slices.Delete(e.Users, 0, 1)
	}
	e.Users = append(e.Users, of)
}

// EpilogSeconds returns how long jobs of a partition are COMPLETING: of the users' averages the upper quartile, but never
// the longest of several. So no user can make it longer than other users' jobs take. It reports false if none was seen.
func (c *Core) EpilogSeconds(partition string) (int64, bool) {
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
func (c *Core) CopiedEpilogs() map[string]*Epilog {
	all := make(map[string]*Epilog, len(c.Epilogs))
	for partition, e := range c.Epilogs {
		all[partition] = &Epilog{slices.Clone(e.Users), e.Saved}
	}
	return all
}

// KeepEpilogs forgets partitions that are gone, and saves what changed.
func (c *Core) KeepEpilogs(exists func(partition string) bool) {
	for _, partition := range SortedKeys(c.Epilogs) {
		seconds, _ := c.EpilogSeconds(partition)
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
func (c *Core) RestoreEpilogs(rows []row.Epilog) {
	for _, r := range rows {
		c.LearnEpilog(r.Partition, savedEpilog, time.Duration(r.Seconds)*time.Second)
		if e := c.Epilogs[r.Partition]; e != nil {
			e.Saved = r.Seconds
		}
	}
}
