package stock

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Sets groups the nodes that evolving jobs want: two jobs want nodes of one set if they can have a node in common,
// directly or by others in between. Sets have no node in common.
type Sets struct {
	of     []int // by node: 1 + a set, which may have become part of another one; 0: no evolving job wants it
	within []int // by set: the one that it has become part of
	by     map[string][]int
	s      *state.Snapshot

	licenses msg.Set // that evolving jobs want
	atOnce   bool    // only stock jobs that wait for nothing but nodes count
}

// SetsOf returns the sets of nodes that the candidates want.
func SetsOf(s *state.Snapshot, list []slurm.Candidate) *Sets {
	t := &Sets{of: make([]int, len(s.Nodes)), by: map[string][]int{}, s: s, licenses: LicensesOf(list, false)}
	type place struct {
		first *int
		n     int
	}
	known := map[place]bool{} // most jobs of a partition have the same list
	for i := range list {
		for _, nodes := range append(list[i].Choices[:len(list[i].Choices):len(list[i].Choices)], list[i].Nodes) {
			if len(nodes) == 0 || known[place{&nodes[0], len(nodes)}] {
				continue
			}
			known[place{&nodes[0], len(nodes)}] = true
			t.join(nodes)
		}
	}
	t.joinPartitions(list)
	return t
}

// joinPartitions makes one set of the nodes of a partition that jobs in it want: stock jobs there wait for all of them. So there
// are no more sets than partitions, whatever nodes users ask for.
func (t *Sets) joinPartitions(list []slurm.Candidate) {
	done := msg.Set{}
	var wanted []int
	for i := range list {
		for name := range strings.SplitSeq(list[i].Record.Partition, ",") {
			if done[name] {
				continue
			}
			done[name] = true
			wanted = wanted[:0]
			for _, node := range t.s.Partitions[name].Nodes {
				if n, known := t.s.Index[node]; known && t.of[n] > 0 {
					wanted = append(wanted, n)
				}
			}
			t.join(wanted)
		}
	}
}

// SetsBeside returns the sets of all nodes that evolving jobs have or may have, held nodes, and nodes of further jobs. Only
// stock jobs that could start at once count in them.
func SetsBeside(c *state.Core, s *state.Snapshot, jobs []*state.Job, further ...slurm.Candidate) *Sets {
	add := func(r *slurmctl.Job, names []string) {
		var all []int
		for _, name := range names {
			if n, known := s.Index[name]; known {
				all = append(all, n)
			}
		}
		further = append(further, slurm.Candidate{Record: r, Nodes: all})
	}
	for _, j := range jobs {
		if nodes, choices, err := slurm.PlacesOf(c, s, j); err == nil {
			further = append(further, slurm.Candidate{Record: &j.Record, Nodes: nodes, Choices: choices})
		}
		add(&j.Record, append(j.Nodes(), j.Planned()...))
	}
	for _, h := range c.Ours {
		if j := c.ByID[h.Own.Job]; j != nil {
			add(&j.Record, c.Reservations[h.Name].Nodes)
		}
	}
	t := SetsOf(s, further)
	t.atOnce = true
	return t
}

// First keeps those of a list that are among the first jobs of a set: `most`, or an equal share of four times as many for each of
// more than four sets.
func (t *Sets) First(list []slurm.Placed, most int) []slurm.Placed {
	sets := map[int]int{}
	for i := range list {
		for _, set := range t.touched(list[i].Record.Partition) {
			sets[set] = 0
		}
	}
	share := min(most, 4*most/max(len(sets), 1))
	return slices.DeleteFunc(list, func(p slurm.Placed) bool {
		among := false
		for _, set := range t.touched(p.Record.Partition) {
			among = among || sets[set] < share
			sets[set]++
		}
		return !among
	})
}

// join makes one set of some nodes and of all sets that have one of them.
func (t *Sets) join(nodes []int) {
	set := len(t.within)
	t.within = append(t.within, set)
	for _, n := range nodes {
		if t.of[n] > 0 {
			t.within[t.last(t.of[n]-1)] = set
		}
		t.of[n] = set + 1
	}
}

