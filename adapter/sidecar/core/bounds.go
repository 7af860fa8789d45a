package core

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
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

// with returns how many members the set and another set have together.
func (b nodeBits) with(other nodeBits) (n int) {
	for i := range b {
		n += bits.OnesCount64(b[i] | other[i])
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

// within returns the members of the set that are in another set.
func (b nodeBits) within(other nodeBits) nodeBits {
	both := slices.Clone(b)
	for i := range both {
		both[i] &= other[i]
	}
	return both
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
type owner struct{ scope, name string }

// load sums up what an owner holds ahead of time in a partition.
type load struct {
	holds      int
	nodes      nodeBits // for growths
	count      int      // how many nodes these are
	seconds    int64
	rate       int64 // how many node-seconds pass per second, at most
	next, last int64 // Unix seconds at which the first hold, and the last hold of a growth, come to their time; 0 if none
}

// loadKey identifies a load.
type loadKey struct {
	owner
	partition string
}

// ledger records what is held, and for whom.
type ledger struct {
	cfg        *config.Config
	s          *snapshot
	now        int64
	ahead      int64 // seconds
	all        []claim
	claims     map[owner][]claim
	partitions map[string]nodeBits
	loads      map[loadKey]*load // computed on demand
}

func (c *Core) newLedger(now int64) *ledger {
	return &ledger{cfg: &c.cfg, s: c.snapshot, now: now, ahead: c.holdAhead(), claims: map[owner][]claim{}, partitions: map[string]nodeBits{}, loads: map[loadKey]*load{}}
}

// heldBack holds why a hold is not taken.
type heldBack struct {
	step, nodes       int
	key               string // the configuration key of the limit; "" if the hold is taken
	partition         string
	most, wants, has  int64
	by                int64 // Unix second until which it will fit if nothing else is held meanwhile
	soonest           int64 // Unix second before which it cannot fit unless another hold ends; 0 if not known
	nodeHours, places bool  // unit of the figures, if they do not count reservations
}

// words returns why nodes are not held, and until when.
func (b *heldBack) words(c *Core) string {
	figure := func(n int64) string {
		switch {
		case b.nodeHours:
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/3600), ".0") + " node-hours"
		case b.places:
			return fmt.Sprintf("%d nodes", n)
		}
		return fmt.Sprintf("%d reservations", n)
	}
	text := fmt.Sprintf("the nodes of step %d (%d) are not held yet: %s allows %s", b.step, b.nodes, b.key, figure(b.most))
	if b.partition != "" {
		text += " in partition " + b.partition
	}
	if text += "; it takes " + figure(b.wants); b.has > 0 {
		text += " beside " + figure(b.has)
	}
	return text + "; they will be by " + c.clockText(time.Unix(b.by, 0))
}

// owners lists the owners whose shares the holds of a job count for.
func owners(j *job) []owner {
	all := []owner{{"job", fmt.Sprint(j.SlurmID)}, {"user", j.User}, {"partition", ""}}
	if j.Account != "" {
		all = append(all, owner{"account", j.Account})
	}
	return all
}

// take adds a hold if the shares allow it; otherwise it returns why not. A hold that is in place
// may have a tenth more node-hours than a new hold, since plans drift by seconds.
func (l *ledger) take(h hold, in string, awaited, inPlace bool) *heldBack {
	back := &heldBack{step: h.step, nodes: len(h.nodes), most: int64(l.cfg.MaxHolds), wants: 1, has: int64(len(l.all))}
	if len(l.all) >= l.cfg.MaxHolds {
		back.key, back.by = "max_holds", l.next()
		return back
	}
	all := owners(h.job)
	for _, o := range all {
		most, u := max(l.cfg.HoldShares.Of(o.scope).Reservations*l.cfg.MaxHolds/100, 1), l.load(o, in)
		if u.holds >= most {
			back.key, back.by = "hold_shares."+o.scope+".reservations", max(u.next, l.now)
			back.most, back.has = int64(most), int64(u.holds)
			return back
		}
	}
	one := l.claim(h, in)
	for _, o := range all {
		if l.exceeds(o, &one, back, awaited, inPlace) {
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
func (l *ledger) exceeds(o owner, one *claim, back *heldBack, awaited, inPlace bool) bool {
	if one.count == 0 {
		return false
	}
	shares, u, here := l.cfg.HoldShares.Of(o.scope), l.load(o, one.partition), l.nodesOf(one.partition)
	size := here.in(here)
	most := max(size*shares.Nodes/100, 1)
	if sum := one.growing.within(here).with(u.nodes); u.count > 0 && sum > max(most, u.count) {
		*back = heldBack{step: back.step, nodes: back.nodes, key: "hold_shares." + o.scope + ".nodes", partition: one.partition, places: true,
			most: int64(most), wants: int64(sum - u.count), has: int64(u.count), by: min(u.last, one.until)}
		return true
	}
	seconds, allowed := one.secondsIn(here), l.ahead*int64(size)*int64(shares.NodeHours)/100
	limit := allowed
	if inPlace {
		limit += allowed / 10
	}
	if over := u.seconds + seconds - limit; over > 0 && !(awaited && u.seconds == 0) {
		rate := int64(max(one.count, 1))
		*back = heldBack{step: back.step, nodes: back.nodes, key: "hold_shares." + o.scope + ".node_hours", partition: one.partition, nodeHours: true,
			most: allowed, wants: seconds, has: u.seconds, by: min(l.now+(over+rate-1)/rate, one.until), soonest: l.now + (over+rate+u.rate-1)/(rate+u.rate)}
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

func (l *ledger) add(all []owner, one claim) {
	l.all = append(l.all, one)
	for _, o := range all {
		l.claims[o] = append(l.claims[o], one)
		for name := range l.partitions {
			delete(l.loads, loadKey{o, name})
		}
	}
}

// load returns what an owner holds ahead of time on the nodes of a partition. The partitions of
// the jobs do not matter.
func (l *ledger) load(o owner, in string) *load {
	key := loadKey{o, in}
	if u := l.loads[key]; u != nil {
		return u
	}
	here := l.nodesOf(in)
	u := &load{nodes: make(nodeBits, len(here))}
	for _, c := range l.claims[o] {
		if c.partition == in || o.scope != "partition" {
			u.holds++
			if u.next == 0 || c.until < u.next {
				u.next = c.until
			}
		}
		n := c.nodes.in(here)
		if n == 0 {
			continue
		}
		u.seconds += c.secondsIn(here)
		u.rate += int64(n)
		if c.growing.in(here) == 0 {
			continue
		}
		u.last = max(u.last, c.until)
		for i := range here {
			u.nodes[i] |= c.growing[i] & here[i]
		}
	}
	u.count = u.nodes.in(u.nodes)
	l.loads[key] = u
	return u
}

// nodesOf returns the nodes of a partition, or all nodes if Slurm does not list the partition.
func (l *ledger) nodesOf(in string) nodeBits {
	if here := l.partitions[in]; here != nil {
		return here
	}
	here := newNodeBits(len(l.s.nodes))
	if p, known := l.s.partitions[in]; known {
		for _, name := range p.Nodes {
			if n, ok := l.s.index[name]; ok {
				here.add(n)
			}
		}
	} else {
		for n := range l.s.nodes {
			here.add(n)
		}
	}
	l.partitions[in] = here
	return here
}

// claim returns what a hold takes from the shares.
func (l *ledger) claim(h hold, in string) claim {
	one := claim{partition: in, nodes: newNodeBits(len(l.s.nodes)), growing: newNodeBits(len(l.s.nodes)), until: max(h.start, l.now)}
	if h.start <= l.now {
		return one
	}
	for k, name := range h.nodes {
		from := l.now
		if k < len(h.from) {
			from = max(from, h.from[k])
		}
		one.seconds += max(h.start-from, 0)
		if n, ok := l.s.index[name]; ok {
			one.nodes.add(n)
			if h.step > 1 && (k >= len(h.from) || h.from[k] == 0) {
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
func (c *Core) urgency(h *hold, now int64) int {
	j := h.job
	switch {
	case j.State == row.Queued && j.plan[0].start <= now, j.State != row.Queued && h.start <= now, h.awaited():
		return 0
	case j.State == row.Queued && c.inPlace(j, 1):
		return 3
	case j.State == row.Queued:
		return 4
	case c.inPlace(j, h.step):
		return 1
	}
	return 2
}

// inPlace reports whether Slurm has the hold of a job's step.
func (c *Core) inPlace(j *job, step int) bool { return c.holdNames[holdKey{j.id(), step}] != "" }

// fairly returns the order in which holds are taken: in turns, one per user at a time. A user's
// holds are ordered by urgency, then by start.
func (c *Core) fairly(all []hold, now int64) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	classes := make([]int, len(all))
	for i := range all {
		classes[i] = c.urgency(&all[i], now)
	}
	urgent := func(a, b int) int {
		return cmp.Or(cmp.Compare(classes[a], classes[b]), cmp.Compare(all[a].start, all[b].start), cmp.Compare(a, b))
	}
	slices.SortFunc(order, urgent)
	rank, served := make([]int, len(all)), map[string]int{}
	for _, i := range order {
		user := all[i].job.User
		rank[i] = served[user]
		served[user]++
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), urgent(a, b)) })
	return order
}

// allowed returns the holds that fit into the shares of their owners, and records for each job
// what is not held.
func (c *Core) allowed(all []hold, now int64) []hold {
	for _, j := range c.active {
		j.deferred, j.unheld = nil, nil
	}
	c.fits = 0
	l, taken := c.newLedger(now), make([]bool, len(all))
	for _, i := range c.fairly(all, now) {
		h := all[i]
		j := h.job
		back := j.unheld
		if j.State != row.Queued || back == nil || back.step > 1 { // without a hold for the start, hold no growths
			back = l.take(h, c.heldIn(j), h.awaited(), c.inPlace(j, h.step))
		}
		if taken[i] = back == nil; taken[i] {
			continue
		}
		j.deferred = append(j.deferred, h.step)
		if j.unheld == nil || h.step < j.unheld.step {
			j.unheld = back
		}
		if back.soonest > 0 && (c.fits == 0 || back.soonest < c.fits) {
			c.fits = back.soonest
		}
	}
	kept := all[:0:0]
	for i, h := range all {
		if taken[i] {
			kept = append(kept, h)
		}
	}
	c.tellUnheld()
	return kept
}

// tellUnheld adds an event for each running job that had all its growths held until now and
// loses a hold, at most once per step.
func (c *Core) tellUnheld() {
	for _, j := range c.active {
		b := j.unheld
		if b == nil || !j.runs() {
			j.unheldSince = false
			continue
		}
		if !j.unheldSince && b.step > j.unheldTold {
			c.event(j, "not held", map[string]any{"step": b.step, "nodes": b.nodes, "why": b.words(c)})
		}
		j.unheldSince, j.unheldTold = true, max(j.unheldTold, b.step)
	}
}

// heldIn returns the partition whose shares a job's holds count for.
func (c *Core) heldIn(j *job) string {
	if name := c.partitionFor(c.snapshot, j); name != "" && !j.runs() {
		return name
	}
	in, _, _ := strings.Cut(partitionOf(j), ",")
	return in
}

// holdAhead returns how many seconds ahead of their time nodes are held.
func (c *Core) holdAhead() int64 {
	ahead := int64(c.cfg.HoldAhead / time.Second)
	if c.power.on { // held nodes must be up in time
		ahead = max(ahead, int64((c.power.up()+c.power.down()+powerLead)/time.Second))
	}
	return ahead
}
