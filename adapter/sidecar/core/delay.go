package core

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Holds keep stock jobs from nodes. No stock job may start later because of them by more than its
// budget (max_delay). A job is held up if Slurm would start it now without holds: it is
// eligible, its nodes are idle, and no job before it in Slurm's order needs them. The core remembers
// the first such moment. If the holds delay the planned start beyond that moment plus the budget,
// the cheapest promises in its way lapse (giveway.go). Until then, no queued job is planned in
// its way either.
//
// Evolving jobs also have their places in that order: a queued job with its first step, and a job
// that waits for a growth with the nodes that it lacks. So a growth that is due comes before stock jobs
// behind it, with or without a hold.

const (
	// mostOrdered is how many waiting jobs are considered, mostOfUser how many of one user.
	mostOrdered, mostOfUser = 400, 40
	// mostHeldUp is how many jobs are remembered.
	mostHeldUp = 1000
	// startPatience is how long a job may wait on nodes that no hold keeps from it. After that, Slurm has
	// another reason not to start it, and the job has no budget any more.
	startPatience = 10 * time.Minute
	// distrustFor is how long further jobs of a user have no budget, if a promise lapsed for such a job.
	distrustFor = time.Hour
	// delaysAgain is how long computed delays stay valid at most, even if nothing happens.
	delaysAgain = time.Minute
)

// delays holds what is known about stock jobs that holds keep from starting.
type delays struct {
	jobs       map[slurmctl.JobID]*heldUp
	distrusted map[uint32]time.Time // users, until when
	seen       uint64               // digest of what the last look saw
	again      time.Time            // the next look, even if nothing happens
}

// copied returns a copy, for plans made outside the main loop.
func (d *delays) copied() delays {
	n := *d
	n.jobs, n.distrusted = make(map[slurmctl.JobID]*heldUp, len(d.jobs)), maps.Clone(d.distrusted)
	for id, h := range d.jobs {
		n.jobs[id] = copyOf(h)
	}
	return n
}

// heldUp describes a pending stock job that could have started without holds.
type heldUp struct {
	uid   uint32    // its user
	since time.Time // when it first could
	free  time.Time // since when it could also start beside the holds; zero if it cannot
	spent bool      // it could have started in that time, and did not
	freed time.Time // when promises last lapsed for it; zero if never

	now   bool     // it is currently held up
	nodes []string // that are kept for it
	from  int64    // Unix second from which they are kept
	end   int64    // Unix second until which they are kept: the start plus the job's time limit
}

// placed describes a waiting job with the place that it would get.
type placed struct {
	candidate
	stock bool  // it is a stock job, or the first task of one
	start int64 // Unix second; planner.Forever if none
	at    []int // nodes
}

// watchDelays finds the stock jobs that are held up. Promises then give way to jobs that would
// exceed their budgets.
func (c *Core) watchDelays(s *snapshot) {
	d := &c.delays
	c.forgetDelays(s)
	from := c.heldFrom(s)
	idle := c.idleHeld(s, from)
	if idle == 0 {
		d.seen = 0
		c.nobodyHeldUp(s)
		return
	}
	if seen := c.delayDigest(s); seen != d.seen || !c.now.Before(d.again) {
		d.seen, d.again = seen, c.now.Add(delaysAgain)
		c.findDelays(s, from, idle)
	}
}

// forgetDelays drops the jobs that no longer wait.
func (c *Core) forgetDelays(s *snapshot) {
	for id, h := range c.delays.jobs {
		r := s.byID[id]
		if r == nil || r.State != slurmctl.Pending || c.owner(id) != nil || r.Priority == 0 {
			delete(c.delays.jobs, id)
			continue
		}
		if free := h.free; !h.spent && !free.IsZero() && c.now.Sub(free) > startPatience {
			h.spent, h.now = true, false
			if !h.freed.IsZero() {
				c.delays.distrusted[r.UID] = c.now.Add(distrustFor)
			}
		}
	}
	for uid, until := range c.delays.distrusted {
		if !c.now.Before(until) {
			delete(c.delays.distrusted, uid)
		}
	}
}

// nobodyHeldUp records that no hold keeps a stock job from starting.
func (c *Core) nobodyHeldUp(s *snapshot) {
	for id, h := range c.delays.jobs {
		h.now = false
		if h.freed.IsZero() {
			continue
		}
		nodes, err := s.eligible(s.byID[id], nil)
		idle := 0
		for _, n := range nodes {
			if s.idle(n) {
				idle++
			}
		}
		if can := err == nil && idle >= max(s.byID[id].NumNodes, 1); !can {
			h.free = time.Time{}
		} else if h.free.IsZero() {
			h.free = s.taken
		}
	}
}

// of counts the jobs of a user.
func (d *delays) of(uid uint32) (n int) {
	for _, h := range d.jobs {
		if h.uid == uid {
			n++
		}
	}
	return n
}