// last returns the set that a set has become part of.
func (t *Sets) last(set int) int {
	for t.within[set] != set {
		t.within[set] = t.within[t.within[set]]
		set = t.within[set]
	}
	return set
}

// wanted reports whether an evolving job wants one of the nodes.
func (t *Sets) wanted(nodes []int) bool {
	return t == nil || slices.ContainsFunc(nodes, func(n int) bool { return t.of[n] > 0 })
}

// touched returns the sets that a job's partitions have nodes of. Without sets, all nodes count as one.
func (t *Sets) touched(partitions string) []int {
	if t == nil {
		return []int{0}
	}
	sets, ok := t.by[partitions]
	if !ok {
		for name := range strings.SplitSeq(partitions, ",") {
			for _, node := range t.s.Partitions[name].Nodes {
				if n, known := t.s.Index[node]; known && t.of[n] > 0 {
					if set := t.last(t.of[n] - 1); !slices.Contains(sets, set) {
						sets = append(sets, set)
					}
				}
			}
		}
		t.by[partitions] = sets
	}
	return sets
}

// LicensesOf returns the licences that the evolving jobs in a list need, and those of its stock jobs if these count, too.
func LicensesOf(list []slurm.Candidate, stock bool) msg.Set {
	all := msg.Set{}
	for _, cand := range list {
		if cand.Job != nil || stock {
			for _, l := range cand.Licenses {
				all[l.Name] = true
			}
		}
	}
	return all
}

// licensesFor returns those licences that a stock job asks for, and that an evolving job wants, for all of its tasks that may run
// at once. Without sets, or if only jobs count that could start at once, it returns all that it asks for, once these are known.
func (t *Sets) licensesFor(c *state.Core, r *slurmctl.Job) []slurmctl.License {
	any := t == nil || t.atOnce
	if r.Licenses == "" || !any && len(t.licenses) == 0 || t == nil && !slurm.ReadLicenses(c) || any && !c.Licenses.Known {
		return nil
	}
	all, _ := slurmctl.ParseLicenses(r.Licenses)
	var shared []slurmctl.License
	for _, l := range all {
		if any || t.licenses[l.Name] {
			shared = append(shared, slurmctl.License{Name: l.Name, Count: l.Count * TasksAtOnce(r)})
		}
	}
	return shared
}

// Candidates lists pending stock jobs that Slurm would start before the last of the evolving jobs, the most
// urgent first: of each of the sets at most stock_jobs, shared as by ShareOut. A job that can have no node of the sets,
// and wants none of the licences of evolving jobs, delays none of these, and is left out. Without sets (nil), no
// evolving job is there to want nodes, and the list has at most stock_jobs jobs in all: mode observe.
func Candidates(c *state.Core, s *state.Snapshot, now int64, lowest slurm.Turn, sets *Sets) []slurm.Candidate {
	waiting := stockBySet(c, s, now, lowest, sets)
	list := make([]slurm.Candidate, 0, min(c.Config.StockJobs*len(waiting), len(s.Jobs)))
	taken := map[slurmctl.JobID]bool{}
	var free []int64
	for _, all := range waiting {
		count := 0
		for _, i := range shareOut(len(all), c.Config.StockJobs, func(i int) (slurm.Turn, *slurmctl.Job) { return all[i].turn, all[i].record }) {
			if count == c.Config.StockJobs {
				break
			}
			cand := all[i].candidate()
			if taken[cand.Record.ID] {
				count++ // it also wants nodes of another set
			} else if placed(c, s, &cand) && (cand.Licenses != nil || sets.wanted(cand.Nodes) || slices.ContainsFunc(cand.Choices, sets.wanted)) {
				count++
				taken[cand.Record.ID] = true
				if sets == nil || sets.atOnce || cand.Parts == nil {
					list = append(list, cand)
					continue
				}
				if free == nil {
					free = releases(c, s, now)
				}
				list = append(list, apart(&cand, free)...)
			}
		}
	}
	slices.SortStableFunc(list, MoreUrgent)
	return list
}

