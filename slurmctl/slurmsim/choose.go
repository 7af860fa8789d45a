package slurmsim

// scratch holds the working memory of choose.
type scratch struct {
	from   nodeSet // nodes that the job could get
	got    nodeSet // nodes that it gets
	runs   []run
	future usage
	queue  []*job
	avail  nodeSet
}

// run is a run of consecutive nodes with the same weight.
type run struct {
	first, last, nodes int
	cpus               int32
	weight             int
	required           int // first node in it that the job names; -1 if none
}

// candidates keeps those nodes with room for the job in that usage.
func (c *Cluster) candidates(j *job, u *usage, from nodeSet) {
	if j.whole() {
		from.and(u.idle)
		return
	}
	from.minus(u.sole)
	for n := from.next(0); n >= 0; n = from.next(n + 1) {
		if int(u.cpus[n])+j.request.CPUs > c.nodes[n].CPUs || !c.roomy(j, u, n) {
			from.drop(n)
		}
	}
}

// choose picks a job's nodes as select/cons_tres does (_eval_nodes of its job_test.c). It considers
// the runs of consecutive nodes of the least weight. It prefers the run with a node that the job
// names, then the run whose free CPUs suffice most tightly, then the largest run. In that run, it
// goes upwards from the named node, then downwards. It repeats this until the job has enough nodes.
// A job that lacks one node gets the sufficient node with the fewest free CPUs. The set is valid
// until the next call. O(nodes).
func (c *Cluster) choose(j *job, u *usage, from nodeSet) (nodeSet, bool) {
	want := j.NumNodes
	whole := j.whole()
	if whole && from.common(u.idle) < want {
		return nil, false
	}
	w := &c.room
	w.from = append(w.from[:0], from...)
	c.candidates(j, u, w.from)
	if w.from.count() < want || j.required != nil && !w.from.holds(j.required) {
		return nil, false
	}
	w.got = append(w.got[:0], make(nodeSet, len(from))...)
	cpus := int32(want) * int32(max(j.request.CPUs, 1)) // still needed
	if j.required != nil {
		if want -= j.required.count(); want < 0 {
			return nil, false
		}
		for n := j.required.next(0); n >= 0; n = j.required.next(n + 1) {
			w.got.add(n)
			cpus -= c.cpusOf(j, n)
		}
	}
	if want > 0 {
		c.consecutive(j, u)
	}
	for want > 0 {
		best := bestRun(w.runs, want, cpus)
		if best < 0 {
			return nil, false
		}
		r := &w.runs[best]
		get := func(n int) {
			if want > 0 && w.from.has(n) && !w.got.has(n) {
				w.got.add(n)
				want--
				cpus -= c.cpusOf(j, n)
			}
		}
		switch {
		case r.required >= 0:
			for n := r.required; n <= r.last; n++ {
				get(n)
			}
			for n := r.required - 1; n >= r.first; n-- {
				get(n)
			}
		case c.uniform && whole && j.required == nil:
			last := min(r.last, r.first+want-1)
			w.got.span(r.first, last)
			want -= last - r.first + 1
		case want == 1:
			get(c.tightest(j, u, r, cpus))
		default:
			for n := r.first; n <= r.last && want > 0; n++ {
				get(n)
			}
		}
		r.nodes = 0
	}
	return w.got, true
}

// cpusOf returns how many CPUs of a node the job takes.
func (t *nodeTable) cpusOf(j *job, n int) int32 {
	if j.whole() {
		return int32(t.nodes[n].CPUs)
	}
	return int32(j.request.CPUs)
}

// freeCPUs returns how many CPUs of a node the job could take.
func (t *nodeTable) freeCPUs(j *job, u *usage, n int) int32 {
	if j.whole() {
		return int32(t.nodes[n].CPUs)
	}
	return int32(t.nodes[n].CPUs) - u.cpus[n]
}

// tightest returns the node of a run with the fewest CPUs that suffice.
func (c *Cluster) tightest(j *job, u *usage, r *run, cpus int32) int {
	best, least := r.first, int32(0)
	for n := r.first; n <= r.last; n++ {
		if c.room.got.has(n) {
			continue
		}
		if free := c.freeCPUs(j, u, n); free >= cpus && (least == 0 || free < least) {
			best, least = n, free
		}
	}
	return best
}

// consecutive finds the runs among the candidates.
func (c *Cluster) consecutive(j *job, u *usage) {
	w := &c.room
	w.runs = w.runs[:0]
	if c.uniform && j.whole() && j.required == nil {
		cpus := int32(c.nodes[0].CPUs)
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
		weight := c.nodes[n].Weight
		if n != before+1 || at.nodes > 0 && weight != at.weight {
			end()
		}
		before = n
		if at.nodes == 0 && at.required < 0 {
			at.first = n
		}
		at.last = n
		if j.required != nil && j.required.has(n) {
			if at.required < 0 {
				at.required = n
			}
			continue
		}
		at.weight = weight
		at.cpus += c.freeCPUs(j, u, n)
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
