package hold

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Nodes that are held ahead of their time stand idle, or run only jobs that end before. A site
// limits that by shares (hold_shares) of a partition: for a job, a user, an account, and all
// users together. The shares limit only what is held. They make no job wait, and reject none.
//
// Holds are taken in turns, one per user at a time, the earliest first, so that no user takes
// all. A hold that does not fit is planned but not made. Evosqueue says why, and until when at
// the latest. A hold whose time has come counts only as a reservation. Without two exceptions, a
// growth might never be held:
//   - The first hold of an owner may have any number of nodes. Its node-hours limit how far
//     ahead it is held.
//   - If a job waits for a growth, and its owner holds no node-hours, the hold may have any
//     number of node-hours.

// nodeBits holds a set of the cluster's nodes, by their index.
type nodeBits []uint64

func newNodeBits(nodes int) nodeBits { return make(nodeBits, (nodes+63)/64) }

func (b nodeBits) add(n int) { b[n/64] |= 1 << (n % 64) }

// with returns how many members a set and the set's part within another set have together.
func (b nodeBits) with(other, within nodeBits) (n int) {
	for i := range b {
		n += bits.OnesCount64(b[i] | other[i]&within[i])
	}
	return n
}

// in returns how many members of the set are in another set.
func (b nodeBits) in(other nodeBits) (n int) {
	for i := range b {
		n += bits.OnesCount64(b[i] & other[i])
	}
	return n
}

// claim describes a hold as the shares count it.
type claim struct {
	partition string
	nodes     nodeBits // held ahead of time
	count     int      // how many nodes these are
	growing   nodeBits // the nodes of these that are for growths, without nodes that the job has, or will have, before
	seconds   int64    // node-seconds until the job has them
	until     int64    // Unix second at which the hold's time has come
}

// owner has shares of a partition.
type owner struct {
	scope, name string
	job         uint32
}

// account records what an owner holds.
type account struct {
	owner
	claims []*claim
	loads  []*load // by the ledger's places, computed on demand
}

// place is a partition with its nodes.
type place struct {
	name string
	here nodeBits
}

// load sums up what an owner holds ahead of time in a partition.
type load struct {
	holds      int
	nodes      nodeBits // for growths
	count      int      // how many nodes these are
	seconds    int64
	rate       int64 // how many node-seconds pass per second, at most
	next, last int64 // Unix seconds at which the first hold, and the last hold of a growth, come to their time; 0 if none
}

// ledger records what is held, and for whom.
type ledger struct {
	cfg      *config.Config
	s        *state.Snapshot
	now      int64
	ahead    int64 // seconds
	all      []*claim
	accounts map[owner]*account
	owners   map[*state.Job][]*account
	places   []place
}

func newLedger(c *state.Core, now int64) *ledger {
	return &ledger{cfg: &c.Config, s: c.Snapshot, now: now, ahead: holdAhead(c), accounts: map[owner]*account{}, owners: map[*state.Job][]*account{}}
}

// ownersOf lists the owners whose shares the holds of a job count for.
func (l *ledger) ownersOf(j *state.Job) []*account {
	all := l.owners[j]
	if all == nil {
		all = []*account{l.account(owner{scope: "job", job: j.SlurmID}), l.account(owner{scope: "user", name: j.User}), l.account(owner{scope: "partition"})}
		if j.Account != "" {
			all = append(all, l.account(owner{scope: "account", name: j.Account}))
		}
		l.owners[j] = all
	}
	return all
}

// account returns the account of an owner.
func (l *ledger) account(o owner) *account {
	if l.accounts[o] == nil {
		l.accounts[o] = &account{owner: o}
	}
	return l.accounts[o]
}

// take adds a hold if the shares allow it; otherwise it returns why not. A hold that is in place
// may have a tenth more node-hours than a new hold, since plans drift by seconds.
func (l *ledger) take(h state.Hold, in string, awaited, inPlace bool) *state.HeldBack {
	back := &state.HeldBack{Step: h.Step, Nodes: len(h.Nodes), Most: int64(l.cfg.MaxHolds), Wants: 1, Has: int64(len(l.all))}
	if len(l.all) >= l.cfg.MaxHolds {
		back.Key, back.By = "max_holds", l.next()
		return back
	}
	all, at := l.ownersOf(h.Job), l.place(in)
	for _, o := range all {
		most, u := max(l.cfg.HoldShares.Of(o.scope).Reservations*l.cfg.MaxHolds/100, 1), l.load(o, at)
		if u.holds >= most {
			back.Key, back.By = "hold_shares."+o.scope+".reservations", max(u.next, l.now)
			back.Most, back.Has = int64(most), int64(u.holds)
			return back
		}
	}
	one := l.claim(h, in)
	for _, o := range all {
		if l.exceeds(o, at, &one, back, awaited, inPlace) {
			return back
		}
	}
	l.add(all, one)
	return nil
}

