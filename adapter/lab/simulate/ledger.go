package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// ledger says what the database has of the holds and promises of a job, and of stock jobs that its holds delay.
func (h *history) ledger(name string) {
	var id int64
	for _, b := range h.s.Database.Jobs {
		if b.Job.SlurmID == uint32(h.jobs[name]) {
			id = max(id, b.Job.ID)
		}
	}
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return stamp(t.Sub(h.s.Base))
	}
	for _, r := range h.s.Database.holdsOf(id) {
		h.say(fmt.Sprintf("%s: %s for step %d, %d nodes: made %s, changed %d times, begun %s, ended %s: %s%s; held %d node-seconds, %d of them idle", name, r.Name, r.Step, r.Nodes,
			clock(r.Made), r.Changes, clock(r.Begun), clock(r.Ended), r.Cause, strings.TrimSuffix(" by "+r.By, " by "), r.Held/1000, r.Idle/1000))
	}
	for _, p := range h.s.Database.promisesOf(id) {
		h.say(fmt.Sprintf("%s: promise of step %d, from %d to %d nodes at %s: %s at %s, with %d nodes, %.0f s late: %s", name, p.Step, p.From, p.To, clock(p.At), p.Outcome, clock(p.Decided), p.Got, p.Late().Seconds(), p.Cause))
	}
	for _, slurmID := range slices.Sorted(maps.Keys(h.s.Database.Delays)) {
		if d := h.s.Database.Delays[slurmID]; d.Job == id {
			h.say(fmt.Sprintf("stock job %d: %d min later because of %s, settled %s", slurmID, d.Seconds/60, d.Hold, clock(d.Settled)))
		}
	}
}

// holdsOf lists the rows of a job's holds.
func (d *Database) holdsOf(job int64) (all []row.Hold) {
	for _, id := range slices.Sorted(maps.Keys(d.Holds)) {
		if d.Holds[id].Job == job {
			all = append(all, d.Holds[id])
		}
	}
	return all
}

// promisesOf lists the rows of a job's promises.
func (d *Database) promisesOf(job int64) (all []row.Promise) {
	for _, p := range d.Promises {
		if p.Job == job {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b row.Promise) int { return a.Step - b.Step })
	return all
}

// held sums up what Slurm's reservations of ours hold.
type held struct {
	at    time.Duration
	nodes int
	sum   int64 // node-milliseconds
}

// count adds the time since the last call, and takes over what is held now.
func (h *held) count(at time.Duration, nodes int) {
	h.sum += (at - h.at).Milliseconds() * int64(h.nodes)
	h.at, h.nodes = at, nodes
}

// checkLedger checks the ledger at the end of a history in which nothing is left: every row is closed with a cause,
// and the rows add up to what the jobs kept idle, and to what Slurm's reservations held. Kept is exact only if the
// sidecar was not killed, and held if its clock stayed.
func (h *checks) checkLedger() {
	if !h.s.Running() {
		return
	}
	sum, rows := int64(0), 0
	idle := map[uint32]int64{}
	for _, r := range h.s.Database.Holds {
		if r.Ended.IsZero() || r.Cause == "" || r.Idle > r.Held+int64(r.Nodes)*60_000 {
			h.blame(fmt.Errorf("the row of hold %s is wrong: %+v", r.Name, r))
		}
		sum, rows = sum+r.Held, rows+1
		idle[h.s.Database.Jobs[r.Job].Job.SlurmID] += r.Idle
	}
	if h.s.Life > 1 {
		return
	}
	for _, j := range h.s.View().Ended {
		if idle[j.ID]/1000 != j.HeldIdle {
			h.blame(fmt.Errorf("job %d: its holds kept %d node-seconds idle by their rows, and %d by its own", j.ID, idle[j.ID]/1000, j.HeldIdle))
		}
		h.checkPromises(j)
	}
	off, may := sum-h.held.sum, h.held.sum/50+int64(rows)*10_000
	if h.s.Skew == 0 && (off > may || off < -may) {
		h.blame(fmt.Errorf("%d holds have %d node-seconds by their rows, and had %d in Slurm", rows, sum/1000, h.held.sum/1000))
	}
}

// checkPromises checks that the rows of an ended job's promises say what its events say, if none was left out.
func (h *checks) checkPromises(j api.Job) {
	id, rows := int64(0), map[int]row.Promise{}
	for i, b := range h.s.Database.Jobs {
		if b.Job.SlurmID == j.ID && b.Job.Submitted.Equal(j.Submit) {
			id = i
		}
	}
	events, whole := h.s.Database.eventsOf(id)
	if !whole {
		return
	}
	for _, p := range h.s.Database.promisesOf(id) {
		rows[p.Step] = p
	}
	for _, p := range ran.Promises(j, events) {
		want := p.Outcome(p.Came)
		if strings.HasSuffix(want, " nodes") || want == "lapsed" && !p.Came.IsZero() {
			want = row.PromiseBroken
		}
		if got := rows[p.Step]; got.Outcome != want && !(want == row.PromiseNotReached && got.Outcome == "") {
			h.blame(fmt.Errorf("job %d: the promise of step %d is %q by its row, %+v, and %q by its events", j.ID, p.Step, got.Outcome, got, want))
		}
	}
}

// eventsOf lists the events of a job, and reports whether they are all that happened to its first profile.
func (d *Database) eventsOf(job int64) (events []api.Event, whole bool) {
	for _, e := range d.Events {
		if e.Job != job {
			continue
		}
		if strings.Contains(e.Detail, `"suppressed"`) || e.Kind == "adopted again" || e.Kind == "changed" {
			return nil, false
		}
		events = append(events, api.Event{At: e.At, Kind: e.Kind, Detail: json.RawMessage(e.Detail)})
	}
	return events, true
}
