package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/planner"
)

// placementGrid simulates the clusters. Each has a plan, by conservative backfilling of requested
// times: what starts when is decided there, at placement, and moves only forward.
type placementGrid struct {
	Placement
	placementWay
	work      placementJobs
	bandwidth [][]float64
	plans     []planner.Timeline // nodes promised, by cluster
	local     []*localUsers
	now       int64
	next      int             // job to be submitted
	queue     []*placementJob // KOALA's
	scan      int64           // second of its next scan
	active    []*placementJob // placed and not ended
	ended     []*placementJob
	left      int // jobs of the grid that have not ended
	own       map[*placementJob]bool
}

func newPlacementGrid(p Placement, way placementWay, work placementJobs, seed uint64) *placementGrid {
	work.jobs = slices.Clone(work.jobs)
	g := &placementGrid{Placement: p, placementWay: way, work: work, bandwidth: networks[p.Network](), plans: make([]planner.Timeline, len(das3)),
		scan: planner.Forever, left: len(work.jobs), own: map[*placementJob]bool{}}
	for c := range das3 {
		g.local = append(g.local, newLocalUsers(c, &work, seed))
	}
	return g
}

// play runs until all jobs of the grid have ended.
func (g *placementGrid) play(ctx context.Context) error {
	latest := g.work.last
	for i := range g.work.jobs { // one after the other, with room to spare
		latest += 4 * int64(g.Limit) * (g.work.jobs[i].takes + 3600)
	}
	for g.left > 0 {
		if err := cmp.Or(ctx.Err(), g.event()); err != nil {
			return err
		}
		if g.now > latest {
			return fmt.Errorf("after %d s there are still %d jobs", g.now, g.left)
		}
	}
	return nil
}

// event advances to the next second at which something happens.
func (g *placementGrid) event() error {
	next := g.scan
	if g.next < len(g.work.jobs) {
		next = min(next, g.work.jobs[g.next].submit)
	}
	for _, l := range g.local {
		next = min(next, int64(l.at))
	}
	for _, j := range g.active {
		next = min(next, j.end)
	}
	g.now = next
	g.finish()
	for c, l := range g.local {
		for int64(l.at) <= g.now {
			g.commit(l.next(), []placementPart{{c, 0}})
		}
	}
	for ; g.next < len(g.work.jobs) && g.work.jobs[g.next].submit <= g.now; g.next++ {
		j := &g.work.jobs[g.next]
		g.own[j] = true
		g.queue = append(g.queue, j)
		g.scan = g.now
	}
	if g.scan > g.now {
		return nil
	}
	g.scan = planner.Forever
	var failed error
	g.queue = slices.DeleteFunc(g.queue, func(j *placementJob) bool {
		parts, err := g.choose(j)
		failed = cmp.Or(failed, err)
		if parts == nil {
			return false
		}
		g.commit(j, parts)
		return true
	})
	return failed
}

// finish ends jobs, and moves waiting jobs forward in the clusters that they leave.
func (g *placementGrid) finish() {
	var freed []int
	g.active = slices.DeleteFunc(g.active, func(j *placementJob) bool {
		if j.end > g.now {
			return false
		}
		for _, part := range j.parts {
			g.plans[part.cluster].Remove(j.end, j.limit, part.nodes)
			freed = append(freed, part.cluster)
		}
		if g.own[j] {
			g.left--
		}
		g.ended = append(g.ended, j)
		return true
	})
	if len(freed) == 0 {
		return
	}
	slices.Sort(freed)
	for _, c := range slices.Compact(freed) {
		g.advance(c)
	}
	if len(g.queue) > 0 && g.scan == planner.Forever {
		g.scan = (g.now/int64(g.Poll) + 1) * int64(g.Poll)
	}
}

// advance moves the waiting jobs of a cluster forward, in order of start.
func (g *placementGrid) advance(cluster int) {
	var waiting []*placementJob
	for _, j := range g.active {
		if j.start > g.now && slices.ContainsFunc(j.parts, func(p placementPart) bool { return p.cluster == cluster }) {
			waiting = append(waiting, j)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *placementJob) int { return cmp.Compare(a.start, b.start) })
	for _, j := range waiting {
		for _, part := range j.parts {
			g.plans[part.cluster].Remove(j.start, j.limit, part.nodes)
		}
		g.promise(j, max(j.ready, g.now), j.end-j.start)
	}
}

// promise gives a job its nodes at the first second at which all its clusters have them.
func (g *placementGrid) promise(j *placementJob, from, takes int64) {
	requested := takes * int64(g.Limit)
	for j.start = from; ; from = j.start {
		for _, part := range j.parts {
			j.start = max(j.start, g.earliest(part.cluster, part.nodes, requested, from))
		}
		if j.start == from {
			break
		}
	}
	j.limit, j.end = j.start+requested, j.start+takes
	for _, part := range j.parts {
		g.plans[part.cluster].Add(j.start, j.limit, part.nodes)
	}
}

