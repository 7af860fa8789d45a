package core

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// candidate is a pending job in the order of the list: an evolving job, or a stock job of higher priority,
// which no evolving job may overtake.
type candidate struct {
	job      *job          // nil: stock
	record   *slurmctl.Job // Slurm's record
	turn     turn
	nodes    []int   // eligible
	choices  [][]int // eligible nodes by partition, if it has several; it gets one of them
	profile  planner.Profile
	molds    []int // possible alternatives of a moldable job, profile's first; nil: there is no choice
	earliest int64 // Unix second
	rank     rank
}

// batch is a list of candidates that are planned together: they share one set of eligible nodes, Slurm ends
// the same jobs for them, and no earlier batch competes for these nodes.
type batch struct {
	nodes []int
	rank  rank
	jobs  []candidate
}

// plan asks for a plan of all queued jobs around what is certain, in order of priority.
func (c *Core) plan(s *snapshot) {
	c.planning = true
	c.emit(Plan{c.problem(s)})
}

// candidates lists the jobs to plan, most urgent first.
func (c *Core) candidates(s *snapshot, now int64) []candidate {
	var list []candidate
	lowest := turn{math.MaxInt, math.MaxUint64} // turn of the last evolving job
	over, unread := c.overAccrual(s), c.firstUnread(s)
	for j := range c.each(c.active) {
		if j.State != row.Queued || !c.plannable(s, j, over[j]) {
			continue
		}
		cand, ok := c.candidateOf(s, j, now, unread)
		if !ok {
			continue
		}
		if cand.turn.compare(lowest) < 0 {
			lowest = cand.turn
		}
		list = append(list, cand)
	}
	if len(list) > 0 {
		list = append(list, c.stockCandidates(s, now, lowest)...)
	}
	slices.SortStableFunc(list, moreUrgent)
	list = c.withinShares(c.withoutHeldUp(behind(list)))
	c.admit(s, list, now)
	return list
}

// plannable reports whether a queued job can be planned now, and says why not. It sets the job's priority. The
// age of a job that is over a limit of accrual does not count (see overAccrual).
func (c *Core) plannable(s *snapshot, j *job, over bool) bool {
	if j.reason, j.unfit = (reason{}), ""; j.kept != nil {
		if c.dropPlan(j, j.kept.text); j.stillKept(c.now) {
			return false
		}
		j.kept = nil
	}
	why := notEligible(&j.record)
	c.eligibleAgain(j, why == "" && !over, s.taken)
	if j.priority = j.record.Priority; !over {
		j.priority = c.priorityOf(j, s.taken)
	}
	if why != "" {
		c.dropPlan(j, why)
		return false
	}
	if j.asked == nil {
		j.reason = because(whyRequestUnread)
		return false // it keeps its plan
	}
	if len(j.partitions()) > 1 {
		if _, known := c.rulesSince(time.Time{}); !known {
			j.reason = because(whyLimitsUnread)
			return false // it keeps its plan
		}
	}
	return true
}

// candidateOf returns a queued job as a candidate. It reports false if the job can be placed nowhere, or must
// wait for a job that is not adopted yet.
func (c *Core) candidateOf(s *snapshot, j *job, now int64, unread candidate) (candidate, bool) {
	nodes, choices, err := c.placesOf(s, j)
	if err != nil {
		c.dropPlan(j, err.Error())
		return candidate{}, false
	}
	cand := candidate{job: j, earliest: now, record: &j.record, turn: turn{c.tierOf(&j.record, false), j.priority}, nodes: nodes, choices: choices,
		profile: j.Profile, rank: c.rankOf(&j.record)}
	if j.mayChoose() {
		if cand.molds, err = c.alternatives(j); err != nil {
			c.dropPlan(j, err.Error())
			return candidate{}, false
		}
		cand.profile = j.Moldable.Alternatives[cand.molds[0]]
	}
	if unread.record != nil && len(j.plan) == 0 && justSubmitted(s, cand.record) && moreUrgent(unread, c.unaged(cand.record)) < 0 {
		j.reason = reason{kind: whyEarlierUnread, job: uint32(unread.record.ID)}
		return candidate{}, false
	}
	if !j.Begin.IsZero() {
		cand.earliest = max(now, j.Begin.Unix())
	}
	return cand, true
}

