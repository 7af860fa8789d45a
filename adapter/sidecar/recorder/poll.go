package recorder

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A poll shows thousands of jobs, and few of them have changed. So lists are recorded as differences
// from the previous ones.

// seen holds the last poll and plan of a file.
type seen struct {
	jobs         []slurmctl.Job
	nodes        []slurmctl.Node
	partitions   []slurmctl.Partition
	reservations []slurmctl.Reservation
	plans        []msg.PlannedJob
}

func appendInt(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func (e *encoder) poll(o *msg.Observation) {
	e.differences(o)
	writeList(e, &e.seen.jobs, o.Jobs, sameJob, func(j *slurmctl.Job) slurmctl.JobID { return j.ID })
	writeList(e, &e.seen.nodes, o.Nodes, sameNode, func(n *slurmctl.Node) string { return n.Name })
	writeList(e, &e.seen.partitions, o.Partitions, samePartition, func(p *slurmctl.Partition) string { return p.Name })
	writeList(e, &e.seen.reservations, o.Reservations, sameReservation, func(r *slurmctl.Reservation) string { return r.Name })
}

func (d *decoder) poll(o *msg.Observation) {
	d.differences(o)
	o.Jobs = readList(d, &d.seen.jobs)
	o.Nodes = readList(d, &d.seen.nodes)
	o.Partitions = readList(d, &d.seen.partitions)
	o.Reservations = readList(d, &d.seen.reservations)
}

// isList reports whether a part of an observation is recorded separately. Marks are not recorded: a
// replay reads them from the jobs again.
func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice }

func (e *encoder) differences(o *msg.Observation) {
	for v, i := reflect.ValueOf(o).Elem(), 0; i < v.NumField(); i++ {
		if !isList(v.Field(i).Type()) {
			e.value(v.Field(i))
		}
	}
}

func (d *decoder) differences(o *msg.Observation) {
	for v, i := reflect.ValueOf(o).Elem(), 0; i < v.NumField(); i++ {
		if !isList(v.Field(i).Type()) {
			d.value(v.Field(i))
		}
	}
}

func (e *encoder) planned(p *msg.Planned) {
	writeList(e, &e.seen.plans, p.Jobs, samePlan, func(j *msg.PlannedJob) slurmctl.JobID { return j.Job })
	e.value(reflect.ValueOf(p.Errors))
	e.value(reflect.ValueOf(p.Drifts))
}

func (d *decoder) planned(p *msg.Planned) {
	p.Jobs = readList(d, &d.seen.plans)
	d.value(reflect.ValueOf(&p.Errors).Elem())
	d.value(reflect.ValueOf(&p.Drifts).Elem())
}

// A list consists of runs: n > 0 unchanged entries, or one of these.
const (
	atEnd   = 0
	goTo    = 1 // another place in the list before
	changed = 2 // the next one, with other fields
	fresh   = 3 // one that was not there
	copied  = 4 // and above: number of unchanged entries, plus 4
)

// writeList records a list as differences from the previous one, and keeps a copy for the next: the
// core may change its own.
func writeList[T any, K comparable](e *encoder, before *[]T, list []T, same func(a, b *T) bool, key func(*T) K) {
	old := *before
	if list == nil {
		e.uint(0)
		return
	}
	e.uint(1)
	var index map[K]int
	at, run := 0, uint64(0)
	flush := func() {
		if run > 0 {
			e.uint(run - 1 + copied)
			run = 0
		}
	}
	inPlace := len(old) == len(list)
	var other []int // that have changed in their place
	for i := range list {
		x := &list[i]
		if at < len(old) && same(&old[at], x) {
			at++
			run++
			continue
		}
		flush()
		if at >= len(old) || key(&old[at]) != key(x) {
			if index == nil {
				index = make(map[K]int, len(old))
				for k := range old {
					index[key(&old[k])] = k
				}
			}
			to, there := index[key(x)]
			inPlace = false
			if !there {
				e.uint(fresh)
				e.value(reflect.ValueOf(x).Elem())
				continue
			}
			e.uint(goTo)
			e.uint(uint64(to))
			if at = to; same(&old[at], x) {
				at++
				run++
				continue
			}
		}
		e.uint(changed)
		change(e, &old[at], x)
		other = append(other, i)
		at++
	}
	flush()
	e.uint(atEnd)
	if !inPlace {
		*before = append([]T(nil), list...)
		return
	}
	for _, i := range other {
		old[i] = list[i]
	}
}