// heldFrom returns from when each node is held: Unix seconds, or planner.Forever if it is not held.
func (c *Core) heldFrom(s *snapshot) []int64 {
	from := slices.Repeat([]int64{planner.Forever}, len(s.nodes))
	for _, h := range c.ours {
		if c.byID[h.own.job] == nil {
			continue
		}
		for _, name := range c.reservations[h.name].Nodes {
			if n, ok := s.index[name]; ok {
				from[n] = min(from[n], c.reservations[h.name].Start.Unix())
			}
		}
	}
	return from
}

// heldGains lists the coming growths of a running job with a hold in place.
func (c *Core) heldGains(j *job) (held []gain) {
	if !j.runs() || j.kept != nil {
		return nil
	}
	for _, g := range j.gained() {
		if c.inPlace(j, g.step) {
			held = append(held, g)
		}
	}
	return held
}

// idleHeld returns the number of idle nodes, held or not, or 0 if no idle node is held.
func (c *Core) idleHeld(s *snapshot, from []int64) (idle int) {
	held := false
	for i := range s.nodes {
		if s.idle(i) {
			idle++
			held = held || from[i] < planner.Forever
		}
	}
	if !held {
		return 0
	}
	return idle
}

// findDelays plans the waiting jobs without promises, and finds the jobs that could start now.
func (c *Core) findDelays(s *snapshot, from []int64, idle int) {
	budgets, err := c.cfg.Delays()
	if err != nil { // Validate rejects invalid delays before
		return
	}
	now := s.taken.Unix()
	list := c.slurmOrder(s, now, idle)
	if list == nil {
		c.nobodyHeldUp(s)
		return
	}
	for _, h := range c.delays.jobs {
		h.now = false
	}
	free := lanesOf(c.occupiedBut(s, now, func(*job) bool { return false }))
	free.place(list, from)
	any := false
	for i := range list {
		any = c.isHeldUp(s, &list[i], from, now) || any
	}
	if any {
		c.giveWay(s, free, list, budgets, from, now)
	}
}

// isHeldUp takes over the place of a job without promises, and reports whether the job is held up.
func (c *Core) isHeldUp(s *snapshot, p *placed, from []int64, now int64) bool {
	if !p.stock {
		return false
	}
	id, end := p.record.ID, now+seconds(p.record.TimeLimit)
	h := c.delays.jobs[id]
	can := p.start <= now
	held := can && slices.ContainsFunc(p.at, func(n int) bool { return from[n] < end })
	if h == nil {
		if !held || len(c.delays.jobs) >= mostHeldUp || c.delays.of(p.record.UID) >= mostOfUser {
			return false
		}
		h = &heldUp{since: s.taken, uid: p.record.UID}
		c.delays.jobs[id] = h
	}
	if h.isFreed(c.now) && s.free(h.nodes) { // Slurm starts the job there once the holds are gone
		h.now, h.from, h.end = false, now, end
		h.waitsFor(slices.ContainsFunc(h.nodes, func(name string) bool { return from[s.index[name]] < end }), s.taken)
		return false
	}
	h.waitsFor(held || !can, s.taken)
	h.now, h.from, h.end = held && !h.spent && c.delays.distrusted[p.record.UID].IsZero(), now, end
	h.nodes = nil
	for _, n := range p.at {
		if can {
			h.nodes = append(h.nodes, s.nodes[n].Name)
		}
	}
	return h.now
}

// waitsFor records whether something currently keeps the job from starting.
func (h *heldUp) waitsFor(something bool, now time.Time) {
	switch {
	case something:
		h.free = time.Time{}
	case h.free.IsZero():
		h.free = now
	}
}

// slurmOrder lists the waiting jobs in Slurm's order: stock jobs, and evolving jobs with what is
// due. It returns nil if no stock job fits on the idle nodes.
func (c *Core) slurmOrder(s *snapshot, now int64, idle int) []placed {
	var list []placed
	fits, of := false, map[uint32]int{}
	for _, cand := range c.stockCandidates(s, now, turn{tier: math.MinInt}) {
		if of[cand.record.UID]++; of[cand.record.UID] > mostOfUser {
			continue
		}
		one, rest := firstTask(cand)
		fits = fits || one.profile[0].Nodes <= idle
		list = append(list, placed{candidate: one, stock: true})
		if rest != nil {
			list = append(list, placed{candidate: *rest})
		}
	}
	if !fits {
		return nil
	}
	clear(of)
	for _, j := range c.active {
		if of[j.UID] >= mostOfUser {
			continue
		}
		if cand, ok := c.dueNow(s, j, now); ok {
			of[j.UID]++
			list = append(list, placed{candidate: cand})
		}
	}
	slices.SortStableFunc(list, func(a, b placed) int { return moreUrgent(a.candidate, b.candidate) })
	return list[:min(len(list), mostOrdered)]
}

