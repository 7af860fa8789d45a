package slurmsim

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// usage records what jobs use of the nodes, now or once some jobs have ended.
type usage struct {
	jobs []int32 // on every node
	cpus []int32
	mem  []int64
	gres []int64 // per node, all kinds
	idle nodeSet // nodes without a job
	sole nodeSet // nodes of jobs that do not share them
}

func (t *nodeTable) noUsage() usage {
	n := len(t.nodes)
	u := usage{jobs: make([]int32, n), cpus: make([]int32, n), mem: make([]int64, n), gres: make([]int64, n*len(t.kinds)), idle: newNodeSet(n), sole: newNodeSet(n)}
	for i := range t.nodes {
		u.idle.add(i)
	}
	return u
}

// copyTo copies u to t. Unless all, it copies only what concerns jobs with whole nodes.
func (u *usage) copyTo(t *usage, all bool) {
	t.idle = append(t.idle[:0], u.idle...)
	if all {
		t.jobs = append(t.jobs[:0], u.jobs...)
		t.cpus = append(t.cpus[:0], u.cpus...)
		t.mem = append(t.mem[:0], u.mem...)
		t.gres = append(t.gres[:0], u.gres...)
		t.sole = append(t.sole[:0], u.sole...)
	}
}

// findKinds finds the kinds of generic resources and how many of each a node has.
func (t *nodeTable) findKinds() error {
	for i := range t.nodes {
		all, err := slurmctl.ParseGRES(t.nodes[i].GRES)
		if err != nil {
			return err
		}
		for _, g := range all {
			if k := (slurmctl.GRES{Name: g.Name, Type: g.Type}); !slices.Contains(t.kinds, k) {
				t.kinds = append(t.kinds, k)
			}
		}
	}
	for i := range t.nodes {
		all, _ := slurmctl.ParseGRES(t.nodes[i].GRES)
		t.nodes[i].gres = make([]int64, len(t.kinds))
		for _, g := range all {
			t.nodes[i].gres[slices.Index(t.kinds, slurmctl.GRES{Name: g.Name, Type: g.Type})] += g.Count
		}
	}
	return nil
}

// gresOf returns how much of a kind the job takes from a node: with whole nodes, all of it. A
// request without a type takes the node's first type.
func (t *nodeTable) gresOf(j *job, n, kind int) int64 {
	if j.whole() {
		return t.nodes[n].gres[kind]
	}
	total := int64(0)
	for _, g := range j.request.GRES {
		k := t.kinds[kind]
		if g.Name != k.Name || g.Type != "" && g.Type != k.Type {
			continue
		}
		if g.Type == "" && slices.ContainsFunc(t.kinds[:kind], func(o slurmctl.GRES) bool {
			return o.Name == g.Name && t.nodes[n].gres[slices.Index(t.kinds, o)] > 0
		}) {
			continue
		}
		total += g.Count
	}
	return total
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

// capable reports whether a node could ever satisfy the job's memory and GRES.
func (t *nodeTable) capable(j *job, n int) bool {
	have, err := slurmctl.ParseGRES(t.nodes[n].GRES)
	return j.memory <= t.nodes[n].Memory && (len(j.request.GRES) == 0 || err == nil && slurmctl.HasGRES(have, j.request.GRES))
}

// roomy reports whether a node satisfies them now.
func (t *nodeTable) roomy(j *job, u *usage, n int) bool {
	if j.memory > 0 && u.mem[n]+j.memory > t.nodes[n].Memory {
		return false
	}
	for k := range t.kinds {
		if want := t.gresOf(j, n, k); want > 0 && u.gres[n*len(t.kinds)+k]+want > t.nodes[n].gres[k] {
			return false
		}
	}
	return true
}

// candidates keeps those nodes with room for the job in that usage.
func (t *nodeTable) candidates(j *job, u *usage, from nodeSet) {
	if j.whole() {
		from.and(u.idle)
		return
	}
	from.minus(u.sole)
	for n := from.next(0); n >= 0; n = from.next(n + 1) {
		if int(u.cpus[n])+j.request.CPUs > t.nodes[n].CPUs || !t.roomy(j, u, n) {
			from.drop(n)
		}
	}
}

// keepSuitable keeps those nodes of the job's partition that have what it requests.
func (t *nodeTable) keepSuitable(j *job, nodes nodeSet) {
	nodes.and(j.part.set)
	if j.excluded != nil {
		nodes.minus(j.excluded)
	}
	if j.Features == "" && !j.scarce() {
		return
	}
	for n := nodes.next(0); n >= 0; n = nodes.next(n + 1) {
		if j.Features != "" && !t.hasFeatures(n, j.Features) || !t.capable(j, n) {
			nodes.drop(n)
		}
	}
}

// book adds a job's share of these nodes to the usage or, with sign -1, removes it.
func (t *nodeTable) book(u *usage, j *job, nodes []int, sign int32) {
	whole := j.whole()
	for _, n := range nodes {
		u.cpus[n] += sign * t.cpusOf(j, n)
		u.jobs[n] += sign
		u.mem[n] += int64(sign) * j.memory
		for k := range t.kinds {
			u.gres[n*len(t.kinds)+k] += int64(sign) * t.gresOf(j, n, k)
		}
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

// count updates a record to match the job's nodes.
func (t *nodeTable) count(j *job) {
	j.NumNodes, j.NumCPUs = len(j.nodes), 0
	j.set = newNodeSet(len(t.nodes))
	j.set.addAll(j.nodes)
	for _, n := range j.nodes {
		if j.whole() {
			j.NumCPUs += t.nodes[n].CPUs
		} else {
			j.NumCPUs += j.request.CPUs
		}
	}
}

// setMemory computes a request's memory per node. It refuses generic resources that no node has.
func (t *nodeTable) setMemory(o *Options, j *job) error {
	q := &j.request
	for _, g := range q.GRES {
		if !slices.ContainsFunc(t.kinds, func(k slurmctl.GRES) bool { return k.Name == g.Name && (g.Type == "" || g.Type == k.Type) }) {
			return refusal("Invalid generic resource (gres) specification")
		}
	}
	if !o.ConsumeMemory {
		return nil
	}
	cpus := int64(max(q.CPUs, 1))
	if j.whole() {
		cpus = int64(t.nodes[0].CPUs)
	}
	switch {
	case q.MemoryPerNode != nil && *q.MemoryPerNode > 0:
		j.memory = *q.MemoryPerNode
	case q.MemoryPerCPU > 0:
		j.memory = q.MemoryPerCPU * cpus
	case q.MemoryPerNode == nil && o.DefMemPerCPU > 0:
		j.memory = o.DefMemPerCPU * cpus
	default:
		j.memory = t.nodes[0].Memory
	}
	j.MinMemory = j.memory
	return nil
}

// tresText returns a request for GRES as squeue shows it.
func tresText(all []slurmctl.GRES) string {
	text := ""
	for i, g := range all {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("gres:%s", g)
	}
	return text
}
