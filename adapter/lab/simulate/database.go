package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Database is the sidecar's database, in memory.
type Database struct {
	Aside []msg.Aside // jobs whose handling crashed the sidecar

	Jobs       map[int64]msg.BookedJob
	Intents    map[int64]row.Intent
	LastIntent int64 // intent
	Events     []Event

	Holds    map[int64]row.Hold // the ledger: by ID, by step, and by Slurm ID
	Promises map[PromiseKey]row.Promise
	Delays   map[uint32]row.Delay
	Grown    map[row.GrowDelayOf]row.GrowDelay
	Moved    map[uint32]int64 // how much later growths on demand made each waiting job, in seconds; never forgotten
	Epilogs  map[string]row.Epilog
	Arrivals []row.Arrivals
}

// PromiseKey is the key of a promise: its job's row and its step.
type PromiseKey struct {
	Job  int64
	Step int
}

// Event is a row of the event log.
type Event struct {
	Job    int64 // row; 0 for none
	At     time.Time
	Kind   string
	Detail string // JSON
}

// NewDatabase returns an empty one.
func NewDatabase() *Database {
	return &Database{Jobs: map[int64]msg.BookedJob{}, Intents: map[int64]row.Intent{}, Holds: map[int64]row.Hold{}, Promises: map[PromiseKey]row.Promise{}, Delays: map[uint32]row.Delay{}, Grown: map[row.GrowDelayOf]row.GrowDelay{}, Moved: map[uint32]int64{}, Epilogs: map[string]row.Epilog{}}
}

// clone returns a copy.
func (d *Database) clone() *Database {
	return &Database{Aside: slices.Clone(d.Aside), Jobs: maps.Clone(d.Jobs), Intents: maps.Clone(d.Intents), LastIntent: d.LastIntent, Events: slices.Clone(d.Events),
		Holds: maps.Clone(d.Holds), Promises: maps.Clone(d.Promises), Delays: maps.Clone(d.Delays), Grown: maps.Clone(d.Grown), Moved: maps.Clone(d.Moved), Epilogs: maps.Clone(d.Epilogs), Arrivals: slices.Clone(d.Arrivals)}
}

// write writes the rows and intents of a step and reports whether it could.
func (d *Database) write(effects []msg.Effect) (ok bool) {
	for _, e := range effects {
		switch e := e.(type) {
		case msg.AddJob:
			b := d.Jobs[e.Job.ID]
			b.Job, b.Parts, b.Bound = e.Job, e.Parts, e.Bound
			d.Jobs[e.Job.ID] = b
		case msg.SaveJob:
			d.change(e.Job.ID, func(b *msg.BookedJob) { p := b.Job.Profile; b.Job, b.Job.Profile = e.Job, p }) // as in the table
		case msg.SaveProfile:
			d.change(e.Job, func(b *msg.BookedJob) { b.Job.Profile = e.Profile })
		case msg.SaveParts:
			d.change(e.Job, func(b *msg.BookedJob) { b.Parts = e.Parts })
		case msg.SavePlan:
			d.change(e.Job, func(b *msg.BookedJob) { b.Plan = e.Plan })
		case msg.SaveAllocation:
			d.change(e.Job, func(b *msg.BookedJob) {
				b.Past = slices.Clone(b.Past)
				if last := len(b.Past) - 1; last >= 0 && b.Past[last].End.IsZero() {
					b.Past[last].End = e.At
				}
				if e.Nodes > 0 {
					b.Past = append(b.Past, row.Span{Step: e.Step, Start: e.At, Nodes: e.Nodes, NodeList: e.NodeList})
				}
			})
		case msg.AddEvent:
			detail, err := json.Marshal(e.Detail)
			if err != nil {
				detail = fmt.Appendf(nil, "%q", err)
			}
			d.Events = append(d.Events, Event{e.Job, e.At, e.Kind, string(detail)})
		case msg.SaveHold:
			d.Holds[e.Hold.ID] = e.Hold
		case msg.SavePromise:
			d.Promises[PromiseKey{e.Promise.Job, e.Promise.Step}] = e.Promise
		case msg.SaveDelay:
			d.Delays[e.Delay.SlurmID] = e.Delay
		case msg.SaveGrowDelay:
			if d.Grown[e.Row.GrowDelayOf] = e.Row; e.Row.Amount == 0 {
				delete(d.Grown, e.Row.GrowDelayOf)
			} else if !e.Row.User {
				d.Moved[e.Row.ID] = e.Row.Amount
			}
		case msg.SaveEpilog:
			if d.Epilogs[e.Row.Partition] = e.Row; e.Row.Seconds < 0 {
				delete(d.Epilogs, e.Row.Partition)
			}
		case msg.SaveArrivals:
			d.saveArrivals(e.Row)
		case msg.Settle:
			delete(d.Intents, e.Intent)
		case msg.Task:
			if e.Intent != nil {
				d.Intents[e.Intent.ID] = *e.Intent
				d.LastIntent = max(d.LastIntent, e.Intent.ID)
			}
		}
	}
	return true
}

