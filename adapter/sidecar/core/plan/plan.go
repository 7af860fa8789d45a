package plan

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// batch is a list of candidates that are planned together: they share one set of eligible nodes, Slurm ends
// the same jobs for them, and no earlier batch competes for these nodes. Jobs of a user whose jobs exceed their
// steps are planned apart (see heldByOthers), and so are the jobs in a reservation of the site.
type batch struct {
	nodes []int
	rank  msg.Rank
	Jobs  []slurm.Candidate
}

// takes reports whether a candidate can join the batch.
func (b *batch) takes(cand *slurm.Candidate) bool {
	first := &b.Jobs[0]
	return cand.Choices == nil && first.Choices == nil && sameNodes(b.nodes, cand.Nodes) && b.rank == cand.Rank &&
		first.Exceeds == cand.Exceeds && first.Inside() == cand.Inside() && (!cand.Exceeds || first.Record.UID == cand.Record.UID)
}

// Candidates lists the jobs to plan, most urgent first.
func Candidates(c *state.Core, s *state.Snapshot, now int64) []slurm.Candidate {
	var list []slurm.Candidate
	lowest := slurm.Turn{math.MaxInt, math.MaxUint64} // turn of the last evolving job
	over, unread, exceeds, under := overAccrual(c, s), firstUnread(c, s), Exceeding(c), underWay(c)
	for j := range Each(c, c.Active) {
		if j.State != row.Queued || !plannable(c, s, j, over[j]) {
			continue
		}
		cand, ok := candidateOf(c, s, j, now, unread)
		if !ok || j.BestEffort() { // which lend starts once all others are planned
			continue
		}
		cand.Exceeds = exceeds[j.UID]
		list = append(list, cand)
	}
	slices.SortStableFunc(list, stock.MoreUrgent) // an array's next tasks are its first ones
	list = slices.DeleteFunc(list, func(cand slurm.Candidate) bool { return throttled(c, cand.Job, under) })
	for _, cand := range list {
		if cand.Turn.Compare(lowest) < 0 {
			lowest = cand.Turn
		}
	}
	asked := prospects(c, s, now)
	if c.Config.Observes() || len(asked) > 0 {
		lowest = slurm.Turn{Tier: math.MinInt} // all stock jobs are predicted
	}
	var sets *stock.Sets
	if !c.Config.Observes() {
		sets = stock.SetsOf(s, slices.Concat(list, asked))
	}
	if len(list)+len(asked) > 0 || sets == nil {
		list = append(list, slices.Concat(stock.Candidates(c, s, now, lowest, sets), stock.Components(c, s, now, lowest, sets))...)
	}
	slices.SortStableFunc(list, stock.MoreUrgent)
	list = inTurns(c, withinShares(c, withoutHeldUp(c, Behind(keepTurns(c, list)))), now)
	admit(c, s, list, now)
	aim(c, list, now)
	return withProspects(c, list, asked)
}

// plannable reports whether a queued job can be planned now, and says why not. It sets the job's priority. The
// age of a job that is over a limit of accrual does not count (see overAccrual).
func plannable(c *state.Core, s *state.Snapshot, j *state.Job, over bool) bool {
	j.GoesOn()
	if c.Drained() {
		dropPlan(c, j, c.DrainWords()+"; it stays parked until evosctl resume")
		return false
	}
	if j.Unfit = ""; j.Kept != nil {
		if dropPlan(c, j, j.Kept.Text); StillKept(c, j, c.Now) {
			return false
		}
		j.LetTry()
	}
	why := NotEligible(&j.Record)
	slurm.EligibleAgain(c, j, why == "" && !over, s.Taken)
	if j.Priority = j.Record.Priority; !over {
		j.Priority = slurm.PriorityOf(c, j, s.Taken)
	}
	if why != "" {
		dropPlan(c, j, why)
		return false
	}
	if err := inside(c, s, j); err != nil {
		dropPlan(c, j, err.Error())
		return false
	}
	if j.Asked == nil {
		j.WaitsFor(state.Because(state.WhyRequestUnread))
		return false // it keeps its plan
	}
	if len(slurm.Partitions(j)) > 1 {
		if _, known := slurm.RulesSince(c, time.Time{}); !known {
			j.WaitsFor(state.Because(state.WhyLimitsUnread))
			return false // it keeps its plan
		}
	}
	return true
}

