package slurmsim

// usage is what is taken of the nodes, now or once some jobs have ended.
type usage struct {
	jobs []int32 // on every node
	cpus []int32
	idle nodeSet // nodes without a job
	sole nodeSet // nodes of a job that shares them with nobody
}

func (c *Cluster) noUsage() usage {
	n := len(c.nodes)
	u := usage{jobs: make([]int32, n), cpus: make([]int32, n), idle: newNodeSet(n), sole: newNodeSet(n)}
	for i := range c.nodes {
		u.idle.add(i)
	}
	return u
}

// copyTo makes t what u is.
func (u *usage) copyTo(t *usage) {
	t.jobs = append(t.jobs[:0], u.jobs...)
	t.cpus = append(t.cpus[:0], u.cpus...)
	t.idle = append(t.idle[:0], u.idle...)
	t.sole = append(t.sole[:0], u.sole...)
}

// take and give book a job's nodes.
func (c *Cluster) take(j *job, nodes []int) { c.book(&c.usage, j, nodes, 1) }
func (c *Cluster) give(j *job, nodes []int) { c.book(&c.usage, j, nodes, -1) }

func (c *Cluster) book(u *usage, j *job, nodes []int, sign int32) {
	whole := j.whole()
	for _, n := range nodes {
		cpus := int32(j.request.CPUs)
		if whole {
			cpus = int32(c.nodes[n].CPUs)
		}
		u.cpus[n] += sign * cpus
		u.jobs[n] += sign
		if u.jobs[n] == 0 {
			u.idle.add(n)
		} else {
			u.idle.drop(n)
		}
		if whole && sign > 0 {
			u.sole.add(n)
		} else if whole {
			u.sole.drop(n)
		}
	}
}

// scratch is what choosing works with.
type scratch struct {
	from   nodeSet
	cpus   []int32 // that the job could have of a node
	runs   []run
	future usage
}

// run is some consecutive nodes of one weight.
type run struct {
	first, last, nodes int
	cpus               int32
	weight             int
	required           int // the first of them that the job names; -1: none
}

// candidates leaves of the nodes those that have room for the job in that usage.
func (c *Cluster) candidates(j *job, u *usage, from nodeSet) {
	if j.whole() {
		from.and(u.idle)
		return
	}
	from.minus(u.sole)
	for n := from.next(0); n >= 0; n = from.next(n + 1) {
		if int(u.cpus[n])+j.request.CPUs > c.nodes[n].CPUs {
			from.drop(n)
		}
	}
}

// choose picks a job's nodes as select/cons_tres does (_eval_nodes of its job_test.c):
// of the runs of consecutive nodes of the least weight the one with a node that the job
// names, else the one whose free CPUs suffice most tightly, else the largest; there from
// the named node upwards, then downwards; and again until it has enough. A job that
// lacks one node gets the one with the fewest CPUs free that is enough. O(nodes).
func (c *Cluster) choose(j *job, u *usage, from nodeSet) ([]int, bool) {
	want := j.NumNodes
	if from.count() < want {
		return nil, false
	}
	w := &c.room
	w.from = append(w.from[:0], from...)
	c.candidates(j, u, w.from)
	if w.from.count() < want || j.required != nil && !w.from.holds(j.required) {
		return nil, false
	}
	w.cpus = append(w.cpus[:0], make([]int32, len(c.nodes))...)
	free := func(n int) int32 {
		if j.whole() {
			return int32(c.nodes[n].CPUs)
		}
		return int32(c.nodes[n].CPUs) - u.cpus[n]
	}
	cpus := int32(want) * int32(max(j.request.CPUs, 1)) // still wanted
	use := func(n int) int32 {
		if j.whole() {
			return free(n)
		}
		return int32(j.request.CPUs)
	}
	nodes := make([]int, 0, want)
	if j.required != nil {
		for n := j.required.next(0); n >= 0; n = j.required.next(n + 1) {
			if len(nodes) == want {
				return nil, false
			}
			nodes = append(nodes, n)
			cpus -= use(n)
		}
		if len(nodes) == want {
			return nodes, true
		}
	}
	c.consecutive(j, free)
	for len(nodes) < want {
		best := bestRun(w.runs, want-len(nodes), cpus)
		if best < 0 {
			return nil, false
		}
		r := &w.runs[best]
		get := func(n int) {
			if len(nodes) < want && w.cpus[n] > 0 {
				w.cpus[n] = 0
				nodes = append(nodes, n)
				cpus -= use(n)
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
		case want-len(nodes) == 1:
			tight := -1
			for n := r.first; n <= r.last; n++ {
				if w.cpus[n] > 0 && w.cpus[n] >= cpus && (tight < 0 || w.cpus[n] < w.cpus[tight]) {
					tight = n
				}
			}
			if tight < 0 {
				tight = r.first
			}
			get(tight)
		default:
			for n := r.first; n <= r.last; n++ {
				get(n)
			}
		}
		r.nodes = 0
	}
	sortInts(nodes)
	return nodes, true
}

// consecutive finds the runs among the candidates.
func (c *Cluster) consecutive(j *job, free func(int) int32) {
	w := &c.room
	w.runs = w.runs[:0]
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
		w.cpus[n] = free(n)
		at.weight = weight
		at.cpus += w.cpus[n]
		at.nodes++
	}
	end()
}

// bestRun is the index of the run to take nodes from; -1 if none is left.
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

// sortInts sorts a few numbers that are nearly in order.
func sortInts(a []int) {
	for i := 1; i < len(a); i++ {
		for k := i; k > 0 && a[k] < a[k-1]; k-- {
			a[k], a[k-1] = a[k-1], a[k]
		}
	}
}
