package slurmsim

// scratch holds the working memory of choose.
type scratch struct {
	from   nodeSet // nodes that the job could get
	either nodeSet // those of one alternative
	got    nodeSet // nodes that it gets
	runs   []run
	future usage
	queue  []*job
	avail  nodeSet
	stuck  []*partition
}

// run is a run of consecutive nodes with the same weight.
type run struct {
	first, last, nodes int
	cpus               int32
	weight             int
	required           int // first node in it that the job names; -1 if none
}

// choice is the choice of a job's nodes under way.
type choice struct {
	*nodeTable
	*scratch
	j    *job
	u    *usage
	want int   // nodes still needed
	cpus int32 // CPUs still needed
}

// choose picks a job's nodes as select/cons_tres does (_eval_nodes of its job_test.c). It considers
// the runs of consecutive nodes of the least weight. It prefers the run with a node that the job
// names, then the run whose free CPUs suffice most tightly, then the largest run. In that run, it
// goes upwards from the named node, then downwards. It repeats this until the job has enough nodes.
// A job that lacks one node gets the sufficient node with the fewest free CPUs. The set is valid
// until the next call. O(nodes). With a topology, see network.order and blocks.order. From 26.05 on, a job of one node gets the
// lightest one (_get_one_res). With a constraint in brackets, the first
// alternative with enough nodes counts (_get_req_features of node_scheduler.c); Slurm ignores brackets beside --nodelist.
func choose(c *Cluster, j *job, u *usage, from nodeSet) (nodeSet, bool) {
	if j.Counted != nil && j.Required == nil {
		return chooseCounted(c, j, u, from)
	}
	if j.Either == nil || j.Required != nil {
		return chooseFrom(c, j, u, from)
	}
	for _, feature := range j.Either {
		c.room.either = append(c.room.either[:0], from...)
		c.keepFeature(c.room.either, feature)
		if set, ok := chooseFrom(c, j, u, c.room.either); ok {
			return set, true
		}
	}
	return nil, false
}

// chooseCounted picks the nodes of each feature, then the others.
func chooseCounted(c *Cluster, j *job, u *usage, from nodeSet) (nodeSet, bool) {
	all, one := newNodeSet(len(c.Nodes)), *j
	for _, count := range j.Counted {
		c.room.either = append(c.room.either[:0], from...)
		c.keepFeature(c.room.either, count.Feature)
		c.room.either.minus(all)
		one.NumNodes = count.Nodes
		set, ok := chooseFrom(c, &one, u, c.room.either)
		if !ok {
			return nil, false
		}
		for n := set.next(0); n >= 0; n = set.next(n + 1) {
			all.add(n)
		}
	}
	one.NumNodes, one.Required = max(j.NumNodes, all.count()), all
	return chooseFrom(c, &one, u, from)
}

func chooseFrom(c *Cluster, j *job, u *usage, from nodeSet) (nodeSet, bool) {
	if j.whole() && from.common(u.Idle) < j.NumNodes {
		return nil, false
	}
	w := choice{&c.nodeTable, &c.room, j, u, j.NumNodes, int32(j.NumNodes) * int32(max(j.Request.CPUs, 1))}
	w.from = append(w.from[:0], from...)
	if w.candidates(j, u, w.from); !j.whole() && w.from.count() < w.want || j.Required != nil && !w.from.holds(j.Required) {
		return nil, false
	}
	w.got = append(w.got[:0], make(nodeSet, len(from))...)
	if j.Required != nil {
		if w.want < j.Required.count() {
			return nil, false
		}
		for n := j.Required.next(0); n >= 0; n = j.Required.next(n + 1) {
			w.get(n)
		}
	}
	return w.got, w.fromTopology(c)
}

// fromTopology takes the missing nodes, and reports whether there are enough.
func (w *choice) fromTopology(c *Cluster) bool {
	if c.anywhere && w.j.NumNodes == 1 {
		return w.lightest()
	}
	if c.blocks != nil && c.blocks.all.overlaps(w.from) { // Slurm has jobs that may have no node in a block elsewhere
		more, ok := c.blocks.order(c.Nodes, w.from, w.j.Required, w.j.NumNodes)
		for _, n := range more {
			w.get(n)
		}
		return ok
	}
	if w.want == 0 || c.network == nil {
		return w.fromRuns()
	}
	for _, n := range c.network.order(c.Nodes, w.from, w.j.Required, w.want) {
		w.get(n)
	}
	return w.want == 0 && !c.network.scatters(w.j, w.got, c.Now())
}

