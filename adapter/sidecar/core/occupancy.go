package core

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// occupancy holds when every node of the cluster is in use, in seconds from an origin. It is kept per node,
// not as a count, because jobs may be eligible for different sets of nodes, and because reservations and
// promised growths use specific nodes. A node promised to one job is promised to no other job, in whatever
// partition.
type occupancy struct {
	origin   int64 // Unix second that counts as 0
	busy     [][]planner.NodeBusy
	reserved [][]planner.NodeBusy // by others

	preemption *slurmctl.Preemption // nil: no job yields
	tenures    [][]tenure           // of stock jobs, if some may yield
}

func newOccupancy(nodes int, origin int64) *occupancy {
	const usual = 2 // intervals per node
	busy, memory := make([][]planner.NodeBusy, nodes), make([]planner.NodeBusy, usual*nodes)
	for i := range busy {
		busy[i] = memory[usual*i : usual*i : usual*(i+1)]
	}
	return &occupancy{origin: origin, busy: busy, reserved: make([][]planner.NodeBusy, nodes)}
}

// add marks a node busy during [start, end), in Unix seconds.
func (o *occupancy) add(node int, start, end int64) {
	if b, ok := o.interval(node, start, end); ok {
		o.busy[node] = append(o.busy[node], b)
	}
}

// reserve marks a node as reserved by others during [start, end), in Unix seconds.
func (o *occupancy) reserve(node int, start, end int64) {
	if b, ok := o.interval(node, start, end); ok {
		o.reserved[node] = append(o.reserved[node], b)
	}
}

func (o *occupancy) interval(node int, start, end int64) (planner.NodeBusy, bool) {
	start = max(start-o.origin, 0)
	if end != planner.Forever {
		end -= o.origin
	}
	return planner.NodeBusy{Node: node, Start: start, End: end}, end > start
}

// window returns what is in use in a pool of nodes (indices into the cluster's nodes) for a job of a rank. It
// numbers the nodes by their position in the pool.
func (o *occupancy) window(nodes []int, to rank) []planner.NodeBusy {
	return o.claimed(windowOf(o.busy, nodes), nodes, to)
}

// reservedOn returns what others have reserved of these nodes, in the same form. A job avoids a node that is
// reserved before its time limit ends, even if the plan gives the node back in time. Slurm does the same, and
// a job that overruns would block a maintenance.
func (o *occupancy) reservedOn(nodes []int) []planner.NodeBusy { return windowOf(o.reserved, nodes) }

func windowOf(byNode [][]planner.NodeBusy, nodes []int) []planner.NodeBusy {
	var all []planner.NodeBusy
	for i, n := range nodes {
		for _, b := range byNode[n] {
			b.Node = i
			all = append(all, b)
		}
	}
	return all
}

// occupied returns everything that is certain: what others use, what is promised to evolving jobs that have
// begun, and what was just given up for stock jobs. It leaves out `except`.
func (c *Core) occupied(s *snapshot, origin int64, except *job) *occupancy {
	o := c.foreign(s, origin)
	for j := range c.each(c.active) {
		if j != except && (j.runs() || j.State == row.Starting) {
			c.addPromises(o, s, j, s.taken.Unix())
		}
	}
	c.addFreed(o, s)
	return o
}

// foreign returns what does not belong to evolving jobs: stock jobs, other reservations, and nodes that cannot
// be used.
func (c *Core) foreign(s *snapshot, origin int64) *occupancy {
	o := newOccupancy(len(s.nodes), origin)
	if o.preemption = c.rules.limits.Preemption(); o.preemption != nil {
		o.tenures = make([][]tenure, len(s.nodes))
	}
	c.addNodes(o, s)
	c.addStock(o, s)
	others := maps.Clone(s.reservations)
	maps.DeleteFunc(others, func(_ string, r slurmctl.Reservation) bool { _, ours := parseHold(r); return ours })
	for _, name := range sortedKeys(others) {
		r := others[name]
		for _, name := range r.Nodes {
			if n, ok := s.index[name]; ok {
				o.reserve(n, r.Start.Unix(), r.End.Unix())
			}
		}
	}
	return o
}

// addNodes adds the nodes that cannot be used, each until it can.
func (c *Core) addNodes(o *occupancy, s *snapshot) {
	origin := o.origin
	for i := range s.nodes {
		n := &s.nodes[i]
		switch {
		case !n.Usable(), slices.Contains(c.leaked, n.Name): // Slurm starts nothing there
			o.add(i, origin, planner.Forever)
		case len(c.suspect) > 0 && c.isSuspect([]string{n.Name}):
			o.add(i, origin, c.suspect[n.Name].Unix())
		case n.Power() != slurmctl.PowerOn:
			o.add(i, origin, c.power.ready(*n, s.taken))
		}
	}
}