// inside takes over the reservation of the site that a queued job asks for by now: its user may have changed it. It returns why the
// job cannot run there at present.
func inside(c *state.Core, s *state.Snapshot, j *state.Job) error {
	asks := j.Record.Reservation
	if _, _, held := state.HoldIn(asks); !held && asks != j.Reservation && !j.Busy && !j.Touched.After(s.Taken) && !j.Mode.StepsAreJobs {
		c.Event(j, "reservation", map[string]any{"was": j.Reservation, "is": asks})
		j.RunsIn(asks)
		c.Save(j)
	}
	return slurm.MayOwn(c, s, j)
}

// candidateOf returns a queued job as a candidate. It reports false if the job can be placed nowhere, or must
// wait for a job that is not adopted yet.
func candidateOf(c *state.Core, s *state.Snapshot, j *state.Job, now int64, unread slurm.Candidate) (slurm.Candidate, bool) {
	nodes, choices, err := slurm.PlacesOf(c, s, j)
	if err != nil {
		dropPlan(c, j, err.Error())
		return slurm.Candidate{}, false
	}
	if len(nodes) == 0 { // no strategy can say why
		dropPlan(c, j, slurm.Nowhere(c, s, j))
		return slurm.Candidate{}, false
	}
	licenses, why, known := slurm.LicensesOf(c, j)
	switch {
	case why != "":
		dropPlan(c, j, why)
		return slurm.Candidate{}, false
	case !known:
		j.WaitsFor(state.Because(state.WhyLicensesUnread))
		return slurm.Candidate{}, false // it keeps its plan
	}
	cand := slurm.Candidate{Job: j, Earliest: now, Licenses: licenses, Record: &j.Record, Turn: slurm.Turn{stock.TierOf(c, &j.Record, false), j.Priority}, Nodes: nodes, Choices: choices,
		Profile: j.Profile, Rank: slurm.RankOf(c, &j.Record)}
	if mayChoose(j) {
		if cand.Molds, err = alternatives(c, j); err != nil {
			dropPlan(c, j, err.Error())
			return slurm.Candidate{}, false
		}
		cand.Profile = j.Moldable.Alternatives[cand.Molds[0]]
	}
	if unread.Record != nil && len(j.Plan) == 0 && JustSubmitted(c, s, cand.Record) && stock.MoreUrgent(unread, unaged(c, cand.Record)) < 0 {
		j.WaitsFor(state.Reason{Kind: state.WhyEarlierUnread, Job: uint32(unread.Record.ID)})
		return slurm.Candidate{}, false
	}
	if !j.Begin.IsZero() {
		cand.Earliest = c.Since(now, j.Begin.Unix())
	}
	return cand, true
}

// firstUnread returns the most urgent job that was just submitted and is not adopted yet, or a candidate
// without a record if there is none. Requests are not read in the order of submission, and a job that was
// submitted beside such a job and comes after it must not begin before it.
func firstUnread(c *state.Core, s *state.Snapshot) (first slurm.Candidate) {
	for id := range c.Coming {
		r := s.ByID[id]
		if r == nil || !JustSubmitted(c, s, r) || !IsComing(c, id) {
			continue
		}
		if cand := unaged(c, r); first.Record == nil || stock.MoreUrgent(cand, first) < 0 {
			first = cand
		}
	}
	return first
}

// unaged returns a job with the turn that Slurm gives it: a job that was just submitted has no age to count.
func unaged(c *state.Core, r *slurmctl.Job) slurm.Candidate {
	return slurm.Candidate{Record: r, Turn: slurm.Turn{stock.TierOf(c, r, false), r.Priority}}
}

// justNow is the age up to which a job counts as just submitted.
const justNow = 5 * time.Second

