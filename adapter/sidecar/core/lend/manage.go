package lend

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// policy returns the built-in policy that distributes nodes.
func policy(c *state.Core) malleable.Policy {
	if p, err := malleable.PolicyByName(cmp.Or(c.Strategy.Policy, c.Config.Malleable.Policy)); err == nil {
		return p
	}
	return msg.FallbackPolicy
}

// Manage decides on the sizes of malleable jobs.
func Manage(c *state.Core, s *state.Snapshot) {
	c.Pressing, c.Looking = nil, nil
	m := &state.Managing{Core: c, S: s, Second: c.Now.Unix()}
	for j := range plan.Each(c, c.Active) {
		if adopt.IsMalleable(j) && j.Runs() {
			m.Malleable = append(m.Malleable, j)
		}
	}
	if m.Parked = parked(c); len(m.Malleable)+len(m.Parked) == 0 {
		return
	}
	m.Wants = wants(c)
	for _, j := range m.Malleable {
		demandDue(m, j)
	}
	GoOn(m)
}

// GoOn does the rest of a run, up to a question to a plugin.
func GoOn(m *state.Managing) {
	for ; m.Phase < 2+len(m.Parts); m.Phase++ {
		done := true
		switch {
		case m.Phase == 0:
			done = makeWay(m)
		case m.Phase == 1:
			withdraw(m)
			m.Parts = partitionsOf(m, false)
			m.Ordinary = len(m.Parts)
			m.Parts = append(m.Parts, partitionsOf(m, true)...)
		default:
			done = distribute(m, m.Parts[m.Phase-2], m.Phase-2 >= m.Ordinary)
		}
		if !done {
			m.Looking = m
			return
		}
		m.Answers = nil
	}
	startParked(m)
}

func ahead(m *state.Managing) int64 { return refit.Ahead(m.Core) }

// demandDue demands lent nodes that other jobs are about to get, or that the job promised to give back about now. It
// demands all that would be due before the demand is over, since there is no other demand until then.
func demandDue(m *state.Managing, j *state.Job) {
	recall := int64(refit.Recall(m.Core, j) / time.Second)
	ends := never
	if !refit.GivesWay(m.Core, j) && len(j.Plan) > 0 { // the job keeps them to its end, and other jobs are planned after that
		ends = j.Plan[len(j.Plan)-1].End
	}
	why, last, own := "the job promised to give them back by then", false, msg.SetOf(refit.Own(j))
	due := func(until int64) (nodes int) {
		for _, name := range refit.Recallable(j) {
			at := wantedAt(m.Wants[name], j)
			switch {
			case at <= until && at < ends:
				why = "they are planned for others"
			case boundAt(m.Core, j, name) > until:
				continue
			}
			nodes++
			last = last || own[name]
		}
		return nodes
	}
	if due(m.Second+recall+ahead(m)) == 0 || stillResizable(m.Core, j) != "" {
		return
	}
	first := why
	nodes := due(m.Second + 2*recall + ahead(m))
	if last { // of a best-effort job
		demandAll(m, j, first)
		return
	}
	demand(m, j, nodes, goFirst(m.Core, j, m.Wants), first)
}

// demand demands `nodes` nodes of a job, or a few more (see rounded), the first ones of a list. It reports
// false if it must leave the job alone now.
func demand(m *state.Managing, j *state.Job, nodes int, list []string, why string) bool {
	if list, nodes = rounded(m, j, list, nodes); nodes == 0 || j.Ending {
		return false
	}
	if o := refit.OfferAt(j); o != nil {
		if o.Demands() || o.State == refit.OfferAccepted {
			return false
		}
		refit.CloseOffer(m.Core, j, refit.OfferWithdrawn, "nodes are needed back")
	}
	put(m.Core, j, refit.Offer{Kind: malleable.Shrink.String(), Mandatory: true, Nodes: nodes, List: list, Why: why})
	return true
}