// next returns when the time of the first hold comes.
func (l *ledger) next() int64 {
	next := l.all[0].until
	for _, c := range l.all {
		next = min(next, c.until)
	}
	return next
}

// exceeds reports whether a claim exceeds an owner's shares of nodes. If so, it fills in back.
func (l *ledger) exceeds(o *account, at int, one *claim, back *state.HeldBack, awaited, inPlace bool) bool {
	if one.count == 0 {
		return false
	}
	shares, u, here := l.cfg.HoldShares.Of(o.scope), l.load(o, at), l.places[at].here
	size := here.in(here)
	most := max(size*shares.Nodes/100, 1)
	if sum := u.nodes.with(one.growing, here); u.count > 0 && sum > max(most, u.count) {
		*back = state.HeldBack{Step: back.Step, Nodes: back.Nodes, Key: "hold_shares." + o.scope + ".nodes", Partition: one.partition, Places: true,
			Most: int64(most), Wants: int64(sum - u.count), Has: int64(u.count), By: min(u.last, one.until)}
		return true
	}
	seconds, allowed := one.secondsIn(here), l.ahead*int64(size)*int64(shares.NodeHours)/100
	limit := allowed
	if inPlace {
		limit += allowed / 10
	}
	if over := u.seconds + seconds - limit; over > 0 && !(awaited && u.seconds == 0) {
		rate := int64(max(one.count, 1))
		*back = state.HeldBack{Step: back.Step, Nodes: back.Nodes, Key: "hold_shares." + o.scope + ".node_hours", Partition: one.partition, NodeHours: true,
			Most: allowed, Wants: seconds, Has: u.seconds, By: min(l.now+(over+rate-1)/rate, one.until), Soonest: l.now + (over+rate+u.rate-1)/(rate+u.rate)}
		return true
	}
	return false
}

// secondsIn returns the claim's node-seconds on some of the cluster's nodes.
func (c *claim) secondsIn(here nodeBits) int64 {
	if n := c.nodes.in(here); n < c.count {
		return c.seconds / int64(c.count) * int64(n)
	}
	return c.seconds
}

func (l *ledger) add(all []*account, one claim) {
	l.all = append(l.all, &one)
	for _, o := range all {
		o.claims = append(o.claims, &one)
		for at, u := range o.loads {
			if u != nil {
				u.add(&one, o.owner, l.places[at])
			}
		}
	}
}

// load returns what an owner holds ahead of time on the nodes of a partition. The partitions of
// the jobs do not matter.
func (l *ledger) load(o *account, at int) *load {
	for len(o.loads) <= at {
		o.loads = append(o.loads, nil)
	}
	if o.loads[at] == nil {
		u := &load{nodes: make(nodeBits, len(l.places[at].here))}
		for _, c := range o.claims {
			u.add(c, o.owner, l.places[at])
		}
		o.loads[at] = u
	}
	return o.loads[at]
}

// add adds a claim of an owner, as far as it is on the nodes of a partition.
func (u *load) add(c *claim, o owner, in place) {
	here := in.here
	if c.partition == in.name || o.scope != "partition" {
		u.holds++
		if u.next == 0 || c.until < u.next {
			u.next = c.until
		}
	}
	n := c.nodes.in(here)
	if n == 0 {
		return
	}
	u.seconds += c.secondsIn(here)
	u.rate += int64(n)
	if c.growing.in(here) == 0 {
		return
	}
	u.last = max(u.last, c.until)
	for i := range here {
		u.nodes[i] |= c.growing[i] & here[i]
	}
	u.count = u.nodes.in(u.nodes)
}

// place returns the index of a partition with its nodes, or with all nodes if Slurm does not list the partition.
func (l *ledger) place(in string) int {
	if at := slices.IndexFunc(l.places, func(p place) bool { return p.name == in }); at >= 0 {
		return at
	}
	here := newNodeBits(len(l.s.Nodes))
	if p, known := l.s.Partitions[in]; known {
		for _, name := range p.Nodes {
			if n, ok := l.s.Index[name]; ok {
				here.add(n)
			}
		}
	} else {
		for n := range l.s.Nodes {
			here.add(n)
		}
	}
	l.places = append(l.places, place{in, here})
	return len(l.places) - 1
}

