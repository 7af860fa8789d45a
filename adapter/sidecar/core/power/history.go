package power

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// History returns what was learnt of jobs that nobody planned, and the reserve that follows, by partition and hour of the week.
// O(partitions × hours), with at most mostArrivals partitions.
func History(c *state.Core) api.PowerHistory {
	p, cfg := &c.Power, c.Config.Power
	a := api.PowerHistory{Mode: string(cfg.Mode), Boot: p.Up().Seconds(), MaxWait: cfg.MaxWait.Seconds(), Reserve: cfg.Reserve,
		Ahead: ahead(c).Seconds(), LeastWeeks: leastWeeks, Hour: hourOf(c.Wall(c.Now)), Partitions: []api.PowerWeek{}}
	if !p.On {
		a.Why = savesNone
	}
	for _, part := range state.SortedKeys(p.Arrivals.Hours) {
		week := api.PowerWeek{Partition: part, Hours: make([]api.PowerHour, state.HoursOfWeek)}
		if s := c.Snapshot; s != nil {
			week.Nodes = len(s.Partitions[part].Nodes)
		}
		for i, h := range p.Arrivals.Hours[part] {
			week.Hours[i] = api.PowerHour{Weeks: h.Weeks, Periods: len(h.Nodes), Reserve: reserveIn(c, part, i, week.Nodes)}
			if len(h.Nodes) > 0 {
				week.Hours[i].Most = slices.Max(h.Nodes)
			}
		}
		a.Partitions = append(a.Partitions, week)
	}
	return a
}

// today returns the reserve of a partition in each hour of the present day, in UTC.
func today(c *state.Core, part string) (hours []int) {
	if c.Snapshot == nil {
		return nil
	}
	first, nodes := hourOf(c.Wall(c.Now))/24*24, len(c.Snapshot.Partitions[part].Nodes)
	for hour := first; hour < first+24; hour++ {
		hours = append(hours, reserveIn(c, part, hour, nodes))
	}
	return hours
}
