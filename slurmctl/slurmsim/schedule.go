package slurmsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// kick has the main scheduler run at slurmctld's next look at what there is to do,
// which it takes once a second.
func (c *Cluster) kick() {
	if c.waiting {
		return
	}
	c.waiting = true
	next := c.now.Truncate(time.Second).Add(time.Second)
	c.at(next, func() {
		c.waiting = false
		c.schedule(c.options.QueueDepth)
	})
}

// routine is the main scheduler's pass over the whole queue.
func (c *Cluster) routine() {
	c.at(c.now.Add(c.options.SchedInterval), c.routine)
	c.schedule(len(c.order))
}

// queue is the pending jobs, most urgent first.
func (c *Cluster) queue() []*job {
	var all []*job
	for _, id := range c.order {
		if j := c.jobs[id]; j.State == slurmctl.Pending {
			c.age(j)
			all = append(all, j)
		}
	}
	slices.SortStableFunc(all, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// age is the job's priority under priority/multifactor: it grows from the time at
// which the job became eligible.
func (c *Cluster) age(j *job) {
	if c.options.MultifactorAge == 0 || j.Priority == 0 {
		return
	}
	since := j.SubmitTime
	if j.request.Begin.After(since) {
		since = j.request.Begin
	}
	old := min(max(c.now.Sub(since).Seconds()/c.options.MaxAge.Seconds(), 0), 1)
	j.Priority = max(uint64(float64(c.options.MultifactorAge)*old), 1)
}

// schedule starts jobs in order until one of a partition does not get its nodes;
// then the others of that partition wait.
func (c *Cluster) schedule(depth int) {
	stuck := map[string]bool{}
	for i, j := range c.queue() {
		if i >= depth {
			return
		}
		if !c.eligible(j) {
			continue
		}
		if j.Reservation == "" && stuck[j.Partition] {
			j.Reason = "Priority"
			continue
		}
		for j.State == slurmctl.Pending {
			tasks := j.ArrayTasks
			if c.try(j) {
				if tasks > 1 {
					continue // the array's next task
				}
				break
			}
			if j.Reservation == "" {
				stuck[j.Partition] = true
			}
			break
		}
	}
}

// eligible says whether a pending job is considered now, and sets its reason if not.
func (c *Cluster) eligible(j *job) bool {
	switch {
	case j.Priority == 0:
		return false // held
	case j.request.Begin.After(c.now):
		j.Reason = "BeginTime"
		return false
	case !c.dependencies(j):
		return false
	}
	p := c.partition(j.Partition)
	switch {
	case !p.Up:
		j.Reason = "PartitionDown"
	case j.NumNodes > len(p.Nodes), p.MaxNodes > 0 && j.NumNodes > p.MaxNodes, j.NumNodes < p.MinNodes:
		j.Reason = "PartitionNodeLimit"
	case p.MaxTime > 0 && (j.TimeLimit > p.MaxTime || j.TimeLimit == slurmctl.Unlimited):
		j.Reason = "PartitionTimeLimit"
	default:
		return true
	}
	return false
}

// dependencies says whether a job's dependencies are fulfilled.
func (c *Cluster) dependencies(j *job) bool {
	for _, d := range j.request.After {
		other := c.jobs[d.Job]
		switch {
		case other == nil:
			continue // long over
		case !other.Ended():
			j.Reason = "Dependency"
			return false
		case d.Kind == "afterok" && other.State != slurmctl.Completed, d.Kind == "afternotok" && other.State == slurmctl.Completed:
			j.Reason = "DependencyNeverSatisfied"
			return false
		}
	}
	j.Dependency = ""
	return true
}

// try starts a job if its nodes are free.
func (c *Cluster) try(j *job) bool {
	if j.Reservation != "" {
		r := c.reservation(j.Reservation)
		if r == nil || !r.allows(j.request.User) {
			j.Reason = "ReservationDeleted"
			return false
		}
		if c.now.Before(r.Start) || !c.now.Before(r.End) {
			j.Reason = "Reservation"
			return false
		}
	}
	allowed := c.allowed(j, c.now)
	nodes, ok := c.pick(j, func(n int) bool { return allowed[n] && c.fits(j, n) })
	if !ok {
		if _, without := c.pick(j, func(n int) bool { return c.fits(j, n) }); without && j.Reservation == "" {
			j.Reason = "ReqNodeNotAvail, Reserved for maintenance"
			if len(j.ReqNodes) == 0 {
				j.Reason = "Resources"
			}
		} else {
			j.Reason = "Resources"
		}
		return false
	}
	c.begin(j, nodes)
	return true
}

// fits says whether a node has room for the job now.
func (c *Cluster) fits(j *job, n int) bool {
	node := &c.nodes[n]
	if !node.usable() || node.whole > 0 {
		return false
	}
	if j.Exclusive {
		return node.used == 0
	}
	return node.used+j.request.CPUs <= c.options.CPUs
}

// allowed are the nodes that a job may start on then, as far as partitions, its own
// lists and reservations go (job_test_resv of reservation.c).
func (c *Cluster) allowed(j *job, start time.Time) []bool {
	allowed := make([]bool, len(c.nodes))
	for _, name := range c.partition(j.Partition).Nodes {
		allowed[c.index[name]] = true
	}
	for _, name := range j.ExcNodes {
		allowed[c.index[name]] = false
	}
	end := start.Add(j.TimeLimit)
	if j.TimeLimit == slurmctl.Unlimited {
		end = start.AddDate(1, 0, 0)
	}
	own := c.reservation(j.Reservation)
	if own != nil && !own.has("FLEX") {
		within := make([]bool, len(c.nodes))
		for _, name := range own.Nodes {
			within[c.index[name]] = true
		}
		for n := range allowed {
			allowed[n] = allowed[n] && within[n]
		}
	}
	for i := range c.reservations {
		r := &c.reservations[i]
		if r == own || !r.Start.Before(end) || !r.End.After(start) {
			continue
		}
		if own != nil && (own.has("MAINT") || own.has("OVERLAP") && !r.has("MAINT")) {
			continue
		}
		for _, name := range r.Nodes {
			allowed[c.index[name]] = false
		}
	}
	return allowed
}

// pick chooses nodes for a job as select/cons_tres does (_eval_nodes of its
// job_test.c): of the runs of consecutive nodes the one with a node that the job names,
// else the smallest that suffices, else the largest; there from the named node upwards,
// then downwards; and again until it has enough.
func (c *Cluster) pick(j *job, ok func(int) bool) ([]int, bool) {
	free := make([]bool, len(c.nodes))
	for n := range free {
		free[n] = ok(n)
	}
	var nodes []int
	use := func(n int) {
		if free[n] && len(nodes) < j.NumNodes {
			free[n] = false
			nodes = append(nodes, n)
		}
	}
	named := -1
	for _, name := range j.ReqNodes {
		n := c.index[name]
		if !free[n] {
			return nil, false
		}
		if named < 0 {
			named = n
		}
	}
	first, last := bestRun(free, j.NumNodes, named)
	for _, name := range j.ReqNodes {
		use(c.index[name])
	}
	for len(nodes) < j.NumNodes && first >= 0 {
		from := max(first, named)
		for n := from; n <= last; n++ {
			use(n)
		}
		for n := from - 1; n >= first; n-- {
			use(n)
		}
		named = -1
		first, last = bestRun(free, j.NumNodes-len(nodes), named)
	}
	slices.Sort(nodes)
	return nodes, len(nodes) >= j.NumNodes
}

// bestRun finds a run of consecutive free nodes for so many; first is -1 if none is
// free.
func bestRun(free []bool, want, named int) (first, last int) {
	first, last = -1, -1
	for n := 0; n < len(free); n++ {
		if !free[n] {
			continue
		}
		end := n
		for end+1 < len(free) && free[end+1] {
			end++
		}
		size, best := end-n+1, last-first+1
		switch {
		case named >= n && named <= end:
			return n, end
		case first < 0, size >= want && (best < want || size < best), best < want && size > best:
			first, last = n, end
		}
		n = end
	}
	return first, last
}