// claim returns what a hold takes from the shares.
func (l *ledger) claim(h state.Hold, in string) claim {
	one := claim{partition: in, nodes: newNodeBits(len(l.s.Nodes)), growing: newNodeBits(len(l.s.Nodes)), until: max(h.Start, l.now)}
	if h.Start <= l.now {
		return one
	}
	for k, name := range h.Nodes {
		from := l.now
		if k < len(h.From) {
			from = max(from, h.From[k])
		}
		one.seconds += max(h.Start-from, 0)
		if n, ok := l.s.Index[name]; ok {
			one.nodes.add(n)
			if h.Step > 1 && (k >= len(h.From) || h.From[k] == 0) {
				one.growing.add(n)
			}
		}
	}
	one.count = one.nodes.in(one.nodes)
	return one
}

// urgency orders the holds of a user: first holds whose time has come, then holds of running jobs,
// then holds of queued jobs. Within a kind, holds in place come first. All holds of a queued job
// are as urgent as its start.
func urgency(c *state.Core, h *state.Hold, now int64) int {
	j := h.Job
	switch {
	case h.Awaited(), j.State == row.Queued && c.ReachedSecond(now, j.Plan[0].Start), j.State != row.Queued && c.ReachedSecond(now, h.Start):
		return 0
	case j.State == row.Queued && InPlace(c, j, 1):
		return 3
	case j.State == row.Queued:
		return 4
	case InPlace(c, j, h.Step):
		return 1
	}
	return 2
}

// InPlace reports whether Slurm has the hold of a job's step.
func InPlace(c *state.Core, j *state.Job, step int) bool {
	return c.HoldNames[state.HoldKey{j.BaseID(), step}] != ""
}

// fairly returns the order in which holds are taken: in turns, one per user at a time. A user's
// holds are ordered by urgency, then by start.
func fairly(c *state.Core, all []state.Hold, now int64) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	classes := make([]int, len(all))
	for i := range all {
		classes[i] = urgency(c, &all[i], now)
	}
	urgent := func(a, b int) int {
		return cmp.Or(cmp.Compare(classes[a], classes[b]), cmp.Compare(all[a].Start, all[b].Start), cmp.Compare(a, b))
	}
	slices.SortFunc(order, urgent)
	rank, served := make([]int, len(all)), map[string]int{}
	for _, i := range order {
		user := all[i].Job.User
		rank[i] = served[user]
		served[user]++
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), urgent(a, b)) })
	return order
}

// Allowed returns the holds that fit into the shares of their owners, and records for each job
// what is not held.
func Allowed(c *state.Core, all []state.Hold, now int64) []state.Hold {
	for _, j := range c.Active {
		j.Deferred, j.Unheld = nil, nil
	}
	l, taken := newLedger(c, now), make([]bool, len(all))
	for _, i := range fairly(c, all, now) {
		h := all[i]
		j := h.Job
		back := j.Unheld
		if j.State != row.Queued || back == nil || back.Step > 1 { // without a hold for the start, hold no growths
			back = l.take(h, heldIn(c, j), h.Awaited(), InPlace(c, j, h.Step))
		}
		if taken[i] = back == nil; taken[i] {
			continue
		}
		j.Deferred = append(j.Deferred, h.Step)
		if j.Unheld == nil || h.Step < j.Unheld.Step {
			j.Unheld = back
		}
		if back.Soonest > 0 {
			c.ReachedSecond(now, back.Soonest)
		}
	}
	kept := all[:0:0]
	for i, h := range all {
		if taken[i] {
			kept = append(kept, h)
		}
	}
	tellUnheld(c)
	return kept
}

// tellUnheld adds an event for each running job that had all its growths held until now and
// loses a hold, at most once per step.
func tellUnheld(c *state.Core) {
	for _, j := range c.Active {
		b := j.Unheld
		if b == nil || !j.Runs() {
			j.UnheldSince = false
			continue
		}
		if !j.UnheldSince && b.Step > j.UnheldTold {
			c.Event(j, "not held", map[string]any{"step": b.Step, "nodes": b.Nodes, "why": b.Words(c)})
		}
		j.UnheldSince, j.UnheldTold = true, max(j.UnheldTold, b.Step)
	}
}

// heldIn returns the partition whose shares a job's holds count for.
func heldIn(c *state.Core, j *state.Job) string {
	if name := slurm.PartitionFor(c, c.Snapshot, j); name != "" && !j.Runs() {
		return name
	}
	in, _, _ := strings.Cut(slurm.PartitionOf(j), ",")
	return in
}

// holdAhead returns how many seconds ahead of their time nodes are held.
func holdAhead(c *state.Core) int64 {
	ahead := int64(c.Config.HoldAhead / time.Second)
	if c.Power.On { // held nodes must be up in time
		ahead = max(ahead, int64((c.Power.Up()+c.Power.Down()+PowerLead)/time.Second))
	}
	return ahead
}
