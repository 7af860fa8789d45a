package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The malleability manager runs once a cycle, after planning. It checks lent and free nodes in this order:
//
//  1. It demands lent nodes back in time if they are planned for another evolving job.
//  2. With precedence to waiting applications (PWA), pending stock jobs count as waiting. The manager
//     demands back the lent nodes that they could use, and does not lend the free nodes that they could
//     use, even if these are not enough for them yet. So a stock job starts when it would without
//     malleable jobs, plus the grace of the jobs that give way.
//  3. It offers free nodes that no other job will need for a while, as the policy distributes them.
//
// Waiting evolving jobs are in the plan, and so in 1.

// approach returns which jobs have precedence.
func (c *Core) approach() malleable.Approach { return c.cfg.Malleable.Precedence() }

// policy returns the built-in policy that distributes nodes.
func (c *Core) policy() malleable.Policy {
	if p, err := malleable.PolicyByName(cmp.Or(c.strategy.Policy, c.cfg.Malleable.Policy)); err == nil {
		return p
	}
	return FallbackPolicy
}

// managing is one run of the manager.
type managing struct {
	*Core
	s       *snapshot
	second  int64
	jobs    []*job // running malleable jobs
	wants   map[string][]want
	waiting []int // nodes that pending stock jobs need

	phase    int      // next phase: pending stock jobs, withdrawals, then each partition
	parts    []string // partitions
	answers  [][]malleable.Change
	question *Question // open question
	place    []int     // places of its jobs in the full list
}

// manage decides on the sizes of malleable jobs.
func (c *Core) manage(s *snapshot) {
	c.pressing, c.looking = nil, nil
	m := &managing{Core: c, s: s, second: c.now.Unix()}
	for j := range c.each(c.active) {
		if j.isMalleable() && j.runs() {
			m.jobs = append(m.jobs, j)
		}
	}
	if len(m.jobs) == 0 {
		return
	}
	m.wants = c.wants()
	for _, j := range m.jobs {
		m.demandDue(j)
	}
	m.goOn()
}

// goOn does the rest of a run, up to a question to a plugin.
func (m *managing) goOn() {
	for ; m.phase < 2+len(m.parts); m.phase++ {
		done := true
		switch {
		case m.phase == 0:
			done = m.approach() != malleable.PWA || m.makeWay()
		case m.phase == 1:
			m.withdraw()
			m.parts = m.partitions()
		default:
			done = m.distribute(m.parts[m.phase-2])
		}
		if !done {
			m.looking = m
			return
		}
		m.answers = nil
	}
}

// ahead returns how many seconds before its latest time a demand is made.
func (m *managing) ahead() int64 { return int64((2*m.cfg.PollInterval + time.Second) / time.Second) }

// demandDue demands lent nodes that other jobs are about to get. It demands all that would be due before the
// demand is over, since there is no other demand until then.
func (m *managing) demandDue(j *job) {
	recall := int64(m.recall(j) / time.Second)
	ends := never
	if m.approach() == malleable.PRA && len(j.plan) > 0 { // the job keeps them to its end, and other jobs are planned after that
		ends = j.plan[len(j.plan)-1].end
	}
	due := func(until int64) (nodes int) {
		for _, name := range j.lent() {
			if at := wantedAt(m.wants[name], j); at <= until && at < ends {
				nodes++
			}
		}
		return nodes
	}
	if due(m.second+recall+m.ahead()) == 0 || m.stillResizable(j) != "" {
		return
	}
	m.demand(j, due(m.second+2*recall+m.ahead()), m.goFirst(j, m.wants), "they are planned for others")
}

// demand demands `nodes` nodes of a job, or a few more (see rounded), the first ones of a list. It reports
// false if it must leave the job alone now.
func (m *managing) demand(j *job, nodes int, list []string, why string) bool {
	if list, nodes = m.rounded(j, list, nodes); nodes == 0 || j.ending {
		return false
	}
	if o := j.offer(); o != nil {
		if o.demands() || o.State == offerAccepted {
			return false
		}
		m.closeOffer(j, offerWithdrawn, "nodes are needed back")
	}
	m.put(j, offer{Kind: malleable.Shrink.String(), Mandatory: true, Nodes: nodes, List: list, Why: why})
	return true
}

