package power

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job that nobody planned starts at once if enough nodes are awake, and otherwise waits for a boot. So the reserve of a
// partition must be as large as what arrives within a boot. How much that is, is learnt for each hour of the week: of each
// period as long as a boot in which jobs arrived, how many nodes they took. A period counts once, whatever a user submits in
// it. If the reserve is too small in a share of these periods, jobs wait for that share of a boot on average: max_wait
// bounds it.

const (
	// mostPeriods is how many periods of an hour of the week count, the last ones.
	mostPeriods = 64
	// leastWeeks is in how many weeks an hour must have been watched to count.
	leastWeeks = 2
	// mostArrivals bounds the partitions whose arrivals are learnt.
	mostArrivals = 64
	// cautiousPart is which part of a partition stays awake while its arrivals are not known.
	cautiousPart = 4
	// learnGap is the longest time between two polls that teaches anything.
	learnGap = 15 * time.Minute
	// leastWatched is how long an hour must have been watched to count.
	leastWatched = 50 * time.Minute
)

// hourOf returns the hour of the week, in UTC, from Monday 0:00.
func hourOf(at time.Time) int {
	at = at.UTC()
	return (int(at.Weekday())+6)%7*24 + at.Hour()
}

// Learn learns from the jobs that have nodes since the previous poll, and did not have to wait for them.
func Learn(c *state.Core, before, s *state.Snapshot) {
	a := &c.Power.Arrivals
	if !c.Power.On || before == nil || s.Taken.Sub(before.Taken) > learnGap {
		a.Begun, a.Entered = time.Time{}, time.Time{}
		return
	}
	if hour := hourOf(c.Wall(s.Taken)); a.Entered.IsZero() || hour != a.Hour {
		leaveHour(c, s)
		a.Hour, a.Entered = hour, s.Taken
	}
	if a.Begun.IsZero() {
		a.Begun, a.Taken = s.Taken, map[string]int{}
	}
	for i := range s.Jobs {
		if r := &s.Jobs[i]; arrived(c, before, r) && len(s.Partitions[r.Partition].Nodes) > 0 {
			a.Taken[r.Partition] = min(a.Taken[r.Partition]+len(r.NodeList), len(s.Partitions[r.Partition].Nodes))
		}
	}
	if s.Taken.Sub(a.Begun) >= c.Power.Up() {
		for _, part := range state.SortedKeys(a.Taken) {
			if h := hoursOf(a, part); h != nil {
				one := &h[a.Hour]
				one.Nodes = append(one.Nodes[max(len(one.Nodes)-mostPeriods+1, 0):len(one.Nodes):len(one.Nodes)], a.Taken[part])
			}
		}
		a.Begun, a.Taken = s.Taken, map[string]int{}
	}
}

// arrived reports whether a job has nodes since the previous poll, and did not have to wait for them.
func arrived(c *state.Core, before *state.Snapshot, r *slurmctl.Job) bool {
	was := before.ByID[r.ID]
	had := was != nil && len(was.NodeList) > 0
	return len(r.NodeList) > 0 && !had && r.State != slurmctl.Completing && !slurm.IsExpander(c, r) && r.StartTime.Sub(r.SubmitTime) <= c.Power.Up()+hold.PowerLead
}

// hoursOf returns what was learnt of a partition, or nil if there are too many.
func hoursOf(a *state.Arrivals, part string) []state.ArrivalHour {
	if a.Hours[part] == nil && len(a.Hours) < mostArrivals {
		a.Hours[part] = make([]state.ArrivalHour, state.HoursOfWeek)
	}
	return a.Hours[part]
}

// leaveHour is called at the end of an hour. It saves what was learnt, and forgets partitions that are gone.
func leaveHour(c *state.Core, s *state.Snapshot) {
	a := &c.Power.Arrivals
	if a.Entered.IsZero() || s.Taken.Sub(a.Entered) < leastWatched {
		return
	}
	for _, part := range state.SortedKeys(s.Partitions) {
		if h := hoursOf(a, part); h != nil {
			one := &h[a.Hour]
			one.Weeks = min(one.Weeks+1, mostPeriods)
			c.Emit(msg.SaveArrivals{Row: row.Arrivals{Partition: part, Hour: a.Hour, Weeks: one.Weeks, Nodes: slices.Clone(one.Nodes)}})
		}
	}
	for _, part := range state.SortedKeys(a.Hours) {
		if _, exists := s.Partitions[part]; !exists {
			delete(a.Hours, part)
			c.Emit(msg.SaveArrivals{Row: row.Arrivals{Partition: part, Hour: -1}})
		}
	}
}

// RestoreArrivals takes over what an earlier run learnt.
func RestoreArrivals(c *state.Core, rows []row.Arrivals) {
	for _, r := range rows {
		if h := hoursOf(&c.Power.Arrivals, r.Partition); h != nil && r.Hour >= 0 && r.Hour < len(h) {
			h[r.Hour] = state.ArrivalHour{Weeks: r.Weeks, Nodes: r.Nodes[max(len(r.Nodes)-mostPeriods, 0):]}
		}
	}
}

// reserveOf returns how many idle nodes of a partition stay awake without a planned use: for what arrives now, and by when
// another node could be up.
func reserveOf(c *state.Core, s *state.Snapshot, part string) int {
	nodes, at := len(s.Partitions[part].Nodes), c.Wall(s.Taken)
	return max(reserveIn(c, part, hourOf(at), nodes), reserveIn(c, part, hourOf(at.Add(ahead(c))), nodes))
}

// ahead returns how long before an hour its reserve counts: a node that is about to go off could not be up again sooner.
func ahead(c *state.Core) time.Duration { return c.Power.Down() + c.Power.Up() + state.PowerCycle }

// reserveIn returns how many idle nodes of a partition with so many nodes stay awake in an hour of the week.
func reserveIn(c *state.Core, part string, hour, nodes int) int {
	return min(max(c.Config.Power.Reserve, arriving(c, part, hour, nodes)), nodes)
}

// arriving returns how many of the nodes must be awake in an hour of the week so that jobs wait for max_wait at most on
// average.
func arriving(c *state.Core, part string, hour, nodes int) int {
	boot, wait := c.Power.Up(), c.Config.Power.MaxWait
	if wait >= boot {
		return 0
	}
	h := c.Power.Arrivals.Hours[part]
	if h == nil || h[hour].Weeks < leastWeeks {
		return (nodes + cautiousPart - 1) / cautiousPart
	}
	all := slices.Clone(h[hour].Nodes)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	beyond := int(float64(wait) / float64(boot) * float64(len(all))) // periods that may find too few
	return all[len(all)-1-beyond]
}

// CopiedArrivals returns a copy that shares nothing with the core.
func CopiedArrivals(c *state.Core) state.Arrivals {
	a := c.Power.Arrivals
	a.Taken, a.Hours = maps.Clone(a.Taken), make(map[string][]state.ArrivalHour, len(c.Power.Arrivals.Hours))
	for part, hours := range c.Power.Arrivals.Hours {
		a.Hours[part] = make([]state.ArrivalHour, len(hours))
		for i, h := range hours {
			a.Hours[part][i] = state.ArrivalHour{Weeks: h.Weeks, Nodes: slices.Clone(h.Nodes)}
		}
	}
	return a
}