// firstUnread returns the most urgent job that was just submitted and is not adopted yet, or a candidate
// without a record if there is none. Requests are not read in the order of submission, and a job that was
// submitted beside such a job and comes after it must not begin before it.
func (c *Core) firstUnread(s *snapshot) (first candidate) {
	for id := range c.coming {
		r := s.byID[id]
		if r == nil || !justSubmitted(s, r) || !c.isComing(id) {
			continue
		}
		if cand := c.unaged(r); first.record == nil || moreUrgent(cand, first) < 0 {
			first = cand
		}
	}
	return first
}

// unaged returns a job with the turn that Slurm gives it: a job that was just submitted has no age to count.
func (c *Core) unaged(r *slurmctl.Job) candidate {
	return candidate{record: r, turn: turn{c.tierOf(r, false), r.Priority}}
}

// justSubmitted reports whether a job is so new that its request may still be unread. A job with a future
// submit time does not count: no job should wait until then.
func justSubmitted(s *snapshot, r *slurmctl.Job) bool {
	return s.taken.Sub(r.SubmitTime).Abs() <= 5*time.Second
}

// behind moves jobs whose request grew while they waited behind jobs that were submitted before that. So the
// change delays no other job's planned start.
func behind(list []candidate) []candidate {
	for i := len(list) - 1; i >= 0; i-- {
		cand := list[i]
		if cand.job == nil || cand.job.Behind.IsZero() {
			continue
		}
		last := i
		for k := i + 1; k < len(list); k++ {
			since := list[k].record.SubmitTime
			if other := list[k].job; other != nil {
				since = Later(since, other.Behind)
			}
			if since.Before(cand.job.Behind) {
				last = k
			}
		}
		copy(list[i:last], list[i+1:last+1])
		list[last] = cand
	}
	return list
}

// moreUrgent orders candidates as Slurm does: by their turn, then by submission.
func moreUrgent(a, b candidate) int {
	return cmp.Or(b.turn.compare(a.turn), a.record.SubmitTime.Compare(b.record.SubmitTime), cmp.Compare(a.record.ID, b.record.ID))
}

// stockCandidates lists pending stock jobs that Slurm would start before the last of the evolving jobs.
func (c *Core) stockCandidates(s *snapshot, now int64, lowest turn) []candidate {
	waiting := make([]candidate, 0, min(c.cfg.StockJobs, len(s.jobs)))
	for i := range s.jobs {
		r := &s.jobs[i]
		if r.State != slurmctl.Pending || r.Reservation != "" || !queues(r) {
			continue
		}
		its := turn{c.tierOf(r, true), r.Priority}
		if its.compare(lowest) < 0 || c.owner(r.ID) != nil || c.isExpander(r) {
			continue
		}
		waiting = append(waiting, candidate{record: r, turn: its})
	}
	slices.SortStableFunc(waiting, moreUrgent)
	list := make([]candidate, 0, min(len(waiting), c.cfg.StockJobs))
	for _, w := range waiting {
		if len(list) == c.cfg.StockJobs {
			break
		}
		r, its := w.record, w.turn
		nodes, err := s.eligible(r, nil)
		if err != nil || len(nodes) == 0 {
			continue
		}
		limit := min(seconds(r.TimeLimit)+untilLook, planner.MaxDuration)
		count := r.NumNodes
		if !r.Exclusive && count == 1 { // it shares its node: count whole nodes by CPUs
			per := max(s.nodes[nodes[0]].CPUs, 1)
			count = (r.NumCPUs*r.ArrayTasks + per - 1) / per
		} else {
			count *= max(r.ArrayTasks, 1)
		}
		count = min(max(count, 1), len(nodes))
		list = append(list, candidate{record: r, turn: its, nodes: nodes, profile: planner.Profile{{Duration: max(limit, 1), Nodes: count}}, earliest: now, rank: c.rankOf(r)})
	}
	return list
}

// untilLook is how many seconds later than planned Slurm may start a stock job. It does so when it next looks
// at its queue, with a plan and holds that are a few seconds old by then. If the plan had the next job begin
// right where the stock job would end, that job's hold would keep the stock job from starting, and would move
// on without end.
const untilLook = 30