// JustSubmitted reports whether a job is so new that its request may still be unread. A job with a future
// submit time does not count: no job should wait until then.
func JustSubmitted(c *state.Core, s *state.Snapshot, r *slurmctl.Job) bool {
	return c.Reached(s.Taken, r.SubmitTime.Add(-justNow)) && !c.Passed(s.Taken, r.SubmitTime.Add(justNow))
}

// Behind moves jobs whose request grew while they waited behind jobs that were submitted before that. So the
// change delays no other job's planned start.
func Behind(list []slurm.Candidate) []slurm.Candidate {
	for i := len(list) - 1; i >= 0; i-- {
		cand := list[i]
		if cand.Job == nil || cand.Job.Behind.IsZero() {
			continue
		}
		last := i
		for k := i + 1; k < len(list); k++ {
			since := list[k].Record.SubmitTime
			if other := list[k].Job; other != nil {
				since = msg.Later(since, other.Behind)
			}
			if since.Before(cand.Job.Behind) {
				last = k
			}
		}
		copy(list[i:last], list[i+1:last+1])
		list[last] = cand
	}
	return list
}

// NotEligible returns why Slurm does not consider a pending job at present, or "".
func NotEligible(r *slurmctl.Job) string {
	switch {
	case r.Priority == 0:
		return "held: " + r.Reason
	case r.Reason == "Dependency", r.Reason == "DependencyNeverSatisfied":
		return "waits for another job (" + r.Reason + ")"
	}
	return ""
}

// OrderedBatches is how many batches strictly keep the order of the list. A batch is one request to a
// strategy. If two partitions that share nodes alternate in a long queue, every job would be a batch.
const OrderedBatches = 50

// Batches groups the candidates so that no job overtakes another one. A job joins the last batch that competes
// for any of its nodes if that batch has the same nodes; otherwise it opens a new batch. After OrderedBatches
// batches, far back in the queue, it joins any batch with the same nodes: these jobs move forward before their
// start comes near. A job of several partitions is a batch of its own; far back, it counts in the partition of
// its current plan.
func Batches(s *state.Snapshot, list []slurm.Candidate) []*batch {
	var all []*batch
	for _, cand := range list {
		var found *batch
		if len(all) >= OrderedBatches {
			cand = cand.Chosen(s)
		}
		for i := len(all) - 1; i >= 0; i-- {
			same := all[i].takes(&cand)
			if same {
				found = all[i]
			}
			if same || i < OrderedBatches && overlap(all[i].nodes, cand.Nodes) {
				break
			}
		}
		if found == nil {
			found = &batch{nodes: cand.Nodes, rank: cand.Rank}
			if len(all) == 0 { // most jobs are in the first batch
				found.Jobs = make([]slurm.Candidate, 0, len(list))
			}
			all = append(all, found)
		}
		found.Jobs = append(found.Jobs, cand)
	}
	return all
}