// addStock adds the nodes that stock jobs have.
func (c *Core) addStock(o *occupancy, s *snapshot) {
	now := s.taken.Unix()
	for i := range s.jobs {
		r := &s.jobs[i]
		if len(r.NodeList) == 0 || c.owner(r.ID) != nil && r.State != slurmctl.Completing {
			continue // ours follow below, with their promises
		}
		end := c.releases(r, now)
		if c.outlived(s, r) { // it will be cancelled in this cycle
			end = now + max(c.margin(), 1)
		}
		for _, name := range r.NodeList {
			if n, ok := s.index[name]; ok {
				until := end
				if end != planner.Forever {
					until += c.power.after(s.nodes[n])
				}
				if o.preemption == nil || r.State != slurmctl.Running {
					o.add(n, o.origin, until)
				} else if b, ok := o.interval(n, o.origin, until); ok {
					o.tenures[n] = append(o.tenures[n], tenure{b, c.rankOf(r)})
				}
			}
		}
	}
}

// releases returns the Unix second from which the plan can count on the nodes of a stock job.
func (c *Core) releases(r *slurmctl.Job, now int64) int64 {
	margin := int64(c.cfg.Margin / time.Second)
	if r.State == slurmctl.Completing {
		return now + max(margin, 1)
	}
	if r.TimeLimit == slurmctl.Unlimited || r.EndTime.IsZero() || r.State == slurmctl.Suspended {
		return planner.Forever
	}
	return max(r.EndTime.Unix(), now) + max(margin, 1)
}

// addLinks does what addPromises does, for a chain: between two links, all jobs may use its nodes.
func (c *Core) addLinks(o *occupancy, s *snapshot, j *job, now int64) {
	add := func(names []string, start, end int64) {
		for _, name := range names {
			if n, ok := s.index[name]; ok {
				o.add(n, start, end+c.margin())
			}
		}
	}
	end := now // an overrunning link still holds its nodes
	for i, step := range j.promised(now) {
		if i == 0 && j.State == row.Running {
			end = max(end, step.end)
			continue
		}
		add(step.nodes, step.start, step.end)
	}
	add(j.nodes(), o.origin, end)
}

// addPromises adds the nodes that a job has and will have, each until the margin after its planned release.
func (c *Core) addPromises(o *occupancy, s *snapshot, j *job, now int64) {
	margin := int64(c.cfg.Margin / time.Second)
	if !j.mode.carriesNodes && !j.lapsed() {
		c.addLinks(o, s, j, now)
		return
	}
	until := make(map[string]int64, len(j.nodes())) // planned release of every node
	from := make(map[string]int64, len(j.nodes()))
	for _, step := range j.promised(now) {
		for _, n := range step.nodes {
			until[n] = step.end
			if _, seen := from[n]; !seen {
				from[n] = step.start
			}
		}
	}
	if len(j.plan) == 0 {
		until = j.supposed()
	}
	for _, n := range j.nodes() {
		from[n] = o.origin
		until[n] = max(until[n], now) // an overrunning step still holds them
	}
	j.prolong(until, now)
	c.addLent(o, s, j, now)
	for name, start := range from {
		if n, ok := s.index[name]; ok {
			o.add(n, start, until[name]+margin)
		}
	}
}

// prolong extends the planned releases of the nodes that a job may keep for longer.
func (j *job) prolong(until map[string]int64, now int64) {
	if j.Claim > 0 && j.runs() { // it may keep them until its time limit
		for _, n := range j.nodes() {
			until[n] = max(until[n], now+j.reach(now))
		}
	}
	if j.lapsed() || j.State == row.Waiting && j.next() == nil {
		for _, n := range j.keeps() {
			until[n] = now + j.reach(now)
		}
	}
	if j.isMalleable() && j.runs() && len(j.plan) >= j.Step {
		for _, n := range j.own() { // a lent node replaces a lost one
			until[n] = max(until[n], j.plan[j.Step-1].end)
		}
	}
	if at := j.pinned(); at != "" && len(j.plan) > 0 { // even before a plan contains it: see heedPinned
		until[at] = max(until[at], j.plan[len(j.plan)-1].end)
	}
}

// addKept adds what a running job has as if it got nothing more: what only its current step needs until that
// step ends, and the rest for as long as the job may run.
func (c *Core) addKept(o *occupancy, s *snapshot, j *job, now int64) {
	kept, until := setOf(j.keeps()), max(j.plan[j.Step-1].end, now)
	for _, name := range j.nodes() {
		end := until + c.margin()
		if kept[name] {
			end = max(end, now+j.reach(now))
		}
		if n, ok := s.index[name]; ok {
			o.add(n, o.origin, end)
		}
	}
}