func (g *placementGrid) earliest(cluster, nodes int, seconds, from int64) int64 {
	return g.plans[cluster].EarliestFree(from, nodes, seconds, das3[cluster])
}

func (g *placementGrid) transfer(j *placementJob, cluster int) int64 {
	if j.file == nil {
		return 0
	}
	return j.file.seconds(cluster, g.bandwidth)
}

// offers returns what the clusters with that many nodes offer, and their numbers. Nodes count as idle
// if no job is promised them before this one would have to end.
func (g *placementGrid) offers(j *placementJob, need int) (offers []place.Offer, clusters []int) {
	for c, nodes := range das3 {
		if nodes < need {
			continue
		}
		o := place.Offer{Cluster: das3Names[c], Need: need, Nodes: nodes, Transfer: g.transfer(j, c)}
		requested := j.takes * int64(g.Limit)
		o.Free = nodes - g.plans[c].Max(g.now, g.now+o.Transfer+requested)
		o.Start = g.earliest(c, need, requested, g.now+o.Transfer)
		o.End = o.Start + requested
		offers, clusters = append(offers, o), append(clusters, c)
	}
	return offers, clusters
}

// choose returns where a job of the grid goes, or nil if it waits in KOALA's queue.
func (g *placementGrid) choose(j *placementJob) (parts []placementPart, err error) {
	if g.policy.Splits() {
		offers, clusters := g.offers(j, 1)
		spread, _, err := place.Spread(g.policy, j.components, offers)
		for _, part := range spread {
			parts = append(parts, placementPart{clusters[part.Offer], part.Nodes})
		}
		if err != nil || parts != nil || g.queueing() {
			return parts, err
		}
	}
	offers, clusters := g.offers(j, j.nodes)
	order, _, err := place.Choose(g.policy, offers)
	if err != nil || g.queueing() && offers[order[0]].Free < j.nodes {
		return nil, err
	}
	return []placementPart{{clusters[order[0]], j.nodes}}, nil
}

func (g *placementGrid) queueing() bool { return g.placementWay.queue == inKoala }

// commit places a job, and transfers its file to where there is none.
func (g *placementGrid) commit(j *placementJob, parts []placementPart) {
	if len(parts) == 1 {
		parts[0].nodes = j.nodes
	}
	j.parts, j.ready, j.extension = parts, g.now, 1
	within := 0. // share of the messages that stay in a cluster, if all nodes exchange alike
	for _, part := range parts {
		if seconds := g.transfer(j, part.cluster); seconds > 0 {
			j.staged = append(j.staged, seconds)
			j.ready = max(j.ready, g.now+seconds)
		}
		share := float64(part.nodes) / float64(j.nodes)
		within += share * share
	}
	if len(parts) > 1 {
		j.extension = 1 + j.communication*(1-within)*float64(g.Ratio-1)
	}
	g.promise(j, j.ready, int64(math.Ceil(float64(j.takes)*j.extension)))
	g.active = append(g.active, j)
}

// figures returns the figures of a run that has ended.
func (g *placementGrid) figures() placementFigures {
	f := placementFigures{columns: map[string]float64{}, clusters: make([]float64, len(das3))}
	add := func(column string, value float64) { f.columns[column] += value }
	locals, split := 0., 0.
	for _, j := range slices.Concat(g.ended, g.active) {
		for _, part := range j.parts {
			seconds := min(j.end, g.work.last+1) - max(j.start, g.work.first)
			f.clusters[part.cluster] += float64(part.nodes) * float64(max(seconds, 0))
		}
		if !g.own[j] {
			if j.submit >= g.work.first && j.submit <= g.work.last {
				locals++
				add("local_wait", float64(j.start-j.submit))
			}
			continue
		}
		add("wait", float64(j.start-j.submit))
		add("response", float64(j.end-j.submit))
		if len(j.parts) > 1 {
			split++
			add("extension", j.extension)
		}
		for _, seconds := range j.staged {
			add("transfers", 1)
			add("gigabytes", float64(j.file.gigabytes))
			add("transfer_time", float64(seconds))
		}
	}
	n, area := float64(len(g.work.jobs)), float64(g.work.last+1-g.work.first)
	all := 0
	for c, nodes := range das3 {
		add("utilisation", 100*f.clusters[c]/area)
		all += nodes
		f.clusters[c] *= 100 / (area * float64(nodes))
	}
	f.columns["split"] = 100 * split / n
	for column, by := range map[string]float64{"wait": n, "response": n, "local_wait": locals, "utilisation": float64(all), "extension": split, "transfer_time": f.columns["transfers"]} {
		f.columns[column] /= by // NaN without any
	}
	squares := 0.
	for _, percent := range f.clusters {
		squares += (percent - f.columns["utilisation"]) * (percent - f.columns["utilisation"])
	}
	f.columns["imbalance"] = math.Sqrt(squares / float64(len(das3)))
	return f
}