// change writes one that has other fields.
func change[T any](e *encoder, old, x *T) {
	if plan, ok := any(x).(*msg.PlannedJob); ok {
		e.steps(any(old).(*msg.PlannedJob), plan)
		return
	}
	e.fields(reflect.ValueOf(old).Elem(), reflect.ValueOf(x).Elem())
}

// steps records a plan in which mostly only the times differ.
func (e *encoder) steps(old, p *msg.PlannedJob) {
	e.text(p.Unfit)
	e.value(reflect.ValueOf(p.Choice))
	e.value(reflect.ValueOf(p.Options))
	if p.Steps == nil {
		e.uint(0)
		return
	}
	e.uint(uint64(len(p.Steps)) + 1)
	for i, s := range p.Steps {
		e.b = binary.AppendVarint(e.b, s.Start)
		e.b = binary.AppendVarint(e.b, s.End-s.Start)
		if i < len(old.Steps) && sameTexts(old.Steps[i].Nodes, s.Nodes) {
			e.uint(0)
			continue
		}
		e.uint(1)
		if s.Nodes == nil {
			e.uint(0)
			continue
		}
		e.uint(uint64(len(s.Nodes)) + 1)
		for _, n := range s.Nodes {
			e.text(n)
		}
	}
}

func (d *decoder) steps(p *msg.PlannedJob) {
	old := p.Steps
	p.Unfit, p.Steps = d.text(), nil
	d.value(reflect.ValueOf(&p.Choice).Elem())
	d.value(reflect.ValueOf(&p.Options).Elem())
	n := d.uint()
	if n == 0 {
		return
	}
	if n > uint64(len(d.b))+1 {
		d.fail()
		return
	}
	p.Steps = []msg.PlannedStep{}
	for i := 0; i < int(n)-1 && d.err == nil; i++ {
		var s msg.PlannedStep
		s.Start = d.int()
		s.End = s.Start + d.int()
		switch {
		case d.uint() != 0:
			d.value(reflect.ValueOf(&s.Nodes).Elem())
		case i < len(old):
			s.Nodes = old[i].Nodes
		default:
			d.fail()
		}
		p.Steps = append(p.Steps, s)
	}
}

// fields writes which fields differ, and these.
func (e *encoder) fields(old, new reflect.Value) {
	mask, at := uint64(0), encoder{}
	for i := range new.NumField() {
		if f := new.Field(i); f.Comparable() && f.Equal(old.Field(i)) {
			continue
		}
		a, b := encoder{}, encoder{}
		a.value(field(old, i))
		b.value(field(new, i))
		if string(a.b) != string(b.b) {
			mask |= 1 << i
			at.b = append(at.b, b.b...)
		}
	}
	e.uint(mask)
	e.b = append(e.b, at.b...)
}

func readList[T any](d *decoder, before *[]T) (list []T) {
	old := *before
	if d.uint() == 0 {
		return nil
	}
	list = []T{}
	for at := 0; d.err == nil; {
		switch op := d.uint(); op {
		case atEnd:
			*before = slices.Clone(list)
			return list
		case goTo:
			to := d.uint()
			if to >= uint64(len(old)) {
				d.fail()
			}
			at = int(to)
		case changed:
			if at >= len(old) {
				d.fail()
				break
			}
			x := old[at]
			if plan, ok := any(&x).(*msg.PlannedJob); ok {
				d.steps(plan)
				list = append(list, x)
				at++
				break
			}
			v := reflect.ValueOf(&x).Elem()
			for mask, i := d.uint(), 0; i < v.NumField(); i++ {
				if mask&(1<<i) != 0 {
					f := field(v, i)
					f.SetZero()
					d.value(f)
				}
			}
			list = append(list, x)
			at++
		case fresh:
			var x T
			d.value(reflect.ValueOf(&x).Elem())
			list = append(list, x)
		default:
			n := op - copied + 1
			if at > len(old) || n > uint64(len(old)-at) {
				d.fail()
				break
			}
			list = append(list, old[at:at+int(n)]...)
			at += int(n)
		}
		if len(list) > 10_000_000 {
			d.fail()
		}
	}
	return nil
}