// rounded returns how many nodes of a list a job gives back if it is asked for some. Then the job has one of
// its sizes, or, if jobs cannot be resized in part, whole companions go. The list that it returns begins with
// these nodes.
func rounded(m *state.Managing, j *state.Job, list []string, nodes int) ([]string, int) {
	has := len(j.Nodes())
	if j.Mode.ResizesInPart {
		size := max(j.Malleable.Sizes.Floor(has-nodes), has-len(list))
		return list, max(has-size, 0)
	}
	at := map[string]int{}
	for i, p := range j.Held {
		for _, name := range p.Nodes {
			at[name] = i
		}
	}
	can := msg.SetOf(list)
	var all []string
	enough, seen := 0, map[int]bool{}
	for _, name := range list {
		i := at[name]
		if seen[i] || i == 0 {
			continue
		}
		seen[i] = true
		part := j.Held[i].Nodes
		if len(msg.Common(part, list)) < len(part) || !can[name] {
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
func makeWay(m *state.Managing) bool {
	m.Useful, m.Waiting = msg.Set{}, nil
	if refit.Approach(m.Core) == malleable.PWA {
		m.Pressing = m.Useful
	}
	if len(m.Parked) == 0 && !slices.ContainsFunc(m.Malleable, func(j *state.Job) bool { return refit.GivesWay(m.Core, j) }) {
		return true
	}
	g := findGivable(m)
	for _, w := range stock.Candidates(m.Core, m.S, m.Second, slurm.Turn{math.MinInt, 0}, stock.SetsBeside(m.Core, m.S, slices.Concat(m.Malleable, m.Parked))) {
		if _, evolves := m.Coming[w.Record.ID]; !evolves { // otherwise it is about to be adopted
			giveTo(m, g, w)
		}
	}
	takeBack(m, g.leaves, g.lent, g.why)
	if g.missing == 0 {
		return true
	}
	var list []malleable.Job
	var jobs []*state.Job
	for _, j := range m.Malleable {
		if n := len(g.useful[j]); n > 0 {
			one := asJob(m, j)
			one.Min = max(one.Min, one.Sizes.Floor(one.Nodes-n))
			jobs, list = append(jobs, j), append(list, one)
		}
	}
	r := malleable.Request{Kind: malleable.Shrink, Nodes: g.missing, Mandatory: true}
	var changes []malleable.Change
	if !decided(m, func(p malleable.Policy) { changes = malleable.Distribute(p, list, r, malleable.Declared) }) {
		return false
	}
	for _, change := range changes {
		j := jobs[change.Job]
		first := goFirst(m.Core, j, m.Wants)
		slices.SortStableFunc(first, func(a, b string) int {
			return cmp.Compare(btoi(g.useful[j][b]), btoi(g.useful[j][a]))
		})
		demand(m, j, change.Accepted, first, g.why)
	}
	return true
}

// givable holds the nodes that stock jobs could get from malleable jobs, and what they need of them.
type givable struct {
	lent      map[string]*state.Job // lent nodes, by the jobs that may give them back
	returning msg.Set               // nodes that will be free soon
	booked    map[string]int64      // see bookedFrom

	taken   msg.Set                // nodes for the stock jobs so far
	useful  map[*state.Job]msg.Set // lent nodes that a stock job could use
	missing int                    // how many of the lent nodes the stock jobs need
	leaves  []string               // nodes of best-effort jobs for them
	why     string
}

// findGivable returns what malleable jobs may give back, before any stock job gets nodes.
func findGivable(m *state.Managing) *givable {
	g := &givable{lent: map[string]*state.Job{}, returning: comingFree(m), booked: bookedFrom(m), taken: msg.Set{}, useful: map[*state.Job]msg.Set{}}
	for _, j := range m.Malleable {
		g.useful[j] = msg.Set{}
		o := refit.OfferAt(j)
		for _, name := range refit.Recallable(j) {
			switch {
			case o != nil && o.Demands() && slices.Contains(o.Wanted(), name):
				g.returning[name] = true
			case mayGive(m, j) && refit.GivesWay(m.Core, j):
				g.lent[name] = j
			}
		}
	}
	return g
}

// giveTo adds what a pending stock job could use.
func giveTo(m *state.Managing, g *givable, w slurm.Candidate) {
	need, until := w.Profile[0].Nodes, m.Second+w.Profile[0].Duration
	usable := 0
	var have, lent, last []string
	for _, n := range w.Nodes {
		name := m.S.Nodes[n].Name
		if !m.S.Nodes[n].Usable() {
			continue
		}
		usable++
		if g.taken[name] || g.booked[name] < until {
			continue
		}
		switch {
		case !m.S.InUse[name], g.returning[name]:
			have = append(have, name)
		case g.lent[name] == nil:
		case g.lent[name].BestEffort():
			last = append(last, name)
		default:
			lent = append(lent, name)
		}
	}
	if need > usable {
		return // it cannot start at present, even if all jobs give way
	}
	m.Waiting = append(m.Waiting, need)
	have = have[:min(len(have), need)]
	ordered(last, g.lent)
	leaves := last[:min(need-len(have), len(last))]
	missing := min(need-len(have)-len(leaves), len(lent))
	for _, names := range [][]string{have, leaves, lent[:missing]} {
		g.taken.Add(names)
	}
	for _, names := range [][]string{have, last, lent} {
		m.Useful.Add(names)
	}
	if g.why == "" && missing+len(leaves) > 0 {
		g.why = fmt.Sprintf("stock job %d waits", w.Record.ID)
	}
	g.leaves = append(g.leaves, leaves...)
	if missing == 0 {
		return
	}
	for _, name := range lent {
		g.useful[g.lent[name]][name] = true
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
func comingFree(m *state.Managing) msg.Set {
	all := msg.Set{}
	for _, j := range m.Malleable {
		if n := len(j.Offers); n > 0 {
			if o := refit.Offer(j.Offers[n-1]); o.State == refit.OfferDone && !o.Grows() && !m.ReachedSecond(m.Second, o.Closed+comesFree+1) {
				all.Add(msg.Without(o.WantedAtEnd(), j.Nodes()))
			}
		}
	}
	if len(all) == 0 {
		return all
	}
	for i := range m.S.Jobs {
		r := &m.S.Jobs[i]
		gave := m.Owner(r.ID)
		if r.Ended() || r.State == slurmctl.Completing || gave == nil && slurm.IsExpander(m.Core, r) {
			continue
		}
		for _, name := range r.NodeList {
			if all[name] && (gave == nil || slices.Contains(gave.Nodes(), name)) { // another job has it already
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
func bookedFrom(m *state.Managing) map[string]int64 {
	booked := map[string]int64{}
	for _, n := range m.S.Nodes {
		booked[n.Name] = never
	}
	for _, r := range m.Reservations {
		if own, ours := state.ParseHold(r); ours && (own.Step == refit.LentStep || givenUp(m, own)) || m.Reached(m.Now, r.End) {
			continue
		}
		for _, name := range r.Nodes {
			if at, known := booked[name]; known {
				booked[name] = min(at, r.Start.Unix())
			}
		}
	}
	ahead := int64(m.Config.HoldAhead / time.Second)
	for name, all := range m.Wants {
		for _, w := range all {
			if !waits(w.By) && m.ReachedSecond(m.Second, w.At-ahead) {
				booked[name] = min(booked[name], w.At)
			}
		}
	}
	return booked
}

// givenUp reports whether the promise for which nodes are held has lapsed, or none was made.
func givenUp(m *state.Managing, own state.OwnName) bool {
	j := m.ByID[own.Job]
	return j != nil && (j.Runs() && own.Step > len(j.Plan) || waits(j))
}

// mayGive reports whether a job may get a demand for nodes now.
func mayGive(m *state.Managing, j *state.Job) bool {
	o := refit.OfferAt(j)
	return !j.Busy && !j.Ending && !follow.IsSuspended(j) && stillResizable(m.Core, j) == "" && (o == nil || o.State == refit.OfferOpen && !o.Demands())
}

// mayAsk reports whether a job may get an offer now.
func mayAsk(m *state.Managing, j *state.Job) bool {
	return !m.Drained() && j.State == row.Running && mayGive(m, j) && refit.OfferAt(j) == nil && !boundOften(j) && !j.Configuring && j.Kept == nil && !j.Unwritten && !j.Lapsed() && len(j.Expanders) == 0 &&
		!j.Touched.After(m.S.Taken) && m.Reached(m.Now, j.OfferAfter) && m.Reached(m.Now, j.RetryAt) && j.Asked != nil && len(j.Plan) == len(j.Profile) &&
		len(j.Nodes()) >= j.Profile[j.Step-1].Nodes && len(j.Nodes()) <= most(j) && !m.ReachedSecond(m.Second, j.Expected()-int64(refit.Recall(m.Core, j)/time.Second))
}

// boundOften reports whether the job's last offers are all needed to know by when it gives nodes back.
func boundOften(j *state.Job) bool {
	n := 0
	for _, o := range j.Offers {
		if one := refit.Offer(o); one.Binds(j) {
			n++
		}
	}
	return n >= row.MostOffers-1
}

// asJob returns a job as policies see it, with the nodes that it is offered.
func asJob(m *state.Managing, j *state.Job) malleable.Job {
	nodes := len(j.Nodes())
	if o := refit.OfferAt(j); o != nil && o.Grows() {
		nodes += len(msg.Without(o.Wanted(), j.Nodes()))
	}
	one := malleable.Job{ID: strconv.FormatUint(uint64(j.SlurmID), 10), Start: j.Started.Unix(), Nodes: nodes, Min: j.Profile[j.Step-1].Nodes, Max: most(j), Sizes: j.Malleable.Sizes}
	one.Speedup = follow.Speedup(j)
	if nodes < one.Min || nodes > one.Max { // it has lost some, or is between two sizes
		one.Held = true
	}
	return one
}

// withdraw withdraws offers whose nodes other jobs need by now, and those to jobs that are denied.
func withdraw(m *state.Managing) {
	for _, j := range m.Malleable {
		o := refit.OfferAt(j)
		if o == nil || !o.Grows() || o.State != refit.OfferOpen || withdrawDenied(m.Core, j) {
			continue
		}
		for _, name := range o.Wanted() {
			if presses(m, j, name) || wantedAt(m.Wants[name], j) <= m.Second+int64(refit.Recall(m.Core, j)/time.Second)+ahead(m) {
				refit.CloseOffer(m.Core, j, refit.OfferWithdrawn, "others need the nodes")
				break
			}
		}
	}
}

// withdrawDenied withdraws a job's open offer, and reports true, if the site's lists keep the job from evolving.
func withdrawDenied(c *state.Core, j *state.Job) bool {
	why := adopt.MayEvolve(c, j)
	if why != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, why.Error())
	}
	return why != nil
}

// presses reports whether a pending stock job that comes before a malleable job could use a node.
func presses(m *state.Managing, j *state.Job, name string) bool {
	return m.Useful[name] && refit.GivesWay(m.Core, j)
}

// distribute offers the free nodes of a partition to the malleable jobs there: to the best-effort jobs among them, or to the others.
// It reports false while the policy's answer is missing.
func distribute(m *state.Managing, partition string, bestEffort bool) bool {
	st := malleable.State{Threshold: m.Config.Malleable.Threshold}
	var jobs []*state.Job
	elsewhere, has := starting(m), bestEffortNodes(m)
	for _, j := range m.Malleable {
		one := asJob(m, j)
		if slurm.PartitionOf(j) != partition || j.BestEffort() != bestEffort {
			elsewhere += one.Nodes
			continue
		}
		if o := refit.OfferAt(j); o != nil && o.Demands() {
			st.Coming += len(msg.Common(o.Wanted(), j.Nodes()))
		}
		jobs, st.Jobs = append(jobs, j), append(st.Jobs, boundByUser(m, j, bound(m, j, one), has))
	}
	if st.Threshold > 0 {
		st.Threshold = max(st.Threshold-elsewhere, 1)
	}
	free := map[*state.Job][]string{}
	all := msg.Set{}
	for i, j := range jobs {
		if !st.Jobs[i].Held {
			free[j] = lendable(m, j)
			all.Add(free[j])
		}
	}
	st.Free = len(all)
	var d malleable.Decision
	if !decided(m, func(p malleable.Policy) {
		if d = malleable.Manage(refit.Approach(m.Core), p, withoutFull(st), malleable.Declared); len(d.Changes) > 0 {
			return
		}
		full := st // a job of maximum size may have nodes for other jobs
		full.Free = 0
		d = malleable.Manage(refit.Approach(m.Core), p, full, malleable.Declared)
	}) {
		return false
	}
	given := msg.Set{}
	for _, change := range d.Changes {
		j := jobs[change.Job]
		if change.Kind == malleable.Shrink {
			if list, nodes := rounded(m, j, goFirst(m.Core, j, m.Wants), change.Accepted); nodes > 0 {
				put(m.Core, j, refit.Offer{Kind: change.Kind.String(), Nodes: nodes, List: list, Why: "others would make more of them"})
			}
			continue
		}
		size := len(j.Nodes())
		names := slices.DeleteFunc(free[j], func(name string) bool { return given[name] })
		accepted := min(change.Accepted, len(names), mostNodes(m, j, has))
		n := j.Malleable.Sizes.Floor(size+accepted) - size
		if n <= 0 {
			continue
		}
		has[j.UID] += n
		given.Add(names[:n])
		put(m.Core, j, refit.Offer{Kind: change.Kind.String(), Nodes: n, List: names[:n], Until: leavesBy(m, j, names[:n]), Why: "they are free"})
	}
	return true
}

// starting returns how many nodes the malleable jobs need that are about to begin or whose nodes come up. They get no offers yet.
func starting(m *state.Managing) (nodes int) {
	for _, j := range m.Active {
		if adopt.IsMalleable(j) && j.State == row.Starting {
			nodes += j.Profile[0].Nodes
		}
	}
	return nodes
}

// leavesBy returns the Unix second by which offered nodes must be left for the first other job that is planned on
// one of them, or 0 if there is none.
func leavesBy(m *state.Managing, j *state.Job, names []string) int64 {
	first := never
	for _, name := range names {
		first = min(first, wantedAt(m.Wants[name], j))
	}
	if first == never {
		return 0
	}
	return refit.Leaves(m.Core, first)
}

// bound keeps a job as it is that may get no offer now, and gives one that is denied no more than it has.
func bound(m *state.Managing, j *state.Job, one malleable.Job) malleable.Job {
	one.Held = one.Held || !mayAsk(m, j)
	if !one.Held && adopt.MayEvolve(m.Core, j) != nil {
		one.Max = one.Nodes
	}
	return one
}

// withoutFull marks jobs of maximum size as held: EGS would share out nodes to them again and again.
func withoutFull(st malleable.State) malleable.State {
	st.Jobs = slices.Clone(st.Jobs)
	for i, j := range st.Jobs {
		st.Jobs[i].Held = j.Held || j.Nodes >= j.Most()
	}
	return st
}

// lendable returns the nodes that may be lent to a job, first those that stay unused longest, then those near to it.
func lendable(m *state.Managing, j *state.Job) []string {
	eligible, err := slurm.EligibleBeside(m.Core, m.S, j)
	if err != nil {
		return nil
	}
	return lendableOf(m, j, eligible, m.Second)
}

// lendableOf returns those of some nodes that may be lent to a job from a Unix second on. If that is later, nodes may be off.
func lendableOf(m *state.Managing, j *state.Job, eligible []int, from int64) []string {
	s := m.S
	until := from + int64(refit.Recall(m.Core, j)/time.Second) + ahead(m) + lendFor
	if !refit.GivesWay(m.Core, j) { // the job keeps them
		until = max(until, j.Plan[len(j.Plan)-1].End)
	}
	barred := barred(m, j, until)
	var names []string
	for _, n := range eligible {
		name := s.Nodes[n].Name
		free := slurm.Idle(s, n) || from > m.Second && s.Nodes[n].Usable() && s.Nodes[n].Power() != slurmctl.PowerOn && !s.InUse[name] && onAt(m, name) <= from
		if free && !barred[name] && !presses(m, j, name) && !slurm.IsSuspect(m.Core, []string{name}) && !slices.Contains(m.Leaked, name) && !refusedAfter(m, j, name) && wantedAt(m.Wants[name], j) > until {
			names = append(names, name)
		}
	}
	slurm.NearFirst(m.Core, s, j.Nodes(), names)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(wantedAt(m.Wants[b], j), wantedAt(m.Wants[a], j))
	})
	return names
}

// refusedAfter reports whether Slurm would refuse a node to others that there are for a while, once a best-effort job was requeued there:
// Slurm counts the exclusive jobs on it wrong (see act/miscount.go), and lets the sidecar not have it contacted.
func refusedAfter(m *state.Managing, j *state.Job, name string) bool {
	if _, wrong := m.Shrunk[name]; !wrong || !j.BestEffort() || !j.Record.Exclusive || m.ContactAgain.IsZero() {
		return false
	}
	return len(m.Waiting) > 0 || slices.ContainsFunc(m.Active, func(other *state.Job) bool { return !other.BestEffort() })
}

// barred returns the nodes that are offered already, or reserved before a Unix second or within a job's time
// limit.
func barred(m *state.Managing, j *state.Job, until int64) msg.Set {
	barred := msg.Set{}
	for _, other := range m.Active {
		if o := refit.OfferAt(other); o != nil && o.Grows() {
			barred.Add(o.Wanted())
		}
	}
	reach := m.Second + slurm.Reach(m.Core, j, m.Second)
	if j.State == row.Queued { // its end follows from a start that the sidecar made up
		reach = m.Second + slurm.Seconds(j.Record.TimeLimit)
	}
	for _, r := range m.Reservations {
		own, ours := state.ParseHold(r)
		if ours && own.Job == j.BaseID() && j.State == row.Queued {
			continue
		}
		from := r.Start.Unix()
		if !m.Reached(m.Now, r.End) && (from <= until || !ours && from < reach) {
			barred.Add(r.Nodes)
		}
	}
	return barred
}

// lendFor is how many seconds nodes must stay free to be worth lending.
const lendFor = 60

// DemandLent demands all nodes back that a job is lent, and reports whether it did.
func DemandLent(c *state.Core, s *state.Snapshot, j *state.Job) bool {
	n := len(refit.Lent(j))
	if n == 0 || j.State != row.Running {
		return false
	}
	m := &state.Managing{Core: c, S: s, Second: c.Now.Unix(), Wants: wants(c)}
	return demand(m, j, n, goFirst(c, j, m.Wants), "everything is released")
}