// releases returns from when on each node is free of stock jobs. The planner knows better when evolving jobs release theirs.
func releases(c *state.Core, s *state.Snapshot, now int64) []int64 {
	free := make([]int64, len(s.Nodes))
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if len(r.NodeList) == 0 || c.Owner(r.ID) != nil || slurm.IsExpander(c, r) {
			continue
		}
		for _, name := range r.NodeList {
			if n, known := s.Index[name]; known {
				free[n] = max(free[n], slurm.Releases(c, r, now))
			}
		}
	}
	return free
}

// apart returns a stock job as a candidate for each of its parts, since the planner gives a candidate nodes of one list. None is planned
// before running jobs leave enough nodes for all.
func apart(cand *slurm.Candidate, free []int64) (all []slurm.Candidate) {
	tasks, count := TasksAtOnce(cand.Record), 0
	for _, part := range cand.Parts {
		count += part.Count
		ends := make([]int64, len(part.Nodes))
		for i, n := range part.Nodes {
			ends[i] = free[n]
		}
		slices.Sort(ends)
		if last := ends[part.Count-1]; last < planner.Forever {
			cand.Earliest = max(cand.Earliest, last)
		}
	}
	for i, part := range cand.Parts {
		one, record := *cand, *cand.Record
		record.NumNodes, record.NumCPUs = part.Count, record.NumCPUs*part.Count/count
		one.Nodes, one.Parts, one.Record = part.Nodes, nil, &record
		one.Profile = planner.Profile{{Duration: cand.Profile[0].Duration, Nodes: min(part.Count*tasks, len(part.Nodes))}}
		if i > 0 {
			one.Licenses = nil
		}
		all = append(all, one)
	}
	return all
}

// throttled reports whether a stock job of an array that is at its throttle counts.
func (t *Sets) throttled(r *slurmctl.Job) bool {
	return t != nil && !t.atOnce && r.Reason == "JobArrayTaskLimit" && r.Priority > 0
}

// queues reports whether a stock job waits only for its turn, nodes, its reservation's start, or such licences as count.
func (t *Sets) queues(r *slurmctl.Job, licenses []slurmctl.License) bool {
	switch r.Reason {
	case "Licenses":
		return r.Priority > 0 && licenses != nil
	case "Reservation":
		return r.Priority > 0 && r.Reservation != "" && (t == nil || !t.atOnce)
	}
	return slurm.Queues(r)
}

// competes returns the sets that a stock job's partitions have nodes of. One that only wants the licences of evolving jobs is elsewhere.
func (t *Sets) competes(r *slurmctl.Job, inside bool, licenses []slurmctl.License) []int {
	var touched []int
	if t == nil || inside {
		touched = t.touched(r.Partition)
	}
	if len(touched) == 0 && licenses != nil && !t.atOnce {
		return []int{elsewhere}
	}
	return touched
}

// elsewhere stands for the nodes that no evolving job wants.
const elsewhere = -1

// waiter is a stock job that waits. There may be many, and few become candidates.
type waiter struct {
	record   *slurmctl.Job
	turn     slurm.Turn
	earliest int64
	licenses []slurmctl.License
}

func (w waiter) candidate() slurm.Candidate {
	return slurm.Candidate{Record: w.record, Turn: w.turn, Earliest: w.earliest, Licenses: w.licenses}
}

// stockBySet returns the stock jobs that wait and have no later turn than that, by the sets that their partitions have
// nodes of.
func stockBySet(c *state.Core, s *state.Snapshot, now int64, lowest slurm.Turn, sets *Sets) map[int][]waiter {
	waiting := map[int][]waiter{}
	var ends map[slurmctl.JobID]int64
	inside := insideOf(c)
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.State != slurmctl.Pending || !inside[r.Reservation] && !ofSite(s, r.Reservation) {
			continue
		}
		licenses := sets.licensesFor(c, r)
		earliest := now
		switch throttled := sets.throttled(r); {
		case throttled:
			if ends == nil {
				ends = taskEnds(s)
			}
			end, known := ends[r.ArrayJobID]
			if !known {
				continue
			}
			earliest = c.Since(now, end)
		case !sets.queues(r, licenses):
			continue
		}
		touched := sets.competes(r, inside[r.Reservation], licenses)
		if len(touched) == 0 {
			continue
		}
		its := slurm.Turn{TierOf(c, r, true), r.Priority}
		if its.Compare(lowest) < 0 || c.Owner(r.ID) != nil || slurm.IsExpander(c, r) {
			continue
		}
		for _, set := range touched {
			waiting[set] = append(waiting[set], waiter{r, its, earliest, licenses})
		}
	}
	return waiting
}

