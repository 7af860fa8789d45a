package delay

import (
	"math"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Watch finds the stock jobs that are held up. Promises then give way to jobs that would
// exceed their budgets.
func Watch(c *state.Core, s *state.Snapshot) {
	d := &c.Delays
	s = pace.SwitchedOn(s)
	forgetDelays(c, s)
	from := heldFrom(c, s)
	idle, parts, held := idleNodes(s, from)
	if idle+parts == 0 || !held && len(d.Jobs) == 0 {
		d.Seen = 0
		nobodyHeldUp(c, s)
		return
	}
	if !readLicenses(c, s) {
		return // the answer begins the next cycle
	}
	if seen := delayDigest(c, s); seen != d.Seen || !c.Now.Before(d.Again) {
		d.Seen, d.Again = seen, c.Now.Add(plan.DelaysAgain)
		d.Fits = findDelays(c, s, from, idle, parts)
	}
	if d.Fits {
		c.At(d.Again)
	}
}

// forgetDelays drops the jobs that no longer wait.
func forgetDelays(c *state.Core, s *state.Snapshot) {
	for id, h := range c.Delays.Jobs {
		r := s.ByID[id]
		if r == nil || r.State != slurmctl.Pending || c.Owner(id) != nil || r.Priority == 0 {
			delete(c.Delays.Jobs, id)
			continue
		}
		if lacksLicenses(c, s, r) { // that says nothing about the job
			h.Free = time.Time{}
		}
		if free := h.Free; !h.Spent && !free.IsZero() && c.Passed(c.Now, free.Add(plan.StartPatience)) {
			h.Spent, h.Now = true, false
			if !h.Freed.IsZero() {
				c.Delays.Distrusted[r.UID] = c.Now.Add(plan.DistrustFor)
			}
		}
	}
	for uid, until := range c.Delays.Distrusted {
		if c.Reached(c.Now, until) {
			delete(c.Delays.Distrusted, uid)
		}
	}
}

// lacksLicenses reports whether licences that a pending job asks for are in use. Slurm does not always say so: its backfill
// leaves the reason as it was.
func lacksLicenses(c *state.Core, s *state.Snapshot, r *slurmctl.Job) bool {
	return r.Reason == "Licenses" || slurm.LicensesInUse(c, s, r) != ""
}

// nobodyHeldUp records that no hold keeps a stock job from starting.
func nobodyHeldUp(c *state.Core, s *state.Snapshot) {
	for id, h := range c.Delays.Jobs {
		if h.Now = false; h.Freed.IsZero() || lacksLicenses(c, s, s.ByID[id]) {
			h.Free = time.Time{}
			continue
		}
		nodes, _ := slurm.StockPlaces(s, s.ByID[id])
		need, _ := slurm.StockParts(s, s.ByID[id], nodes)
		idle := 0
		for _, n := range nodes {
			if slurm.Idle(s, n) {
				idle++
			}
		}
		if can := idle >= max(need, 1); !can {
			h.Free = time.Time{}
		} else if h.Free.IsZero() {
			h.Free = s.Taken
			c.At(h.Free.Add(plan.StartPatience))
		}
	}
}

// heldFrom returns from when each node is held: Unix seconds, or planner.Forever if it is not held.
func heldFrom(c *state.Core, s *state.Snapshot) []int64 {
	from := slices.Repeat([]int64{planner.Forever}, len(s.Nodes))
	for _, h := range c.Ours {
		if c.ByID[h.Own.Job] == nil {
			continue
		}
		for _, name := range c.Reservations[h.Name].Nodes {
			if n, ok := s.Index[name]; ok {
				from[n] = min(from[n], c.Reservations[h.Name].Start.Unix())
			}
		}
	}
	return from
}

// heldGains lists the coming growths of a job with a hold in place, if the job runs, or is about to.
func heldGains(c *state.Core, j *state.Job) (held []state.Gain) {
	if !j.Runs() && !isAboutToRun(j) || j.Kept != nil {
		return nil
	}
	for _, g := range hold.Gained(j) {
		if g.Step > 1 && hold.InPlace(c, j, g.Step) {
			held = append(held, g)
		}
	}
	return held
}

// isAboutToRun reports whether Slurm is starting the job that will get the nodes of all steps.
func isAboutToRun(j *state.Job) bool {
	return j.State == row.Starting && j.Mode.CarriesNodes && len(j.Plan) > 0
}

// idleNodes returns the number of idle nodes, and of nodes that stock jobs use in part, and whether any of them is held.
func idleNodes(s *state.Snapshot, from []int64) (idle, parts int, held bool) {
	for i := range s.Nodes {
		switch {
		case slurm.Idle(s, i):
			idle++
		case s.Nodes[i].CPUsAlloc > 0 && s.Nodes[i].CPUsAlloc < s.Nodes[i].CPUs:
			parts++
		default:
			continue
		}
		held = held || from[i] < planner.Forever
	}
	return idle, parts, held
}

// findDelays plans the waiting jobs without promises, and finds the jobs that could start now. It reports whether
// any stock job fits on the idle nodes.
func findDelays(c *state.Core, s *state.Snapshot, from []int64, idle, parts int) bool {
	budgets, err := c.Config.Delays()
	if err != nil { // Validate rejects invalid delays before
		return false
	}
	now := s.Taken.Unix()
	list := slurmOrder(c, s, now, idle, parts)
	if list == nil {
		nobodyHeldUp(c, s)
		return false
	}
	for _, h := range c.Delays.Jobs {
		h.Now = false
	}
	free := place(c, s, list, from, now, func(*state.Job) bool { return false })
	any, before := false, make([]bool, len(s.Nodes))
	for i := range list {
		if p := &list[i]; p.Stock {
			any = isHeldUp(c, s, p, from, now, comesFirst(before, p.Nodes)) || any
		}
	}
	if any {
		giveWay(c, s, free, list, budgets, from, now)
	}
	return true
}

// readLicenses reports whether it is known which licences there are, or no stock job waits that asks for any.
func readLicenses(c *state.Core, s *state.Snapshot) bool {
	return !slices.ContainsFunc(s.Jobs, func(r slurmctl.Job) bool {
		return r.State == slurmctl.Pending && r.Licenses != "" && c.Owner(r.ID) == nil && !slurm.ReadLicenses(c)
	})
}

// place gives the jobs of a list their places beside the promises to some running jobs, and returns what is left.
func place(c *state.Core, s *state.Snapshot, list []slurm.Placed, from []int64, now int64, promised func(*state.Job) bool) *slurm.Lanes {
	o := occupiedBut(c, s, now, promised)
	asked := msg.Set{}
	for i := range list {
		for _, l := range list[i].Licenses {
			asked[l.Name] = true
		}
	}
	lanes := slurm.LanesOf(o)
	if len(asked) > 0 {
		slurm.AddLicenses(c, o, s, asked)
		lanes.Licensed(c, o)
	}
	if stock.PlaceShared(c, s, o, list, from) {
		lanes.Take(list)
	} else {
		lanes.Place(list, from)
	}
	return lanes
}

// comesFirst reports whether no stock job before one shares its nodes, and adds these to the nodes of the jobs before.
func comesFirst(before []bool, nodes []int) bool {
	first := true
	for _, n := range nodes {
		first = first && !before[n]
		before[n] = true
	}
	return first
}

// isHeldUp takes over the place of a stock job without promises, and reports whether the job is held up. It gets
// whether no stock job comes before that one.
func isHeldUp(c *state.Core, s *state.Snapshot, p *slurm.Placed, from []int64, now int64, first bool) bool {
	id, end := p.Record.ID, now+slurm.Seconds(p.Record.TimeLimit)
	h := c.Delays.Jobs[id]
	can := p.Start <= now
	held := can && slices.ContainsFunc(p.At, func(n int) bool { return from[n] < end })
	if h == nil {
		if !held || len(c.Delays.Jobs) >= plan.MostHeldUp || heldUpOf(c, p.Record.UID) >= stock.MostOfUser {
			return false
		}
		h = &state.HeldUp{Since: s.Taken, UID: p.Record.UID}
		c.Delays.Jobs[id] = h
	}
	h.InTurn(first)
	if isFreed(c, s, h, end) { // Slurm starts the job there once the holds are gone
		h.Now, h.From, h.End = false, now, end
		h.WaitsFor(slices.ContainsFunc(h.Nodes, func(name string) bool { return from[s.Index[name]] < end }), s.Taken)
		return false
	}
	h.WaitsFor(held || !can, s.Taken)
	h.Now, h.From, h.End = held && !h.Spent && c.Delays.Distrusted[p.Record.UID].IsZero(), now, end
	h.Nodes = nil
	for _, n := range p.At {
		if can {
			h.Nodes = append(h.Nodes, s.Nodes[n].Name)
		}
	}
	return h.Now
}

// isFreed reports whether a job that ends at a Unix second still has the nodes for which promises gave way.
func isFreed(c *state.Core, s *state.Snapshot, h *state.HeldUp, end int64) bool {
	return plan.IsFreed(c, h, c.Now) && len(h.Nodes) > 0 && slurm.Free(s, h.Nodes) && !promisedAgain(c, h, end)
}

// promisedAgain reports whether nodes for which promises gave way are held for a growth before a Unix second. Its
// promise had no hold yet when the others gave way.
func promisedAgain(c *state.Core, h *state.HeldUp, end int64) bool {
	return slices.ContainsFunc(obstacles(c, end), func(x obstacle) bool { return x.nodes.Any(h.Nodes) })
}

// slurmOrder lists the jobs in Slurm's order that wait for nodes that evolving jobs may have: stock jobs, and evolving
// jobs with what is due. It returns nil if no stock job fits on the idle nodes, or in parts of nodes.
func slurmOrder(c *state.Core, s *state.Snapshot, now int64, idle, parts int) []slurm.Placed {
	var list []slurm.Placed
	var known []slurm.Candidate
	for id := range c.Delays.Jobs {
		if r := s.ByID[id]; r != nil {
			nodes, _ := slurm.StockPlaces(s, r)
			known = append(known, slurm.Candidate{Record: r, Nodes: nodes})
		}
	}
	fits, of, sets := false, map[uint32]int{}, stock.SetsBeside(c, s, c.Active, known...)
	for _, cand := range stock.Candidates(c, s, now, slurm.Turn{Tier: math.MinInt}, sets) {
		if of[cand.Record.UID]++; of[cand.Record.UID] > stock.MostOfUser {
			continue
		}
		one, rest := firstTask(cand)
		if unlicensed(c, one) {
			continue
		}
		fits = fits || one.Profile[0].Nodes <= idle || !cand.Record.Exclusive && one.Profile[0].Nodes <= idle+parts
		list = append(list, slurm.Placed{Candidate: one, Stock: true})
		if rest != nil {
			list = append(list, slurm.Placed{Candidate: *rest})
		}
	}
	if !fits {
		return nil
	}
	clear(of)
	for _, j := range c.Active {
		if of[j.UID] >= stock.MostOfUser {
			continue
		}
		if cand, ok := dueNow(c, s, j, now); ok && !unlicensed(c, cand) {
			of[j.UID]++
			list = append(list, slurm.Placed{Candidate: cand})
		}
	}
	slices.SortStableFunc(list, func(a, b slurm.Placed) int { return stock.MoreUrgent(a.Candidate, b.Candidate) })
	return sets.First(list, plan.MostOrdered)
}

// unlicensed reports whether a job cannot start, whatever else is free: the cluster no longer has a licence that it asks for, or Slurm
// says so of licences that the sidecar does not count.
func unlicensed(c *state.Core, cand slurm.Candidate) bool {
	uncounted := slices.ContainsFunc(c.Licenses.Stock, func(of slurmctl.LicenseStock) bool {
		return of.Spread && slices.ContainsFunc(cand.Licenses, func(l slurmctl.License) bool { return l.Name == of.Name })
	})
	return c.Licenses.Known && slurmctl.LacksLicense(cand.Licenses, c.Licenses.Stock) != "" || uncounted && cand.Record.Reason == "Licenses"
}

// firstTask splits the first task off an array.
func firstTask(cand slurm.Candidate) (one slurm.Candidate, rest *slurm.Candidate) {
	tasks, nodes := cand.Record.ArrayTasks, cand.Profile[0].Nodes
	licenses := slices.Clone(cand.Licenses)
	cand.Licenses = slices.Clone(cand.Licenses)
	for i := range licenses {
		cand.Licenses[i].Count /= stock.TasksAtOnce(cand.Record)
		licenses[i].Count -= cand.Licenses[i].Count
	}
	if tasks > 1 && cand.Record.ArrayLimit > 0 { // of several rounds, the first
		cand.Profile = slices.Clone(cand.Profile)
		cand.Profile[0].Duration = stock.TaskSeconds(cand.Record)
	}
	if tasks <= 1 || nodes <= max(cand.Record.NumNodes, 1) {
		return cand, nil
	}
	others := cand
	one, others.Profile, others.Parts = cand, slices.Clone(cand.Profile), nil
	one.Profile = slices.Clone(cand.Profile)
	one.Profile[0].Nodes = max(cand.Record.NumNodes, 1)
	others.Profile[0].Nodes -= one.Profile[0].Nodes
	others.Licenses = licenses
	return one, &others
}

// dueNow returns an evolving job as Slurm would see it without holds: a queued job as its first
// step, and a job that waits for nodes as a job for these nodes.
func dueNow(c *state.Core, s *state.Snapshot, j *state.Job, now int64) (slurm.Candidate, bool) {
	cand := slurm.Candidate{Record: &j.Record, Turn: slurm.Turn{stock.TierOf(c, &j.Record, false), j.Priority}, Earliest: now, Rank: slurm.RankOf(c, &j.Record)}
	if j.Kept != nil || j.Ending || j.Asked == nil {
		return cand, false
	}
	nodes, err := slurm.EligibleBeside(c, s, j)
	if err != nil {
		return cand, false
	}
	count, lasts := 0, int64(0)
	switch {
	case j.State == row.Queued && plan.NotEligible(&j.Record) == "":
		count, lasts = j.Profile[0].Nodes, slurm.Seconds(j.Record.TimeLimit)
		cand.Licenses, _ = slurmctl.ParseLicenses(j.Record.Licenses)
		if !j.Begin.IsZero() {
			cand.Earliest = c.Since(now, j.Begin.Unix())
		}
	case j.State == row.Waiting && !j.Last():
		growth := j.Record
		growth.Licenses = "" // it asks for none
		cand.Record = &growth
		has := j.Nodes()
		for i := range nodes {
			if !slices.Contains(has, s.Nodes[nodes[i]].Name) {
				cand.Nodes = append(cand.Nodes, nodes[i])
			}
		}
		nodes = cand.Nodes
		count, lasts = j.Profile[j.Step].Nodes-len(has), min(j.Profile[j.Step:].Duration(), max(slurm.Reach(c, j, now), 1))
	}
	if count < 1 || len(nodes) < count {
		return cand, false
	}
	cand.Nodes, cand.Profile = nodes, planner.Profile{{Duration: max(min(lasts, planner.MaxDuration), 1), Nodes: count}}
	return cand, true
}

// occupiedBut returns what is certain if only some of the running jobs are promised nodes for their
// coming steps. The other jobs keep their nodes as long as planned.
func occupiedBut(c *state.Core, s *state.Snapshot, origin int64, promised func(*state.Job) bool) *msg.Occupancy {
	o := refit.Foreign(c, s, origin)
	now := s.Taken.Unix()
	for _, j := range c.Active {
		switch {
		case !j.Runs() && j.State != row.Starting, j.Ending:
		case promised(j) || j.State == row.Starting && !isAboutToRun(j):
			refit.AddPromises(c, o, s, j, now)
		case j.State == row.Starting:
			one, first := *j, j.Plan[0]
			first.End = j.Plan[len(j.Plan)-1].End
			one.Plan = []msg.PlannedStep{first} // the job keeps its first nodes
			refit.AddPromises(c, o, s, &one, now)
		case !j.Mode.CarriesNodes:
			if j.State == row.Running && len(j.Plan) >= j.Step {
				end := c.Until(now, j.Plan[j.Step-1].End)
				for _, name := range j.Nodes() {
					if n, ok := s.Index[name]; ok {
						o.Add(n, o.Origin, end+slurm.Margin(c))
					}
				}
			}
		default:
			one := *j
			one.Kept = &state.KeptBack{} // the job keeps its nodes
			refit.AddPromises(c, o, s, &one, now)
		}
	}
	return o
}

// delayDigest returns a digest of everything that delays depend on.
func delayDigest(c *state.Core, s *state.Snapshot) uint64 {
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
	for i := range s.Jobs {
		r := &s.Jobs[i]
		add(int64(r.ID), int64(r.Priority), int64(len(r.NodeList)), r.EndTime.Unix())
		if text(string(r.State)); slurm.Queues(r) {
			add(int64(r.NumNodes), int64(r.ArrayTasks), int64(r.TimeLimit))
		}
	}
	for i := range s.Nodes {
		text(s.Nodes[i].State)
	}
	for _, name := range state.SortedKeys(c.Reservations) {
		r := c.Reservations[name]
		add(int64(len(r.Nodes)), r.Start.Unix(), r.End.Unix())
	}
	for _, j := range c.Active {
		add(int64(j.SlurmID), int64(j.Step), int64(len(j.Plan)))
		for i := range j.Plan {
			add(j.Plan[i].Start, j.Plan[i].End)
		}
	}
	return max(sum, 1)
}

// budgetOf returns how much later than possible a job may start because of promises to another
// job. It returns 0 if Slurm would put the job first.
func budgetOf(c *state.Core, r *slurmctl.Job, budgets config.Delays, holder *state.Job) time.Duration {
	if Outranks(c, r, &holder.Record) {
		return 0
	}
	return budgets.Of(r.Partition, r.QOS)
}

// Outranks reports whether Slurm puts a pending job before another job whatever their priorities:
// its partition has a higher PriorityTier, or it preempts the other job.
func Outranks(c *state.Core, r, other *slurmctl.Job) bool {
	if stock.TierOf(c, r, true) > stock.TierOf(c, other, true) {
		return true
	}
	p := c.Rules.Limits.Preemption()
	return p.Yields(other.Partition, other.QOS, r.Partition, r.QOS) || p.Suspends(other.Partition, other.QOS, r.Partition, r.QOS)
}

// heldUpOf counts the jobs of a user that are held up.
func heldUpOf(c *state.Core, uid uint32) (n int) {
	for _, h := range c.Delays.Jobs {
		if h.UID == uid {
			n++
		}
	}
	return n
}