// queues reports whether a pending job waits only for its turn or for nodes, and not for something outside of
// the plan (a begin time, another job, a limit of its account).
func queues(r *slurmctl.Job) bool {
	switch r.Reason {
	case "None", "Priority", "Resources":
		return r.Priority > 0
	}
	return r.Priority > 0 && (strings.HasPrefix(r.Reason, "ReqNodeNotAvail") || strings.HasPrefix(r.Reason, "Nodes required for job"))
}

// seconds converts a time limit to whole seconds for the planner.
func seconds(limit time.Duration) int64 {
	if s := int64(limit / time.Second); limit != slurmctl.Unlimited && s < planner.MaxDuration {
		return s
	}
	return planner.MaxDuration
}

// notEligible returns why Slurm does not consider a pending job at present, or "".
func notEligible(r *slurmctl.Job) string {
	switch {
	case r.Priority == 0:
		return "held: " + r.Reason
	case r.Reason == "Dependency", r.Reason == "DependencyNeverSatisfied":
		return "waits for another job (" + r.Reason + ")"
	}
	return ""
}

// orderedBatches is how many batches strictly keep the order of the list. A batch is one request to a
// strategy. If two partitions that share nodes alternate in a long queue, every job would be a batch.
const orderedBatches = 50

// batches groups the candidates so that no job overtakes another one. A job joins the last batch that competes
// for any of its nodes if that batch has the same nodes; otherwise it opens a new batch. After orderedBatches
// batches, far back in the queue, it joins any batch with the same nodes: these jobs move forward before their
// start comes near. A job of several partitions is a batch of its own; far back, it counts in the partition of
// its current plan.
func batches(s *snapshot, list []candidate) []*batch {
	var all []*batch
	for _, cand := range list {
		var found *batch
		if len(all) >= orderedBatches {
			cand = cand.chosen(s)
		}
		for i := len(all) - 1; i >= 0; i-- {
			same := cand.choices == nil && all[i].jobs[0].choices == nil && sameNodes(all[i].nodes, cand.nodes) && all[i].rank == cand.rank
			if same {
				found = all[i]
			}
			if same || i < orderedBatches && overlap(all[i].nodes, cand.nodes) {
				break
			}
		}
		if found == nil {
			found = &batch{nodes: cand.nodes, rank: cand.rank}
			if len(all) == 0 { // most jobs are in the first batch
				found.jobs = make([]candidate, 0, len(list))
			}
			all = append(all, found)
		}
		found.jobs = append(found.jobs, cand)
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

// margin is how much longer released nodes count as busy, in seconds.
func (c *Core) margin() int64 { return int64(c.cfg.Margin / time.Second) }

// pool returns jobs on some nodes as the planner sees them, without what is busy.
func (c *Core) pool(s *snapshot, o *occupancy, nodes []int, list []candidate) planner.Pool {
	pool := planner.Pool{Nodes: len(nodes), Reserved: o.reservedOn(nodes), Jobs: make([]planner.PoolJob, 0, len(list))}
	spots := newSpots(s, nodes)
	for i, cand := range list {
		limit, driver := planner.ExpandLimit(1), -1
		var prefer []int
		if cand.job != nil {
			if cand.job.mode.scriptSpansSteps {
				driver = planner.Lowest // Slurm runs the batch script there
			}
			limit = c.expandLimit(cand.job)
			for _, p := range cand.profiles() {
				limit = min(limit, padLimit(p, c.margin(), c.expandLimit(cand.job)))
			}
			prefer = spots.preferred(s, cand.job)
		}
		one := planner.PoolJob{
			Job: planner.Job{ID: strconv.Itoa(i), Submit: cand.earliest - o.origin,
				Profile: planner.Pad(cand.profile, c.margin()), ExpandLimit: limit},
			Driver: driver, Prefer: prefer, Limits: c.limits(cand, 0), Others: cand.job == nil,
		}
		if cand.job != nil && cand.job.mode.bringsNodes {
			one.Bring = bringSeconds + startedLate
		}
		if cand.molds != nil {
			one.By = cand.job.Moldable.By
			for k, p := range cand.profiles() {
				if k > 0 {
					one.Alternatives = append(one.Alternatives, planner.Pad(p, c.margin()))
				}
				one.AlternativeLimits = append(one.AlternativeLimits, c.limits(cand, k))
			}
		}
		pool.Jobs = append(pool.Jobs, one)
	}
	return pool
}

// spots holds the positions of the cluster's nodes in a pool.
type spots struct {
	pool []int
	at   []int  // -1: not in the pool
	seen []bool // by position; scratch
}

func newSpots(s *snapshot, pool []int) *spots {
	p := &spots{pool: pool, at: slices.Repeat([]int{-1}, len(s.nodes)), seen: make([]bool, len(pool))}
	for i, n := range pool {
		p.at[n] = i
	}
	return p
}

// placedIn caches where in a pool the nodes of a job's current and coming steps are. It is valid while the
// plan stays, and must not be modified.
type placedIn struct {
	plan   []plannedStep
	pool   []int
	layout int // layout of the snapshot
	at     []int
}

func (p *spots) preferred(s *snapshot, j *job) []int {
	plan, known := j.coming(), &j.placedIn
	if len(plan) == 0 {
		return nil
	}
	if !same(known.plan, plan) || known.layout != s.layout || !same(known.pool, p.pool) && !slices.Equal(known.pool, p.pool) {
		known.at = p.of(s, plan)
	}
	known.plan, known.pool, known.layout = plan, p.pool, s.layout
	return known.at
}

// of returns the ascending positions of all nodes of some steps.
func (p *spots) of(s *snapshot, steps []plannedStep) []int {
	count := 0
	for _, step := range steps {
		for k, name := range step.nodes {
			var n int
			if k < len(step.at) && step.at[k] < len(s.nodes) && s.nodes[step.at[k]].Name == name {
				n = step.at[k]
			} else if i, ok := s.index[name]; ok {
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
const startedLate = int64(mirrorDelay / time.Second)

// limits returns the time limits of a waiting job with one of its profiles, from its start or, for a chain,
// from the start of each step.
func (c *Core) limits(cand candidate, k int) []int64 {
	if cand.job == nil {
		return []int64{seconds(cand.record.TimeLimit)}
	}
	choice := 0
	if cand.molds != nil {
		choice = cand.molds[k]
	} else if m := cand.job.Moldable; m != nil {
		choice = m.Choice
	}
	if !cand.job.mode.stepsAreJobs {
		return []int64{seconds(cand.job.limitOnceStarted(cand.record, choice, 0)) + startedLate}
	}
	limits := make([]int64, len(cand.profiles()[k]))
	for i := range limits {
		limits[i] = c.limitOfAs(cand.job, i, choice) + startedLate
	}
	return limits
}

// profiles returns the possible profiles of the candidate, which gets one of them.
func (cand candidate) profiles() []planner.Profile {
	if cand.molds == nil {
		return []planner.Profile{cand.profile}
	}
	all := make([]planner.Profile, len(cand.molds))
	for i, k := range cand.molds {
		all[i] = cand.job.Moldable.Alternatives[k]
	}
	return all
}

// padLimit returns the expand limit for the padded profile that keeps the requested profile within its own
// limit. Padding makes some steps longer, and a multiple of them even more so.
func padLimit(p planner.Profile, margin int64, limit planner.ExpandLimit) planner.ExpandLimit {
	if limit == planner.Infinite || limit <= 1 {
		return limit
	}
	safe := limit
	for i, step := range planner.Pad(p, margin) {
		grown := step.Duration - p[i].Duration
		safe = min(safe, planner.ExpandLimit(float64(limit.Stretch(p[i].Duration)+grown)/float64(step.Duration)))
	}
	return max(safe, 1)
}

// expandLimit returns the job's own expand limit, or else the larger one of the site's and the current
// strategy's.
func (c *Core) expandLimit(j *job) planner.ExpandLimit {
	if j.ExpandLimit == 0 {
		return max(c.cfg.ExpandLimit, c.strategy.ExpandLimit)
	}
	return j.ExpandLimit
}

// storePlan sets a job's plan, and marks it for saving if it changed.
func (c *Core) storePlan(j *job, plan []plannedStep) {
	if slices.EqualFunc(j.plan, plan, func(a, b plannedStep) bool {
		return a.start == b.start && a.end == b.end && (same(a.nodes, b.nodes) || slices.Equal(a.nodes, b.nodes))
	}) {
		return
	}
	j.plan = plan
	c.unsaved[j] = true
	c.tries.changed++
}

// dropPlan removes a job's plan and records why.
func (c *Core) dropPlan(j *job, why string) {
	j.unfit, j.reason = why, saying(whyNotPlanned, why)
	c.storePlan(j, nil)
}