// insideOf returns the reservations of the site in which evolving jobs run ("": none): their stock jobs compete with these.
func insideOf(c *state.Core) map[string]bool {
	all := map[string]bool{"": true}
	for _, j := range c.Active {
		all[j.Reservation] = true
	}
	return all
}

// ofSite reports whether there is a reservation with that name, and it is no hold.
func ofSite(s *state.Snapshot, name string) bool {
	_, there := s.Reservations[name]
	return there && state.OwnReservation(name) != ""
}

// placed sets the nodes that a stock job may have, and its profile. It reports whether there are any such nodes.
func placed(c *state.Core, s *state.Snapshot, cand *slurm.Candidate) bool {
	r := cand.Record
	nodes, choices := slurm.StockPlaces(s, r)
	if len(nodes) == 0 {
		return false
	}
	limit := TaskSeconds(r)
	tasks, rounds := atOnce(r)
	if rounds > 1 {
		limit = min(limit, planner.MaxDuration/rounds) * rounds
	}
	if own, in := s.Reservations[r.Reservation]; in {
		if r.NumNodes > fewest(nodes, choices) {
			return false
		}
		if left := own.End.Unix() - c.Since(s.Taken.Unix(), own.Start.Unix()); slurm.Seconds(r.TimeLimit) <= left {
			limit = max(min(limit, left-slurm.Margin(c)), 1) // Slurm starts it as long as it ends within the reservation
		}
	}
	count, parts := slurm.StockParts(s, r, nodes)
	if !r.Exclusive && count == 1 { // it shares its node: count whole nodes by CPUs
		per := max(s.Nodes[nodes[0]].CPUs, 1)
		count = (r.NumCPUs*tasks + per - 1) / per
	} else {
		count *= tasks
	}
	count = min(max(count, 1), fewest(nodes, choices))
	cand.Nodes, cand.Choices, cand.Parts, cand.Rank = nodes, choices, parts, slurm.RankOf(c, r)
	cand.Profile = planner.Profile{{Duration: limit, Nodes: count}}
	return true
}

// TasksAtOnce returns how many tasks of an array may run at once.
func TasksAtOnce(r *slurmctl.Job) int {
	tasks, _ := atOnce(r)
	return tasks
}

// TaskSeconds returns how long a plan gives a task of a stock job.
func TaskSeconds(r *slurmctl.Job) int64 {
	return max(min(slurm.Seconds(r.TimeLimit)+UntilLook, planner.MaxDuration), 1)
}

// taskEnds returns, by array, when the first of its running tasks will end: a further one of an array that is at its
// throttle may then start.
func taskEnds(s *state.Snapshot) map[slurmctl.JobID]int64 {
	ends := map[slurmctl.JobID]int64{}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.State != slurmctl.Running || r.EndTime.IsZero() {
			continue
		}
		if end, known := ends[r.ArrayJobID]; !known || r.EndTime.Unix() < end {
			ends[r.ArrayJobID] = r.EndTime.Unix()
		}
	}
	return ends
}

// atOnce returns how many tasks of an array may run at once, by its throttle (--array=…%N), and how many rounds of so
// many there are.
func atOnce(r *slurmctl.Job) (tasks int, rounds int64) {
	tasks = max(r.ArrayTasks, 1)
	if r.ArrayLimit <= 0 || r.ArrayLimit >= tasks {
		return tasks, 1
	}
	return r.ArrayLimit, int64((tasks + r.ArrayLimit - 1) / r.ArrayLimit)
}
