package core

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// tried holds the result that a change would have.
type tried struct {
	*target         // with the plan; for a refused change, how it would be possible, if at all
	refused  string // what prevents it; "": nothing
	earliest int64  // Unix second at which the next step could begin; 0: never, as things are
}

// tryChange plans a job as changed. Only this job may move; all others keep what they were promised: running
// jobs their coming steps, queued jobs their planned starts, and stock jobs of higher priority their expected
// start. If a growth may be smaller, tryChange finds the largest size that fits.
func (c *Core) tryChange(s *snapshot, j *job, t *target) tried {
	if _, err := c.rewrittenAs(j, t); err != nil {
		t.plan = nil
		return tried{target: t, refused: err.Error()}
	}
	around := c.aroundOf(s, j)
	most := min(t.Profile[t.grown].Nodes, len(s.nodes)) // no more nodes than the cluster has
	if t.grown == 0 || t.fewest >= most {
		return c.tryOne(s, j, t, around)
	}
	var sizes []int // sizes that it may have
	for n := t.fewest; n <= most; n++ {
		if j.Malleable == nil || j.Malleable.Sizes.Has(n) {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		return c.tryOne(s, j, t, around)
	}
	fits := map[int]tried{}
	try := func(nodes int) tried {
		values, copied := *t.job.Job, *t.job
		one := *t
		one.job = &copied
		one.job.Job = &values
		one.Profile = slices.Clone(t.Profile)
		one.Profile[t.grown].Nodes = nodes
		fits[nodes] = c.tryOne(s, j, &one, around)
		return fits[nodes]
	}
	// the first size that is too large
	n := sort.Search(len(sizes), func(i int) bool { return try(sizes[i]).refused != "" })
	return fits[sizes[max(n-1, 0)]]
}

// tryOne does what tryChange does, for one size.
func (c *Core) tryOne(s *snapshot, j *job, t *target, around func(origin int64) *occupancy) tried {
	if why := c.neverAs(s, t); why != "" {
		t.plan = nil
		return tried{target: t, refused: why}
	}
	if !t.runs() {
		return c.tryQueued(s, t)
	}
	now := s.taken.Unix()
	f := fitting{around: around, strict: true, wait: t.wait}
	r := c.fitSafely(s, j, t, now, f, false)
	if r.unfit == "" {
		t.plan = r.plan
		return tried{target: t, refused: c.beyondLimit(s, t)}
	}
	t.plan = nil
	later := c.fitSafely(s, j, t, now, f, true)
	if later.unfit != "" {
		return tried{target: t, refused: "it cannot be had as things are: " + later.unfit}
	}
	t.plan = later.plan
	why := c.inTheWay(s, t, around(now), now)
	if over := c.beyondLimit(s, t); over != "" {
		return tried{target: t, refused: why + "; and " + over}
	}
	return tried{target: t, refused: why, earliest: later.plan[t.Step].start}
}

// fitStrictly does what fitRest does, but rejects a plan that takes a node from others.
func (c *Core) fitStrictly(s *snapshot, j *job, t *target, now int64, f fitting, beyond bool) rest {
	r := c.fitRest(s, t.job, now, f, beyond)
	if r.unfit != "" {
		return r
	}
	o := f.around(now)
	for k := t.Step - 1; k < len(r.plan); k++ {
		step := r.plan[k]
		start := max(step.start, now)
		if k == t.Step-1 { // the nodes that it has now were its own
			if start = now; len(j.plan) >= j.Step {
				start = max(start, j.plan[j.Step-1].end)
			}
		}
		for _, name := range step.nodes {
			n, ok := s.index[name]
			if !ok {
				continue
			}
			for _, b := range o.claimed(slices.Clone(o.busy[n]), []int{n}, c.rankOf(&j.record)) {
				if b.Start+o.origin < step.end && start < b.End+o.origin && !(b.Start == 0 && slices.Contains(j.nodes(), name)) {
					return rest{unfit: fmt.Sprintf("node %s, which it has, is promised to others from %s on", name, c.clockText(time.Unix(max(b.Start+o.origin, now), 0)))}
				}
			}
		}
	}
	return r
}

// aroundOf returns what is certain without a running job whose request changes, if all other jobs keep what
// they were promised.
func (c *Core) aroundOf(s *snapshot, j *job) func(origin int64) *occupancy {
	known := map[int64]*occupancy{}
	return func(origin int64) *occupancy {
		if o := known[origin]; o != nil {
			return o.clone()
		}
		o, all := c.occupied(s, origin, j), c.occupied(s, origin, nil)
		list := append(c.queuedAsPlanned(s), c.stockCandidates(s, s.taken.Unix(), turn{c.tierOf(&j.record, false), j.priority})...)
		slices.SortStableFunc(list, moreUrgent)
		for _, some := range batches(s, list) {
			b := c.problemBatch(s, all, some)
			plans, err := b.plan(all, &b.places[0], true, inOrder{fixedOnly})
			for i, cand := range some.jobs {
				if err == nil && (cand.job == nil || plans[i].Unfit == "" && plans[i].Start+origin <= cand.earliest+overrunQuantum) {
					o.take(plans[i].nodes, []planner.Planned{plans[i].Planned})
				} else if cand.job != nil {
					c.addPromises(o, s, cand.job, s.taken.Unix())
				}
			}
		}
		known[origin] = o
		return o.clone()
	}
}

// queuedAsPlanned lists the queued jobs with a plan, to start when the plan says. Each starts no later than
// that, possibly on other nodes. They are planned together with the stock jobs. That is much faster than
// planning the stock jobs around the planned nodes of each queued job.
func (c *Core) queuedAsPlanned(s *snapshot) (list []candidate) {
	for _, j := range c.active {
		if j.State != row.Queued || len(j.plan) == 0 {
			continue
		}
		nodes, choices, err := c.placesOf(s, j)
		if err != nil {
			continue
		}
		cand := candidate{job: j, record: &j.record, turn: turn{c.tierOf(&j.record, false), j.priority}, nodes: nodes, choices: choices,
			profile: j.Profile, earliest: j.plan[0].start, rank: c.rankOf(&j.record)}
		list = append(list, cand.chosen(s))
	}
	return list
}

// inOrder plans one job after the other, each as early as possible.
type inOrder struct{ planner.Strategy }

func (inOrder) Rigid() bool             { return false }
func (inOrder) Pin([]planner.Placement) {}

// tryQueued plans a waiting job at its position in the queue if that delays no other planned start, or else
// behind all other jobs.
func (c *Core) tryQueued(s *snapshot, t *target) tried {
	now := s.taken.Unix()
	list := c.candidates(s, now)
	at := slices.IndexFunc(list, func(cand candidate) bool { return cand.job != nil && cand.job.SlurmID == t.SlurmID })
	if at < 0 {
		t.plan = nil
		return tried{target: t} // planned once it is eligible
	}
	cand := &list[at]
	record := t.record
	if need := c.limitNeeded(t.job); record.TimeLimit != slurmctl.Unlimited {
		record.TimeLimit = max(record.TimeLimit, need)
	}
	cand.job, cand.record, cand.profile, cand.molds = t.job, &record, t.Profile, nil
	var err error
	if cand.nodes, cand.choices, err = c.placesOf(s, t.job); err != nil {
		t.plan = nil
		return tried{target: t, refused: err.Error()}
	}
	moved := false
	take := func(planned Planned) (unfit string) {
		t.plan = nil
		for _, one := range planned.Jobs {
			if other := c.byID[one.Job]; one.Job != t.id() {
				moved = moved || other != nil && len(other.plan) > 0 && (one.Unfit != "" || one.Steps[0].Start > other.plan[0].start+overrunQuantum)
				continue
			}
			unfit = one.Unfit
			for _, step := range one.Steps {
				t.plan = append(t.plan, plannedStep{start: step.Start, end: step.End, nodes: step.Nodes, at: step.at})
			}
		}
		return unfit
	}
	if unfit := take(c.problemOf(s, c.occupied(s, now, nil), list).Plan(inOrder{fixedOnly})); unfit == "" && !moved {
		return tried{target: t}
	}
	t.behind, t.Behind = true, c.now
	return tried{target: t, refused: take(c.problemOf(s, c.occupied(s, now, nil), behind(list)).Plan(inOrder{fixedOnly}))}
}

// neverAs returns why the changed job can never run, or "".
func (c *Core) neverAs(s *snapshot, t *target) string {
	if err := t.Profile.Validate(); err != nil {
		return err.Error()
	}
	coming := t.Profile[max(t.Step-1, 0):]
	peak := coming.Peak()
	if t.Claim > 0 && peak > t.Claim {
		return fmt.Sprintf("it would have %d nodes, and its claim is %d (--max-nodes)", peak, t.Claim)
	}
	if eligible := mostEligible(s, t, peak); peak > eligible {
		return fmt.Sprintf("it would have %d nodes, and may have %d at most (nodes of its partition that suit it, and MaxNodes)", peak, eligible)
	}
	facts := c.factsOf(t.job)
	if why := request.Resized(t.Profile); why != "" {
		if fixed := facts.whyFixed(); fixed != "" {
			return why + ": " + fixed
		}
	}
	if why := request.ResizedTwice(t.Profile); why != "" && facts.resizesOnce {
		return why + ", " + c.onceWords()
	}
	if !t.runs() {
		if why := c.neverStarts(s, t); why != "" {
			return why
		}
	}
	if c.rules.limits != nil {
		if never := c.never(c.rules.limits, &t.record, coming, false, t.asked); len(never) > 0 {
			return strings.Join(never, "; ")
		}
	}
	return ""
}

// mostEligible returns the most nodes that the changed job may have in a partition, up to its peak or more.
func mostEligible(s *snapshot, t *target, peak int) (most int) {
	for _, name := range t.partitions() {
		if t.runs() && name != partitionOf(t.job) {
			continue
		}
		p, known := s.partitions[name]
		if nodes, err := s.eligible(inPartition(&t.record, name), t.gres); err == nil && (!known || p.MaxNodes == 0 || p.MaxNodes >= peak) {
			most = max(most, len(nodes))
		} else if known && p.MaxNodes > 0 {
			most = max(most, min(p.MaxNodes, len(nodes)))
		}
	}
	return most
}

// neverStarts returns why the changed waiting job can never start, or "".
func (c *Core) neverStarts(s *snapshot, t *target) string {
	if n := t.Profile[0].Nodes; n != t.record.NumNodes && len(t.gres) > 0 {
		return fmt.Sprintf("its first step would have %d nodes in place of %d, and it asks for generic resources: cancel it and submit another", n, t.record.NumNodes)
	}
	longest, why := s.longestLimit(&t.record, c.rules.limits)
	if need := c.limitNeeded(t.job); longest != slurmctl.Unlimited && need > longest {
		return fmt.Sprintf("it would need a time limit of %v, and %s allows %v", need, why, longest)
	}
	return ""
}

// limitNeeded returns the time limit that a waiting job needs, calculated as in evosbatch.
func (c *Core) limitNeeded(j *job) time.Duration {
	limit := c.expandLimit(j)
	if limit == planner.Infinite {
		limit = 2
	}
	total := int64(time.Minute / time.Second)
	for _, step := range j.Profile {
		total = min(total+min(limit.Stretch(step.Duration), planner.MaxDuration), planner.MaxDuration)
	}
	return time.Duration((total+59)/60) * time.Minute
}

// beyondLimit returns why a running job's time limit cannot be as long as its plan, or "".
func (c *Core) beyondLimit(s *snapshot, t *target) string {
	r := &t.record
	if r.TimeLimit == slurmctl.Unlimited || r.EndTime.IsZero() {
		return ""
	}
	end := time.Unix(t.plan[len(t.plan)-1].end, 0)
	longest, why := s.longestLimit(r, c.rules.limits)
	if _, latest := longerLimit(r, end, longest); latest.Before(end) {
		return fmt.Sprintf("it would end at %s, and its time limit can be no later than %s (%s)", c.clockText(end), c.clockText(latest), why)
	}
	return ""
}

// inTheWay describes what uses the nodes at the time at which a delayed step was wanted.
func (c *Core) inTheWay(s *snapshot, t *target, o *occupancy, now int64) string {
	wanted := max(t.expected(), now)
	if t.State == row.Waiting {
		wanted = now
	}
	for k := t.Step; k < len(t.plan); k++ {
		lasts := t.Profile[k].Duration
		if t.plan[k].start > wanted+1 || k == len(t.plan)-1 {
			return c.whoHas(s, t, o, k, wanted, wanted+lasts)
		}
		wanted += lasts
	}
	return "it cannot be had"
}

// whoHas describes what uses the nodes that step k of a job may have, from start to end.
func (c *Core) whoHas(s *snapshot, t *target, o *occupancy, k int, start, end int64) string {
	pool, _ := s.eligible(&t.record, t.gres)
	mine := setOf(t.nodes())
	free, taken := 0, set{}
	for _, n := range pool {
		name := s.nodes[n].Name
		busy := o.claimed(slices.Clone(o.busy[n]), []int{n}, c.rankOf(&t.record))
		used := slices.ContainsFunc(append(busy, o.reserved[n]...), func(b planner.NodeBusy) bool {
			return b.Start+o.origin < end && start < b.End+o.origin
		})
		if used && !mine[name] {
			taken[name] = true
		} else {
			free++
		}
	}
	text := fmt.Sprintf("step %d wants %d nodes at %s, and %d are free from then on for as long", k+1, t.Profile[k].Nodes, c.clockText(time.Unix(start, 0)), free)
	if who := c.users(s, t.job, taken, start, end); len(who) > 0 {
		text += "; in the way: " + strings.Join(who, ", ")
	}
	return text
}

// mostNamed bounds how many jobs a message names as being in the way.
const mostNamed = 5

// users returns what uses some nodes, as far as the job's user may know.
func (c *Core) users(s *snapshot, j *job, nodes set, start, end int64) []string {
	var who []string
	others, more := false, 0
	for _, user := range c.userJobs(s, j, nodes, start, end) {
		switch {
		case user.uid != j.UID && c.reading() == api.OwnJobs:
			others = true
		case len(who) >= mostNamed:
			more++
		default:
			who = append(who, user.text)
		}
	}
	if more > 0 {
		who = append(who, fmt.Sprintf("%d more", more))
	}
	if others {
		who = append(who, "others' jobs")
	}
	for _, name := range sortedKeys(s.reservations) {
		r := s.reservations[name]
		if _, ours := parseHold(r); !ours && r.Start.Unix() < end && start < r.End.Unix() && nodes.any(r.Nodes) {
			who = append(who, "reservation "+name)
		}
	}
	if down := s.unusable(nodes); down > 0 {
		who = append(who, fmt.Sprintf("%d nodes that cannot be used", down))
	}
	if len(who) == 0 {
		who = append(who, "pending jobs of higher priority")
	}
	return who
}

// userJob holds a job that uses nodes, in words, and whose it is.
type userJob struct {
	uid  uint32
	text string
}

// userJobs lists the other jobs that use some nodes, or are planned there.
func (c *Core) userJobs(s *snapshot, j *job, nodes set, start, end int64) (all []userJob) {
	for i := range s.jobs {
		r := &s.jobs[i]
		if c.owner(r.ID) == nil && nodes.any(r.NodeList) && c.releases(r, s.taken.Unix()) > start {
			all = append(all, userJob{r.UID, fmt.Sprintf("job %d", r.ID)})
		}
	}
	for _, other := range c.active {
		if other.SlurmID == j.SlurmID {
			continue
		}
		if slices.ContainsFunc(other.coming(), func(p plannedStep) bool { return p.start < end && start < p.end && nodes.any(p.nodes) }) {
			text := fmt.Sprintf("job %d", other.SlurmID)
			if other.State == row.Queued {
				text += " (planned)"
			}
			all = append(all, userJob{other.UID, text})
		}
	}
	return all
}

// unusable counts the nodes that cannot be used.
func (s *snapshot) unusable(nodes set) (n int) {
	for name := range nodes {
		if i, ok := s.index[name]; ok && !s.nodes[i].Usable() {
			n++
		}
	}
	return n
}

// rewrittenAs returns the comment of a job after a change.
func (c *Core) rewrittenAs(j *job, t *target) (string, error) {
	one := *t.job
	values := *t.job.Job
	values.Changes = []row.Change{{ID: "ffffffffffffffff"}}
	one.Job, one.record = &values, j.record
	return c.rewritten(&one)
}
