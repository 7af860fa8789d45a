package recorder

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// coded writes what goes into the core and comes out of it. What follows from the core's state is left out.
var coded = codec.New(codec.Options{
	Roots:  []any{Start{}, Step{}, plainPoll{}, plainPlanned{}, plainSave{}},
	Values: slices.Concat(codec.Messages, codec.Parts),
	Special: map[reflect.Type]codec.Special{
		reflect.TypeFor[*msg.Problem]():    {},
		reflect.TypeFor[msg.Attempt]():     {},
		reflect.TypeFor[msg.Observation](): codec.SpecialOf(writePoll, readPoll),
		reflect.TypeFor[msg.Planned]():     codec.SpecialOf(writePlanned, readPlanned),
		reflect.TypeFor[msg.SavePlan]():    codec.SpecialOf(writeSave, readSave),
	},
})

// These types are written field by field.
type (
	plainPoll    msg.Observation
	plainPlanned msg.Planned
	plainSave    msg.SavePlan
)

// seen holds the last poll and plan of a file. A poll shows thousands of jobs, and few of them have changed, so lists
// are recorded as differences from these.
type seen struct {
	jobs         []slurmctl.Job
	nodes        []slurmctl.Node
	partitions   []slurmctl.Partition
	reservations []slurmctl.Reservation
	plans        []msg.PlannedJob
}

func writePoll(e *codec.Encoder, o msg.Observation) {
	plain := plainPoll(o)
	plain.Jobs, plain.Nodes, plain.Partitions, plain.Reservations = nil, nil, nil, nil
	codec.Write(e, &plain)
	s, _ := e.With.(*seen)
	writeList(e, &s.jobs, o.Jobs, sameJob, func(j *slurmctl.Job) slurmctl.JobID { return j.ID })
	writeList(e, &s.nodes, o.Nodes, codec.Same, func(n *slurmctl.Node) string { return n.Name })
	writeList(e, &s.partitions, o.Partitions, codec.Same, func(p *slurmctl.Partition) string { return p.Name })
	writeList(e, &s.reservations, o.Reservations, codec.Same, func(r *slurmctl.Reservation) string { return r.Name })
}

func readPoll(d *codec.Decoder, o *msg.Observation) {
	s, _ := d.With.(*seen)
	codec.Read(d, (*plainPoll)(o))
	o.Jobs = readList(d, &s.jobs)
	o.Nodes = readList(d, &s.nodes)
	o.Partitions = readList(d, &s.partitions)
	o.Reservations = readList(d, &s.reservations)
}

func writePlanned(e *codec.Encoder, p msg.Planned) {
	plain := plainPlanned(p)
	plain.Jobs = nil
	codec.Write(e, &plain)
	s, _ := e.With.(*seen)
	writeList(e, &s.plans, p.Jobs, codec.Same, func(j *msg.PlannedJob) slurmctl.JobID { return j.Job })
}

func readPlanned(d *codec.Decoder, p *msg.Planned) {
	s, _ := d.With.(*seen)
	codec.Read(d, (*plainPlanned)(p))
	p.Jobs = readList(d, &s.plans)
}

// writeSave records a saved plan. There are many, and their nodes were just planned: a checksum of the nodes suffices.
func writeSave(e *codec.Encoder, p msg.SavePlan) {
	plain := plainSave{p.Job, slices.Clone(p.Plan)}
	for i := range plain.Plan {
		plain.Plan[i].NodeList = nodeSum(plain.Plan[i].NodeList)
	}
	codec.Write(e, &plain)
}

func readSave(d *codec.Decoder, p *msg.SavePlan) { codec.Read(d, (*plainSave)(p)) }

const sumMark = "nodes#"

// nodeSum returns the checksum of a node list, which may be one already.
func nodeSum(list string) string {
	if strings.HasPrefix(list, sumMark) {
		return list
	}
	return fmt.Sprintf("%s%08x", sumMark, crc32.ChecksumIEEE([]byte(list)))
}

// A list consists of runs: n > 0 unchanged entries, or one of these.
const (
	atEnd   = 0
	goTo    = 1 // another place in the list before
	changed = 2 // the next one, with other fields
	fresh   = 3 // one that was not there
	copied  = 4 // and above: number of unchanged entries, plus 4
)