func (d *Database) change(id int64, f func(*msg.BookedJob)) {
	b, ok := d.Jobs[id]
	if !ok {
		return
	}
	f(&b)
	d.Jobs[id] = b
}

// books returns what a sidecar starts from.
func (d *Database) books() msg.Books {
	b := msg.Books{LastIntent: d.LastIntent, Aside: d.Aside}
	for _, id := range slices.Sorted(maps.Keys(d.Jobs)) {
		j := d.Jobs[id]
		b.LastRow = max(b.LastRow, id)
		b.Known = append(b.Known, row.Known{ID: id, SlurmID: j.Job.SlurmID, UID: j.Job.UID, Submitted: j.Job.Submitted, Steps: len(j.Job.Profile)})
		if j.Job.State == row.Ended {
			b.Ended = append(b.Ended, j)
		} else {
			if p := d.Promises[PromiseKey{id, j.Job.Step + 1}]; p.Outcome == "" {
				j.Open = p
			}
			b.Active = append(b.Active, j)
		}
	}
	slices.SortStableFunc(b.Ended, func(x, y msg.BookedJob) int {
		return cmp.Or(x.Job.Ended.Compare(y.Job.Ended), cmp.Compare(x.Job.ID, y.Job.ID))
	})
	b.Ended = b.Ended[max(len(b.Ended)-msg.MostEnded, 0):]
	for _, id := range slices.Sorted(maps.Keys(d.Holds)) {
		if b.LastHold = id; d.Holds[id].Ended.IsZero() {
			b.Holds = append(b.Holds, d.Holds[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.Delays)) {
		if d.Delays[id].Settled.IsZero() {
			b.Delays = append(b.Delays, d.Delays[id])
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(d.Grown), row.GrowDelayOf.Compare) {
		b.GrowDelays = append(b.GrowDelays, d.Grown[of])
	}
	for _, partition := range slices.Sorted(maps.Keys(d.Epilogs)) {
		b.Epilogs = append(b.Epilogs, d.Epilogs[partition])
	}
	b.Arrivals = slices.Clone(d.Arrivals)
	for _, id := range slices.Sorted(maps.Keys(d.Intents)) {
		b.Intents = append(b.Intents, d.Intents[id])
	}
	return b
}

// saveArrivals replaces the row of an hour, or deletes those of its partition.
func (d *Database) saveArrivals(r row.Arrivals) {
	d.Arrivals = slices.DeleteFunc(slices.Clone(d.Arrivals), func(a row.Arrivals) bool {
		return a.Partition == r.Partition && (r.Hour < 0 || a.Hour == r.Hour)
	})
	if r.Hour >= 0 {
		d.Arrivals = append(d.Arrivals, r)
	}
}