// rounded returns how many nodes of a list a job gives back if it is asked for some. Then the job has one of
// its sizes, or, if jobs cannot be resized in part, whole companions go. The list that it returns begins with
// these nodes.
func (m *managing) rounded(j *job, list []string, nodes int) ([]string, int) {
	has := len(j.nodes())
	if j.mode.resizesInPart {
		size := max(j.Malleable.Sizes.Floor(has-nodes), has-len(list))
		return list, max(has-size, 0)
	}
	at := map[string]int{}
	for i, p := range j.held {
		for _, name := range p.Nodes {
			at[name] = i
		}
	}
	can := setOf(list)
	var all []string
	enough, seen := 0, map[int]bool{}
	for _, name := range list {
		i := at[name]
		if seen[i] || i == 0 {
			continue
		}
		seen[i] = true
		part := j.held[i].Nodes
		if len(common(part, list)) < len(part) || !can[name] {
			continue
		}
		all = append(all, part...)
		if enough < nodes && j.Malleable.Sizes.Has(has-len(all)) {
			enough = len(all)
		}
	}
	return all, enough
}

// makeWay demands what pending stock jobs could use. It reports false while the policy's answer is missing.
func (m *managing) makeWay() bool {
	m.pressing, m.waiting = set{}, nil
	g := m.givable()
	for _, w := range m.stockCandidates(m.s, m.second, turn{math.MinInt, 0}) {
		if _, evolves := m.coming[w.record.ID]; !evolves { // otherwise it is about to be adopted
			m.giveTo(g, w)
		}
	}
	if g.missing == 0 {
		return true
	}
	var list []malleable.Job
	var jobs []*job
	for _, j := range m.jobs {
		if n := len(g.useful[j]); n > 0 {
			one := m.asJob(j)
			one.Min = max(one.Min, one.Sizes.Floor(one.Nodes-n))
			jobs, list = append(jobs, j), append(list, one)
		}
	}
	r := malleable.Request{Kind: malleable.Shrink, Nodes: g.missing, Mandatory: true}
	var changes []malleable.Change
	if !m.decided(func(p malleable.Policy) { changes = malleable.Distribute(p, list, r, malleable.Declared) }) {
		return false
	}
	for _, change := range changes {
		j := jobs[change.Job]
		first := m.goFirst(j, m.wants)
		slices.SortStableFunc(first, func(a, b string) int {
			return cmp.Compare(btoi(g.useful[j][b]), btoi(g.useful[j][a]))
		})
		m.demand(j, change.Accepted, first, g.why)
	}
	return true
}

// givable holds the nodes that stock jobs could get from malleable jobs, and what they need of them.
type givable struct {
	lent      map[string]*job  // lent nodes, by the jobs that may give them back
	returning set              // nodes that will be free soon
	booked    map[string]int64 // see bookedFrom

	taken   set          // nodes for the stock jobs so far
	useful  map[*job]set // lent nodes that a stock job could use
	missing int          // how many of the lent nodes the stock jobs need
	why     string
}

// givable returns what malleable jobs may give back, before any stock job gets nodes.
func (m *managing) givable() *givable {
	g := &givable{lent: map[string]*job{}, returning: m.comingFree(), booked: m.bookedFrom(), taken: set{}, useful: map[*job]set{}}
	for _, j := range m.jobs {
		g.useful[j] = set{}
		o := j.offer()
		for _, name := range j.lent() {
			switch {
			case o != nil && o.demands() && slices.Contains(o.wanted(), name):
				g.returning[name] = true
			case m.mayGive(j):
				g.lent[name] = j
			}
		}
	}
	return g
}