// firstTask splits the first task off an array.
func firstTask(cand candidate) (one candidate, rest *candidate) {
	tasks, nodes := cand.record.ArrayTasks, cand.profile[0].Nodes
	if tasks <= 1 || nodes <= max(cand.record.NumNodes, 1) {
		return cand, nil
	}
	others := cand
	one, others.profile = cand, slices.Clone(cand.profile)
	one.profile = slices.Clone(cand.profile)
	one.profile[0].Nodes = max(cand.record.NumNodes, 1)
	others.profile[0].Nodes -= one.profile[0].Nodes
	return one, &others
}

// dueNow returns an evolving job as Slurm would see it without holds: a queued job as its first
// step, and a job that waits for nodes as a job for these nodes.
func (c *Core) dueNow(s *snapshot, j *job, now int64) (candidate, bool) {
	cand := candidate{record: &j.record, turn: turn{c.tierOf(&j.record, false), j.priority}, earliest: now, rank: c.rankOf(&j.record)}
	if j.kept != nil || j.ending || j.asked == nil {
		return cand, false
	}
	nodes, err := s.eligible(c.recordFor(s, j), j.gres)
	if err != nil {
		return cand, false
	}
	count, lasts := 0, int64(0)
	switch {
	case j.State == row.Queued && notEligible(&j.record) == "":
		count, lasts = j.Profile[0].Nodes, seconds(j.record.TimeLimit)
		if !j.Begin.IsZero() {
			cand.earliest = max(now, j.Begin.Unix())
		}
	case j.State == row.Waiting && !j.last():
		has := j.nodes()
		for i := range nodes {
			if !slices.Contains(has, s.nodes[nodes[i]].Name) {
				cand.nodes = append(cand.nodes, nodes[i])
			}
		}
		nodes = cand.nodes
		count, lasts = j.Profile[j.Step].Nodes-len(has), min(j.Profile[j.Step:].Duration(), max(j.reach(now), 1))
	}
	if count < 1 || len(nodes) < count {
		return cand, false
	}
	cand.nodes, cand.profile = nodes, planner.Profile{{Duration: max(min(lasts, planner.MaxDuration), 1), Nodes: count}}
	return cand, true
}

// occupiedBut returns what is certain if only some of the running jobs are promised nodes for their
// coming steps. The other jobs keep their nodes as long as planned.
func (c *Core) occupiedBut(s *snapshot, origin int64, promised func(*job) bool) *occupancy {
	o := c.foreign(s, origin)
	now := s.taken.Unix()
	for _, j := range c.active {
		switch {
		case !j.runs() && j.State != row.Starting:
		case j.State == row.Starting || promised(j):
			c.addPromises(o, s, j, now)
		case !j.mode.carriesNodes:
			if j.State == row.Running && len(j.plan) >= j.Step {
				end := max(j.plan[j.Step-1].end, now)
				for _, name := range j.nodes() {
					if n, ok := s.index[name]; ok {
						o.add(n, o.origin, end+c.margin())
					}
				}
			}
		default:
			one := *j
			one.kept = &keptBack{} // the job keeps its nodes
			c.addPromises(o, s, &one, now)
		}
	}
	return o
}

// delayDigest returns a digest of everything that delays depend on.
func (c *Core) delayDigest(s *snapshot) uint64 {
	sum := uint64(14695981039346656037)
	add := func(values ...int64) {
		for _, v := range values {
			sum = (sum ^ uint64(v)) * 1099511628211
		}
	}
	text := func(t string) {
		for i := range len(t) {
			add(int64(t[i]))
		}
	}
	for i := range s.jobs {
		r := &s.jobs[i]
		add(int64(r.ID), int64(r.Priority), int64(len(r.NodeList)), r.EndTime.Unix())
		if text(string(r.State)); queues(r) {
			add(int64(r.NumNodes), int64(r.ArrayTasks), int64(r.TimeLimit))
		}
	}
	for i := range s.nodes {
		text(s.nodes[i].State)
	}
	for _, name := range sortedKeys(c.reservations) {
		r := c.reservations[name]
		add(int64(len(r.Nodes)), r.Start.Unix(), r.End.Unix())
	}
	for _, j := range c.active {
		add(int64(j.SlurmID), int64(j.Step), int64(len(j.plan)))
		for i := range j.plan {
			add(j.plan[i].start, j.plan[i].end)
		}
	}
	return max(sum, 1)
}

// budgetOf returns how much later than possible a job may start because of promises to another
// job. It returns 0 if Slurm would put the job first.
func (c *Core) budgetOf(r *slurmctl.Job, budgets config.Delays, holder *job) time.Duration {
	if c.outranks(r, &holder.record) {
		return 0
	}
	return budgets.Of(r.Partition, r.QOS)
}

// outranks reports whether Slurm puts a pending job before another job whatever their priorities:
// its partition has a higher PriorityTier, or it preempts the other job.
func (c *Core) outranks(r, other *slurmctl.Job) bool {
	if c.tierOf(r, true) > c.tierOf(other, true) {
		return true
	}
	p := c.rules.limits.Preemption()
	return p.Yields(other.Partition, other.QOS, r.Partition, r.QOS) || p.Suspends(other.Partition, other.QOS, r.Partition, r.QOS)
}