// writeList records a list as differences from the previous one, and keeps a copy for the next: the core may change
// its own. It takes at most as many entries from the previous list as that has, even if keys occur twice.
func writeList[T any, K comparable](e *codec.Encoder, before *[]T, list []T, same func(e *codec.Encoder, a, b *T) bool, key func(*T) K) {
	if list == nil {
		e.Uint(0)
		return
	}
	e.Uint(1)
	old, at, run, inPlace := *before, 0, uint64(0), len(*before) == len(list)
	flush := func() {
		if run > 0 {
			e.Uint(run - 1 + copied)
			run = 0
		}
	}
	var index map[K]int
	for i, left := 0, len(old); i < len(list); i++ {
		x, to, known := &list[i], at, true
		if at >= len(old) || key(&old[at]) != key(x) {
			if index == nil {
				index = indexOf(old, key)
			}
			to, known = index[key(x)]
		}
		if !known || left == 0 {
			flush()
			e.Uint(fresh)
			codec.Write(e, x)
			inPlace = false
			continue
		}
		if to != at {
			flush()
			e.Uint(goTo)
			e.Uint(uint64(to))
			inPlace = false
		}
		if at, left = to+1, left-1; same(e, &old[to], x) {
			run++
			continue
		}
		flush()
		e.Uint(changed)
		codec.WriteChange(e, &old[to], x)
		old[to] = *x
	}
	flush()
	e.Uint(atEnd)
	if !inPlace {
		*before = slices.Clone(list)
	}
}

func indexOf[T any, K comparable](list []T, key func(*T) K) map[K]int {
	index := make(map[K]int, len(list))
	for i := range list {
		index[key(&list[i])] = i
	}
	return index
}

func readList[T any](d *codec.Decoder, before *[]T) []T {
	old := *before
	if d.Uint() == 0 {
		return nil
	}
	list, at, left := []T{}, uint64(0), uint64(len(old)) // left: entries that it may still take from the list before
	for d.Err() == nil {
		op, n := d.Uint(), uint64(1)
		switch {
		case op == atEnd:
			*before = slices.Clone(list)
			return list
		case op == goTo:
			at = d.Uint()
			continue
		case op == fresh:
			var x T
			codec.Read(d, &x)
			list = append(list, x)
			continue
		case op >= copied:
			n = op - copied + 1
		}
		if n > left || at > uint64(len(old))-n {
			d.Fail()
			return nil
		}
		list = append(list, old[at:at+n]...)
		if op == changed {
			codec.ReadChange(d, &list[len(list)-1])
			old[at] = list[len(list)-1]
		}
		at, left = at+n, left-n
	}
	return nil
}

// sameJob does what codec.Same does, in a fraction of the time. A test checks that it forgets no field.
func sameJob(_ *codec.Encoder, a, b *slurmctl.Job) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.State == b.State && a.Reason == b.Reason &&
		a.StartTime == b.StartTime && a.EndTime == b.EndTime && a.SubmitTime == b.SubmitTime && a.TimeLimit == b.TimeLimit &&
		a.Display == b.Display && a.ArrayJobID == b.ArrayJobID && a.ArrayTasks == b.ArrayTasks && a.ArrayLimit == b.ArrayLimit && a.Heterogenous == b.Heterogenous &&
		a.Name == b.Name && a.User == b.User && a.UID == b.UID && a.Account == b.Account && a.QOS == b.QOS && a.Partition == b.Partition &&
		a.Comment == b.Comment && a.NumNodes == b.NumNodes && a.NumCPUs == b.NumCPUs && a.BatchHost == b.BatchHost && a.Features == b.Features &&
		a.MinCPUs == b.MinCPUs && a.MinMemory == b.MinMemory && a.Layout == b.Layout && a.TRESPer == b.TRESPer && a.Exclusive == b.Exclusive && a.Dependency == b.Dependency &&
		a.Reservation == b.Reservation && a.Licenses == b.Licenses && a.Nice == b.Nice && a.ExitCode == b.ExitCode && a.ExitSignal == b.ExitSignal && a.AdminComment == b.AdminComment &&
		sameTexts(a.NodeList, b.NodeList) && sameTexts(a.ReqNodes, b.ReqNodes) && sameTexts(a.ExcNodes, b.ExcNodes)
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