// giveTo adds what a pending stock job could use.
func (m *managing) giveTo(g *givable, w candidate) {
	need, until := w.profile[0].Nodes, m.second+w.profile[0].Duration
	usable := 0
	var have, lent []string
	for _, n := range w.nodes {
		name := m.s.nodes[n].Name
		if !m.s.nodes[n].Usable() {
			continue
		}
		usable++
		if g.taken[name] || g.booked[name] < until {
			continue
		}
		switch {
		case !m.s.inUse[name], g.returning[name]:
			have = append(have, name)
		case g.lent[name] != nil:
			lent = append(lent, name)
		}
	}
	if need > usable {
		return // it cannot start at present, even if all jobs give way
	}
	m.waiting = append(m.waiting, need)
	have = have[:min(len(have), need)]
	missing := min(need-len(have), len(lent))
	g.taken.add(have)
	g.taken.add(lent[:missing])
	m.pressing.add(have)
	m.pressing.add(lent)
	if missing == 0 {
		return
	}
	for _, name := range lent {
		g.useful[g.lent[name]][name] = true
	}
	if g.why == "" {
		g.why = fmt.Sprintf("stock job %d waits", w.record.ID)
	}
	g.missing += missing
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// comingFree returns nodes that malleable jobs have just given back and that do not look free yet: a companion
// completes, or the poll is older.
func (m *managing) comingFree() set {
	all := set{}
	for _, j := range m.jobs {
		if n := len(j.Offers); n > 0 {
			if o := offer(j.Offers[n-1]); o.State == offerDone && !o.grows() && m.second-o.Closed <= comesFree {
				all.add(Without(o.wantedAtEnd(), j.nodes()))
			}
		}
	}
	if len(all) == 0 {
		return all
	}
	for i := range m.s.jobs {
		r := &m.s.jobs[i]
		gave := m.owner(r.ID)
		if r.Ended() || r.State == slurmctl.Completing || gave == nil && m.isExpander(r) {
			continue
		}
		for _, name := range r.NodeList {
			if all[name] && (gave == nil || slices.Contains(gave.nodes(), name)) { // another job has it already
				delete(all, name)
			}
		}
	}
	return all
}

// comesFree is how many seconds nodes may take to become free.
const comesFree = 30

// bookedFrom returns when each node is reserved, or planned for an evolving job that begins soon: no stock job
// starts there that would last until then. The time of all other nodes is never.
func (m *managing) bookedFrom() map[string]int64 {
	booked := map[string]int64{}
	for _, n := range m.s.nodes {
		booked[n.Name] = never
	}
	for _, r := range m.reservations {
		if own, ours := parseHold(r); ours && own.step == lentStep || !r.End.After(m.now) {
			continue
		}
		for _, name := range r.Nodes {
			if at, known := booked[name]; known {
				booked[name] = min(at, r.Start.Unix())
			}
		}
	}
	soon := m.second + int64(m.cfg.HoldAhead/time.Second)
	for name, all := range m.wants {
		for _, w := range all {
			if w.at <= soon {
				booked[name] = min(booked[name], w.at)
			}
		}
	}
	return booked
}

// mayGive reports whether a job may get a demand for nodes now.
func (m *managing) mayGive(j *job) bool {
	o := j.offer()
	return !j.busy && !j.ending && !j.isSuspended() && m.stillResizable(j) == "" && (o == nil || o.State == offerOpen && !o.demands())
}

// mayAsk reports whether a job may get an offer now.
func (m *managing) mayAsk(j *job) bool {
	return j.State == row.Running && m.mayGive(j) && j.offer() == nil && !j.configuring && j.kept == nil && !j.unwritten && !j.lapsed() && len(j.expanders) == 0 &&
		!j.touched.After(m.s.taken) && !m.now.Before(j.offerAfter) && !m.now.Before(j.retryAt) && j.asked != nil && len(j.plan) == len(j.Profile) &&
		len(j.nodes()) >= j.Profile[j.Step-1].Nodes && len(j.nodes()) <= j.most() && j.expected() > m.second+int64(m.recall(j)/time.Second)
}

// asJob returns a job as policies see it, with the nodes that it is offered.
func (m *managing) asJob(j *job) malleable.Job {
	nodes := len(j.nodes())
	if o := j.offer(); o != nil && o.grows() {
		nodes += len(Without(o.wanted(), j.nodes()))
	}
	one := malleable.Job{ID: strconv.FormatUint(uint64(j.SlurmID), 10), Start: j.Started.Unix(), Nodes: nodes, Min: j.Profile[j.Step-1].Nodes, Max: j.most(), Sizes: j.Malleable.Sizes}
	one.Speedup = j.speedup()
	if nodes < one.Min || nodes > one.Max { // it has lost some, or is between two sizes
		one.Held = true
	}
	return one
}

// withdraw withdraws offers whose nodes other jobs need by now.
func (m *managing) withdraw() {
	for _, j := range m.jobs {
		o := j.offer()
		if o == nil || !o.grows() || o.State != offerOpen {
			continue
		}
		for _, name := range o.wanted() {
			if m.pressing[name] || wantedAt(m.wants[name], j) <= m.second+int64(m.recall(j)/time.Second)+m.ahead() {
				m.closeOffer(j, offerWithdrawn, "others need the nodes")
				break
			}
		}
	}
}

// partitions returns the partitions of the running malleable jobs, in order.
func (m *managing) partitions() []string {
	names := map[string]bool{}
	for _, j := range m.jobs {
		names[partitionOf(j)] = true
	}
	return sortedKeys(names)
}

// distribute offers the free nodes of a partition to the malleable jobs there. It reports false while the
// policy's answer is missing.
func (m *managing) distribute(partition string) bool {
	st := malleable.State{Threshold: m.cfg.Malleable.Threshold}
	var jobs []*job
	elsewhere := 0
	for _, j := range m.jobs {
		one := m.asJob(j)
		if partitionOf(j) != partition {
			elsewhere += one.Nodes
			continue
		}
		if o := j.offer(); o != nil && o.demands() {
			st.Coming += len(common(o.wanted(), j.nodes()))
		}
		one.Held = one.Held || !m.mayAsk(j)
		jobs, st.Jobs = append(jobs, j), append(st.Jobs, one)
	}
	if st.Threshold > 0 {
		st.Threshold = max(st.Threshold-elsewhere, 1)
	}
	free := map[*job][]string{}
	all := set{}
	for i, j := range jobs {
		if !st.Jobs[i].Held {
			free[j] = m.lendable(j)
			all.add(free[j])
		}
	}
	st.Free = len(all)
	var d malleable.Decision
	if !m.decided(func(p malleable.Policy) {
		if d = malleable.Manage(m.approach(), p, withoutFull(st), malleable.Declared); len(d.Changes) > 0 {
			return
		}
		full := st // a job of maximum size may have nodes for other jobs
		full.Free = 0
		d = malleable.Manage(m.approach(), p, full, malleable.Declared)
	}) {
		return false
	}
	given := set{}
	for _, change := range d.Changes {
		j := jobs[change.Job]
		if change.Kind == malleable.Shrink {
			if list, nodes := m.rounded(j, m.goFirst(j, m.wants), change.Accepted); nodes > 0 {
				m.put(j, offer{Kind: change.Kind.String(), Nodes: nodes, List: list, Why: "others would make more of them"})
			}
			continue
		}
		has := len(j.nodes())
		names := slices.DeleteFunc(free[j], func(name string) bool { return given[name] })
		n := j.Malleable.Sizes.Floor(has+min(change.Accepted, len(names))) - has
		if n <= 0 {
			continue
		}
		given.add(names[:n])
		m.put(j, offer{Kind: change.Kind.String(), Nodes: n, List: names[:n], Why: "they are free"})
	}
	return true
}

// withoutFull marks jobs of maximum size as held: EGS would share out nodes to them again and again.
func withoutFull(st malleable.State) malleable.State {
	st.Jobs = slices.Clone(st.Jobs)
	for i, j := range st.Jobs {
		st.Jobs[i].Held = j.Held || j.Nodes >= j.Most()
	}
	return st
}

// lendable returns the nodes that may be lent to a job, first those that stay unused longest.
func (m *managing) lendable(j *job) []string {
	s := m.s
	eligible, err := s.eligible(m.recordFor(s, j), j.gres)
	if err != nil {
		return nil
	}
	until := m.second + int64(m.recall(j)/time.Second) + m.ahead() + lendFor
	if m.approach() == malleable.PRA { // the job keeps them
		until = max(until, j.plan[len(j.plan)-1].end)
	}
	barred := m.barred(j, until)
	var names []string
	for _, n := range eligible {
		name := s.nodes[n].Name
		if one := []string{name}; !barred[name] && !m.pressing[name] && s.free(one) && !m.isSuspect(one) && !slices.Contains(m.leaked, name) && wantedAt(m.wants[name], j) > until {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(wantedAt(m.wants[b], j), wantedAt(m.wants[a], j))
	})
	return names
}

// barred returns the nodes that are offered already, or reserved before a Unix second or within a job's time
// limit.
func (m *managing) barred(j *job, until int64) set {
	barred := set{}
	for _, other := range m.active {
		if o := other.offer(); o != nil && o.grows() {
			barred.add(o.wanted())
		}
	}
	reach := m.second + j.reach(m.second)
	for _, r := range m.reservations {
		_, ours := parseHold(r)
		from := r.Start.Unix()
		if r.End.After(m.now) && (from <= until || !ours && from < reach) {
			barred.add(r.Nodes)
		}
	}
	return barred
}

// lendFor is how many seconds nodes must stay free to be worth lending.
const lendFor = 60
