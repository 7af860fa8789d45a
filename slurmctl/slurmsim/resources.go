package slurmsim

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// usage records what jobs use of the nodes, now or once some jobs have ended.
type usage struct {
	Jobs []int32 // on every node
	CPUs []int32
	Mem  []int64
	GRES []int64 // per node, all kinds
	Idle nodeSet // nodes without a job
	Sole nodeSet // nodes of jobs that do not share them
}

func (t *nodeTable) noUsage() usage {
	n := len(t.Nodes)
	u := usage{Jobs: make([]int32, n), CPUs: make([]int32, n), Mem: make([]int64, n), GRES: make([]int64, n*len(t.kinds)), Idle: newNodeSet(n), Sole: newNodeSet(n)}
	for i := range t.Nodes {
		u.Idle.add(i)
	}
	return u
}

// copyTo copies u to t. Unless all, it copies only what concerns jobs with whole nodes.
func (u *usage) copyTo(t *usage, all bool) {
	t.Idle = append(t.Idle[:0], u.Idle...)
	if all {
		t.Jobs = append(t.Jobs[:0], u.Jobs...)
		t.CPUs = append(t.CPUs[:0], u.CPUs...)
		t.Mem = append(t.Mem[:0], u.Mem...)
		t.GRES = append(t.GRES[:0], u.GRES...)
		t.Sole = append(t.Sole[:0], u.Sole...)
	}
}

// findKinds finds the kinds of generic resources and how many of each a node has.
func (t *nodeTable) findKinds() error {
	for i := range t.Nodes {
		all, err := slurmctl.ParseGRES(t.Nodes[i].GRES)
		if err != nil {
			return err
		}
		for _, g := range all {
			if k := (slurmctl.GRES{Name: g.Name, Type: g.Type}); !slices.Contains(t.kinds, k) {
				t.kinds = append(t.kinds, k)
			}
		}
	}
	for i := range t.Nodes {
		all, _ := slurmctl.ParseGRES(t.Nodes[i].GRES)
		t.Nodes[i].PerKind = make([]int64, len(t.kinds))
		for _, g := range all {
			t.Nodes[i].PerKind[slices.Index(t.kinds, slurmctl.GRES{Name: g.Name, Type: g.Type})] += g.Count
		}
	}
	return nil
}

// gresOf returns how much of a kind the job takes from a node: with whole nodes, all of it. A
// request without a type takes the node's first type.
func (t *nodeTable) gresOf(j *job, n, kind int) int64 {
	if j.whole() {
		return t.Nodes[n].PerKind[kind]
	}
	total := int64(0)
	for _, g := range j.Request.GRES {
		k := t.kinds[kind]
		if g.Name != k.Name || g.Type != "" && g.Type != k.Type {
			continue
		}
		if g.Type == "" && slices.ContainsFunc(t.kinds[:kind], func(o slurmctl.GRES) bool {
			return o.Name == g.Name && t.Nodes[n].PerKind[slices.Index(t.kinds, o)] > 0
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
		return int32(t.Nodes[n].CPUs)
	}
	return int32(j.Request.CPUs)
}

// freeCPUs returns how many CPUs of a node the job could take.
func (t *nodeTable) freeCPUs(j *job, u *usage, n int) int32 {
	if j.whole() {
		return int32(t.Nodes[n].CPUs)
	}
	return int32(t.Nodes[n].CPUs) - u.CPUs[n]
}

// capable reports whether a node could ever satisfy the job's memory, layout, and GRES.
func (t *nodeTable) capable(j *job, n int) bool {
	have, err := slurmctl.ParseGRES(t.Nodes[n].GRES)
	return j.Memory <= t.Nodes[n].Memory && t.Nodes[n].Layout.Has(j.Layout) && (len(j.Request.GRES) == 0 || err == nil && slurmctl.HasGRES(have, j.Request.GRES))
}

// roomy reports whether a node satisfies them now.
func (t *nodeTable) roomy(j *job, u *usage, n int) bool {
	if j.Memory > 0 && u.Mem[n]+j.Memory > t.Nodes[n].Memory {
		return false
	}
	for k := range t.kinds {
		if want := t.gresOf(j, n, k); want > 0 && u.GRES[n*len(t.kinds)+k]+want > t.Nodes[n].PerKind[k] {
			return false
		}
	}
	return true
}

// candidates keeps those nodes with room for the job in that usage.
func (t *nodeTable) candidates(j *job, u *usage, from nodeSet) {
	if j.whole() {
		from.and(u.Idle)
		return
	}
	from.minus(u.Sole)
	for n := from.next(0); n >= 0; n = from.next(n + 1) {
		if int(u.CPUs[n])+j.Request.CPUs > t.Nodes[n].CPUs || !t.roomy(j, u, n) {
			from.drop(n)
		}
	}
}

// keepSuitable keeps those nodes of the job's partition that have what it requests.
func (t *nodeTable) keepSuitable(j *job, nodes nodeSet) {
	nodes.and(j.Part.Set)
	if j.Excluded != nil {
		nodes.minus(j.Excluded)
	}
	if j.Features == "" && !j.scarce() {
		return
	}
	wants, _ := slurmctl.LooseConstraint(j.Features) // checked at submission
	for n := nodes.next(0); n >= 0; n = nodes.next(n + 1) {
		if !wants.Met(t.Nodes[n].Features) || !t.capable(j, n) {
			nodes.drop(n)
		}
	}
}

// book adds a job's share of these nodes to the usage or, with sign -1, removes it.
func (t *nodeTable) book(u *usage, j *job, nodes []int, sign int32) {
	whole := j.whole()
	for _, n := range nodes {
		u.CPUs[n] += sign * t.cpusOf(j, n)
		u.Jobs[n] += sign
		u.Mem[n] += int64(sign) * j.Memory
		for k := range t.kinds {
			u.GRES[n*len(t.kinds)+k] += int64(sign) * t.gresOf(j, n, k)
		}
		if u.Jobs[n] == 0 {
			u.Idle.add(n)
		} else {
			u.Idle.drop(n)
		}
		if whole && sign > 0 {
			u.Sole.add(n)
		} else if whole {
			u.Sole.drop(n)
		}
	}
}

// count updates a record to match the job's nodes.
func (t *nodeTable) count(j *job) {
	j.NumNodes, j.NumCPUs = len(j.Nodes), 0
	j.Set = newNodeSet(len(t.Nodes))
	j.Set.addAll(j.Nodes)
	for _, n := range j.Nodes {
		if j.whole() {
			j.NumCPUs += t.Nodes[n].CPUs
		} else {
			j.NumCPUs += j.Request.CPUs
		}
	}
}

// setMemory computes a request's memory per node. It refuses generic resources that no node has.
func (t *nodeTable) setMemory(o *Options, j *job) error {
	q := &j.Request
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
		cpus = int64(t.Nodes[0].CPUs)
	}
	switch {
	case q.MemoryPerNode != nil && *q.MemoryPerNode > 0:
		j.Memory = *q.MemoryPerNode
	case q.MemoryPerCPU > 0:
		j.Memory = q.MemoryPerCPU * cpus
	case q.MemoryPerNode == nil && o.DefMemPerCPU > 0:
		j.Memory = o.DefMemPerCPU * cpus
	default:
		j.Memory = t.Nodes[0].Memory
	}
	j.MinMemory = j.Memory
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