// sameNodes reports whether two lists are equal. Jobs with the same wishes share one list, and such a list is
// not compared with itself.
func sameNodes(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// overlap reports whether two ascending lists share a member.
func overlap(a, b []int) bool {
	if len(a) == 0 || len(b) == 0 || a[len(a)-1] < b[0] || b[len(b)-1] < a[0] {
		return false
	}
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// pool returns jobs on some nodes as the planner sees them, without what is busy, and those with an aim as they are placed
// again by it.
func pool(c *state.Core, s *state.Snapshot, o *msg.Occupancy, nodes []int, list []slurm.Candidate) (pool planner.Pool, aimed map[int]planner.PoolJob) {
	pool = planner.Pool{Nodes: len(nodes), Reserved: o.ReservedOn(nodes, list[0].Inside()), Jobs: make([]planner.PoolJob, 0, len(list)), Switches: slurm.SwitchesOf(c, s, nodes)}
	if list[0].Exceeds {
		pool.Reserved = append(pool.Reserved, heldByOthers(c, s, nodes, o.Origin, list[0].Record.UID)...)
	}
	spots := newSpots(s, nodes)
	for i, cand := range list {
		limit, driver := planner.ExpandLimit(1), -1
		prefer := spots.inPool(cand.Prefer)
		var was [][]int
		if cand.Job != nil {
			if cand.Job.Mode.ScriptSpansSteps {
				driver = planner.Lowest // Slurm runs the batch script there
			}
			limit = ExpandLimit(c, cand.Job)
			for _, p := range cand.Profiles() {
				limit = min(limit, msg.PadLimit(p, slurm.Margin(c), ExpandLimit(c, cand.Job)))
			}
			prefer = spots.preferred(s, cand.Job)
			if pool.Switches != nil {
				was = spots.steps(s, cand.Job.Coming())
			}
		}
		one := planner.PoolJob{
			Job: planner.Job{ID: strconv.Itoa(i), Submit: cand.Earliest - o.Origin,
				Profile: planner.Pad(cand.Profile, slurm.Margin(c)), ExpandLimit: limit},
			Driver: driver, Prefer: prefer, Was: was, Licenses: o.Licenses.Needs(cand.Licenses), Limits: limits(c, cand, 0), Others: cand.Job == nil,
		}
		one.Leaves, one.Patience = together(c, cand.Job, o.Origin)
		if cand.Job != nil && cand.Job.Mode.BringsNodes {
			one.Bring = BringSeconds + startedLate
		}
		if cand.Molds != nil {
			one.By = cand.Job.Moldable.By
			for k, p := range cand.Profiles() {
				if k > 0 {
					one.Alternatives = append(one.Alternatives, planner.Pad(p, slurm.Margin(c)))
				}
				one.AlternativeLimits = append(one.AlternativeLimits, limits(c, cand, k))
			}
		}
		if cand.Aim != planner.NoAim {
			if aimed == nil {
				aimed = map[int]planner.PoolJob{}
			}
			aimed[i] = one
			one = withoutAim(c, cand.Job, one, o.Origin)
		}
		pool.Jobs = append(pool.Jobs, one)
	}
	return pool, aimed
}

// Exceeding returns the users that have a job whose current step lasts longer than planned or, without a plan, than its
// profile says.
func Exceeding(c *state.Core) map[uint32]bool {
	users, margin := map[uint32]bool{}, int64(c.Config.Margin/time.Second)
	for _, j := range c.Active {
		unplanned := j.State == row.Running && len(j.Plan) != len(j.Profile)
		if j.Overdue != 0 || unplanned && c.ReachedSecond(c.Now.Unix(), j.Expected()+margin) {
			users[j.UID] = true
		}
	}
	return users
}

// heldByOthers returns what is held on these nodes for growths of other users' jobs than uid's. While a job of a user
// exceeds its step, the profiles of the user's queued jobs are not trusted either: they use such nodes only if
// their time limits end before, as Slurm itself would have it.
func heldByOthers(c *state.Core, s *state.Snapshot, nodes []int, origin int64, uid uint32) (all []planner.NodeBusy) {
	for _, h := range c.Ours {
		j, r := c.ByID[h.Own.Job], c.Reservations[h.Name]
		if j == nil || !j.Runs() || j.UID == uid {
			continue
		}
		for _, n := range slurm.Local(s, nodes, r.Nodes) {
			if b := (planner.NodeBusy{Node: n, Start: max(r.Start.Unix()-origin, 0), End: r.End.Unix() - origin}); b.Start < b.End {
				all = append(all, b)
			}
		}
	}
	return all
}

// spots holds the positions of the cluster's nodes in a pool.
type spots struct {
	pool []int
	at   []int  // -1: not in the pool
	seen []bool // by position; scratch
}

func newSpots(s *state.Snapshot, pool []int) *spots {
	p := &spots{pool: pool, at: slices.Repeat([]int{-1}, len(s.Nodes)), seen: make([]bool, len(pool))}
	for i, n := range pool {
		p.at[n] = i
	}
	return p
}

func (p *spots) preferred(s *state.Snapshot, j *state.Job) []int {
	plan, known := j.Coming(), &j.PlacedIn
	if len(plan) == 0 {
		return nil
	}
	if !msg.Same(known.Plan, plan) || known.Layout != s.Layout || !msg.Same(known.Pool, p.pool) && !slices.Equal(known.Pool, p.pool) {
		known.At = p.of(s, plan)
	}
	known.Plan, known.Pool, known.Layout = plan, p.pool, s.Layout
	return known.At
}

// inPool returns the positions of some of the cluster's nodes, as far as the pool has them.
func (p *spots) inPool(nodes []int) (all []int) {
	for _, n := range nodes {
		if at := p.at[n]; at >= 0 {
			all = append(all, at)
		}
	}
	return all
}

// steps returns the ascending positions of the nodes of each step.
func (p *spots) steps(s *state.Snapshot, plan []msg.PlannedStep) [][]int {
	all := make([][]int, len(plan))
	for i := range plan {
		all[i] = p.of(s, plan[i:i+1])
	}
	return all
}

// of returns the ascending positions of all nodes of some steps.
func (p *spots) of(s *state.Snapshot, steps []msg.PlannedStep) []int {
	count := 0
	for _, step := range steps {
		for k, name := range step.Nodes {
			var n int
			if k < len(step.At) && step.At[k] < len(s.Nodes) && s.Nodes[step.At[k]].Name == name {
				n = step.At[k]
			} else if i, ok := s.Index[name]; ok {
				n = i
			} else {
				continue
			}
			if i := p.at[n]; i >= 0 && !p.seen[i] {
				p.seen[i] = true
				count++
			}
		}
	}
	all := make([]int, 0, count)
	for i := 0; len(all) < count; i++ {
		if p.seen[i] {
			p.seen[i] = false
			all = append(all, i)
		}
	}
	return all
}

// startedLate is how many seconds later than planned a job may start: Slurm itself starts it then.
const startedLate = int64(MirrorDelay / time.Second)

// limits returns the time limits of a waiting job with one of its profiles, from its start or, for a chain,
// from the start of each step.
func limits(c *state.Core, cand slurm.Candidate, k int) []int64 {
	if cand.Job == nil {
		return []int64{min(slurm.Seconds(cand.Record.TimeLimit), cand.Profile[0].Duration)} // it may take nodes only later
	}
	choice := 0
	if cand.Molds != nil {
		choice = cand.Molds[k]
	} else if m := cand.Job.Moldable; m != nil {
		choice = m.Choice
	}
	if !cand.Job.Mode.StepsAreJobs {
		return []int64{slurm.Seconds(limitOnceStarted(cand.Job, cand.Record, choice, 0)) + startedLate}
	}
	limits := make([]int64, len(cand.Profiles()[k]))
	for i := range limits {
		limits[i] = LimitOfAs(c, cand.Job, i, choice) + startedLate
	}
	return limits
}

// ExpandLimit returns the job's own expand limit, or else the larger one of the site's and the current
// strategy's.
func ExpandLimit(c *state.Core, j *state.Job) planner.ExpandLimit {
	if j.ExpandLimit == 0 {
		return max(c.Config.ExpandLimit, c.Strategy.ExpandLimit)
	}
	return j.ExpandLimit
}

// dropPlan removes a job's plan and records why.
func dropPlan(c *state.Core, j *state.Job, why string) {
	j.Unfit = why
	j.WaitsFor(state.Because(state.WhyNotPlanned))
	c.StorePlan(j, nil)
}

// If an expander does not begin within ExpanderBegins, the sidecar asks for it again. It lasts for
// at least a minute. So for BringSeconds its nodes must not be reserved for others.
const (
	ExpanderBegins = 5 * time.Second
	BringSeconds   = int64((slurmctl.ShortestLimit + ExpanderBegins) / time.Second)
)

const (
	// MirrorAge excludes jobs that start at once.
	MirrorAge = 5 * time.Second
	// MirrorDelay is how much later than planned Slurm itself would start a job.
	MirrorDelay = 10 * time.Second
)