// lightest takes the node of the least weight, and of equals the first one, if one is missing, and reports whether there is one.
func (w *choice) lightest() bool {
	best := -1
	for n := w.from.next(0); n >= 0; n = w.from.next(n + 1) {
		if best < 0 || w.Nodes[n].Weight < w.Nodes[best].Weight {
			best = n
		}
	}
	if best >= 0 {
		w.get(best)
	}
	return w.want == 0
}

// fromRuns takes the missing nodes run by run, and reports whether there are enough.
func (w *choice) fromRuns() bool {
	if w.want > 0 {
		w.consecutive()
	}
	for w.want > 0 {
		best := bestRun(w.runs, w.want, w.cpus)
		if best < 0 {
			return false
		}
		w.takeFrom(&w.runs[best])
	}
	return true
}

// get takes a node if the job needs it.
func (w *choice) get(n int) {
	if w.want > 0 && w.from.has(n) && !w.got.has(n) {
		w.got.add(n)
		w.want--
		w.cpus -= w.cpusOf(w.j, n)
	}
}

// takeFrom takes nodes from a run.
func (w *choice) takeFrom(r *run) {
	switch {
	case r.required >= 0:
		for n := r.required; n <= r.last; n++ {
			w.get(n)
		}
		for n := r.required - 1; n >= r.first; n-- {
			w.get(n)
		}
	case w.plain():
		last := min(r.last, r.first+w.want-1)
		w.got.span(r.first, last)
		w.want -= last - r.first + 1
	case w.want == 1:
		w.get(w.tightest(r))
	default:
		for n := r.first; n <= r.last && w.want > 0; n++ {
			w.get(n)
		}
	}
	r.nodes = 0
}

// plain reports whether one node is as good as another.
func (w *choice) plain() bool { return w.uniform && w.j.whole() && w.j.Required == nil }

// tightest returns the node of a run with the fewest CPUs that suffice.
func (w *choice) tightest(r *run) int {
	best, least := r.first, int32(0)
	for n := r.first; n <= r.last; n++ {
		if w.got.has(n) {
			continue
		}
		if free := w.freeCPUs(w.j, w.u, n); free >= w.cpus && (least == 0 || free < least) {
			best, least = n, free
		}
	}
	return best
}

// consecutive finds the runs among the candidates.
func (w *choice) consecutive() {
	w.runs = w.runs[:0]
	if w.plain() {
		cpus := int32(w.Nodes[0].CPUs)
		for n := w.from.next(0); n >= 0; {
			end := w.from.gap(n)
			w.runs = append(w.runs, run{first: n, last: end - 1, nodes: end - n, cpus: int32(end-n) * cpus, required: -1})
			n = w.from.next(end)
		}
		return
	}
	at := run{required: -1}
	end := func() {
		if at.nodes > 0 {
			w.runs = append(w.runs, at)
		}
		at = run{required: -1}
	}
	before := -2
	for n := w.from.next(0); n >= 0; n = w.from.next(n + 1) {
		weight := w.Nodes[n].Weight
		if n != before+1 || at.nodes > 0 && weight != at.weight {
			end()
		}
		before = n
		if at.nodes == 0 && at.required < 0 {
			at.first = n
		}
		at.last = n
		if w.j.Required != nil && w.j.Required.has(n) {
			if at.required < 0 {
				at.required = n
			}
			continue
		}
		at.weight = weight
		at.cpus += w.freeCPUs(w.j, w.u, n)
		at.nodes++
	}
	end()
}

// bestRun returns the index of the run to take nodes from, or -1 if none is left.
func bestRun(runs []run, nodes int, cpus int32) int {
	best, enough := -1, false
	for i := range runs {
		r := &runs[i]
		if r.nodes == 0 {
			continue
		}
		suffices := r.cpus >= cpus && r.nodes >= nodes
		better := best < 0 || runs[best].required < 0 && r.required >= 0 || r.weight < runs[best].weight
		if !better && r.weight == runs[best].weight {
			better = suffices && (!enough || r.cpus < runs[best].cpus) || !suffices && r.cpus > runs[best].cpus
		}
		if better {
			best, enough = i, suffices
		}
	}
	return best
}