// Whether nothing has changed; a test sees that no field is forgotten.

func sameJob(a, b *slurmctl.Job) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.State == b.State && a.Reason == b.Reason &&
		a.StartTime == b.StartTime && a.EndTime == b.EndTime && a.SubmitTime == b.SubmitTime && a.TimeLimit == b.TimeLimit &&
		a.Display == b.Display && a.ArrayJobID == b.ArrayJobID && a.ArrayTasks == b.ArrayTasks && a.Heterogenous == b.Heterogenous &&
		a.Name == b.Name && a.User == b.User && a.UID == b.UID && a.Account == b.Account && a.QOS == b.QOS && a.Partition == b.Partition &&
		a.Comment == b.Comment && a.NumNodes == b.NumNodes && a.NumCPUs == b.NumCPUs && a.BatchHost == b.BatchHost && a.Features == b.Features &&
		a.MinCPUs == b.MinCPUs && a.MinMemory == b.MinMemory && a.TRESPer == b.TRESPer && a.Exclusive == b.Exclusive && a.Dependency == b.Dependency &&
		a.Reservation == b.Reservation && a.Nice == b.Nice && a.ExitCode == b.ExitCode && a.ExitSignal == b.ExitSignal && a.AdminComment == b.AdminComment &&
		sameTexts(a.NodeList, b.NodeList) && sameTexts(a.ReqNodes, b.ReqNodes) && sameTexts(a.ExcNodes, b.ExcNodes)
}

func sameNode(a, b *slurmctl.Node) bool {
	return a.Name == b.Name && a.State == b.State && a.Flags == b.Flags && a.CPUs == b.CPUs && a.CPUsAlloc == b.CPUsAlloc && a.Memory == b.Memory &&
		a.GRES == b.GRES && a.Weight == b.Weight && sameTexts(a.Partitions, b.Partitions) && sameTexts(a.Features, b.Features)
}

func samePartition(a, b *slurmctl.Partition) bool {
	return a.Name == b.Name && a.Default == b.Default && a.Up == b.Up && a.MaxTime == b.MaxTime && a.DefaultTime == b.DefaultTime &&
		a.MinNodes == b.MinNodes && a.MaxNodes == b.MaxNodes && a.OverSubscribe == b.OverSubscribe && sameTexts(a.Nodes, b.Nodes)
}

func sameReservation(a, b *slurmctl.Reservation) bool {
	return a.Name == b.Name && a.Start == b.Start && a.End == b.End && a.Partition == b.Partition && a.Active == b.Active &&
		sameTexts(a.Nodes, b.Nodes) && sameTexts(a.Users, b.Users) && sameTexts(a.Accounts, b.Accounts) && sameTexts(a.Flags, b.Flags)
}

func samePlan(a, b *msg.PlannedJob) bool {
	return a.Job == b.Job && a.Unfit == b.Unfit && a.Choice == b.Choice && (a.Options == nil) == (b.Options == nil) && slices.Equal(a.Options, b.Options) && (a.Steps == nil) == (b.Steps == nil) && slices.EqualFunc(a.Steps, b.Steps, func(x, y msg.PlannedStep) bool {
		return x.Start == y.Start && x.End == y.End && sameTexts(x.Nodes, y.Nodes)
	})
}

// sameTexts compares lists; nil is not the empty one.
func sameTexts(a, b []string) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}
