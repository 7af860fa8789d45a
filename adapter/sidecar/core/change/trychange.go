package change

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TryChange plans a job as changed. Only this job may move; all others keep what they were promised: running
// jobs their coming steps, queued jobs their planned starts, and stock jobs of higher priority their expected
// start. If a growth may be smaller, TryChange finds the largest size that fits.
func TryChange(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target) state.TriedTarget {
	if _, err := rewrittenAs(c, j, t); err != nil {
		t.Plan = nil
		return state.TriedTarget{Target: t, Refused: err.Error()}
	}
	around := refit.AroundOf(c, s, j, nil)
	most := t.Profile[t.Grown].Nodes
	if t.Grown == 0 || t.Fewest >= most {
		return tryOne(c, s, j, t, around)
	}
	var sizes []int // sizes that it may have
	for n := t.Fewest; n <= most; n++ {
		if j.Malleable == nil || j.Malleable.Sizes.Has(n) {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		return tryOne(c, s, j, t, around)
	}
	fits := map[int]state.TriedTarget{}
	try := func(nodes int) state.TriedTarget {
		values, copied := *t.Job.Job, *t.Job
		one := *t
		one.Job = &copied
		one.Job.Job = &values
		one.Profile = slices.Clone(t.Profile)
		one.Profile[t.Grown].Nodes = nodes
		fits[nodes] = tryOne(c, s, j, &one, around)
		return fits[nodes]
	}
	// the first size that is too large
	n := sort.Search(len(sizes), func(i int) bool { return try(sizes[i]).Refused != "" })
	return fits[sizes[max(n-1, 0)]]
}

// tryOne does what TryChange does, for one size.
func tryOne(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target, around func(origin int64) *msg.Occupancy) state.TriedTarget {
	if why := neverAs(c, s, t); why != "" {
		t.Plan = nil
		return state.TriedTarget{Target: t, Refused: why}
	}
	if !t.Runs() {
		return tryQueued(c, s, t)
	}
	now := s.Taken.Unix()
	f := refit.Fitting{Around: around, Strict: true, Wait: t.Wait}
	r := refit.FitSafely(c, s, j, t, now, f, false)
	if r.Unfit == "" {
		t.Plan = r.Plan
		return state.TriedTarget{Target: t, Refused: beyondLimit(c, s, t)}
	}
	postponed := ""
	if t.Plan = nil; t.Grown > 0 && c.Config.GrowDelay > 0 {
		if postponed = postponing(c, s, j, t); t.Plan != nil {
			return state.TriedTarget{Target: t, Refused: beyondLimit(c, s, t)}
		}
	}
	later := refit.FitSafely(c, s, j, t, now, f, true)
	if later.Unfit != "" {
		return state.TriedTarget{Target: t, Refused: "it cannot be had as things are: " + slurm.OutsideText(c, s, t.Job, later.Unfit) + postponed}
	}
	t.Plan = later.Plan
	why := inTheWay(c, s, t, around(now), now) + postponed
	if over := beyondLimit(c, s, t); over != "" {
		return state.TriedTarget{Target: t, Refused: why + "; and " + over}
	}
	return state.TriedTarget{Target: t, Refused: why, Earliest: later.Plan[t.Step].Start}
}

// tryQueued plans a waiting job at its position in the queue if that delays no other planned start, or else
// behind all other jobs.
func tryQueued(c *state.Core, s *state.Snapshot, t *state.Target) state.TriedTarget {
	now := s.Taken.Unix()
	list := plan.Candidates(c, s, now)
	at := slices.IndexFunc(list, func(cand slurm.Candidate) bool { return cand.Job != nil && cand.Job.SlurmID == t.SlurmID })
	if at < 0 {
		t.Plan = nil
		return state.TriedTarget{Target: t} // planned once it is eligible
	}
	cand := &list[at]
	record := t.Record
	if need := act.LimitNeeded(c, t.Job); record.TimeLimit != slurmctl.Unlimited {
		record.TimeLimit = max(record.TimeLimit, need)
	}
	cand.Job, cand.Record, cand.Profile, cand.Molds = t.Job, &record, t.Profile, nil
	var err error
	if cand.Nodes, cand.Choices, err = slurm.PlacesOf(c, s, t.Job); err != nil {
		t.Plan = nil
		return state.TriedTarget{Target: t, Refused: err.Error()}
	}
	moved := false
	take := func(planned msg.Planned) (unfit string) {
		t.Plan = nil
		for _, one := range planned.Jobs {
			if other := c.ByID[one.Job]; one.Job != t.BaseID() {
				moved = moved || other != nil && len(other.Plan) > 0 && (one.Unfit != "" || one.Steps[0].Start > other.Plan[0].Start+refit.OverrunQuantum)
				continue
			}
			unfit = one.Unfit
			for _, step := range one.Steps {
				t.Plan = append(t.Plan, msg.PlannedStep{Start: step.Start, End: step.End, Nodes: step.Nodes, At: step.At})
			}
		}
		return unfit
	}
	if unfit := take(plan.ProblemOf(c, s, refit.Occupied(c, s, now, nil), list).Plan(refit.InOrder{refit.FixedOnly})); unfit == "" && !moved {
		return state.TriedTarget{Target: t}
	}
	t.GoesBehind, t.Behind = true, c.Now
	unfit := take(plan.ProblemOf(c, s, refit.Occupied(c, s, now, nil), plan.Behind(list)).Plan(refit.InOrder{refit.FixedOnly}))
	if unfit != "" {
		unfit = slurm.OutsideText(c, s, t.Job, unfit)
	}
	return state.TriedTarget{Target: t, Refused: unfit}
}

// neverAs returns why the changed job can never run, or "".
func neverAs(c *state.Core, s *state.Snapshot, t *state.Target) string {
	if err := t.Profile.Validate(); err != nil {
		return err.Error()
	}
	coming := t.Profile[max(t.Step-1, 0):]
	peak := coming.Peak()
	if t.Claim > 0 && peak > t.Claim {
		return fmt.Sprintf("it would have %d nodes, and its claim is %d (--max-nodes)", peak, t.Claim)
	}
	if eligible := mostEligible(c, s, t, peak); peak > eligible {
		return slurm.OutsideText(c, s, t.Job, fmt.Sprintf("it would have %d nodes, and may have %d at most (nodes of its partition that suit it, and MaxNodes)", peak, eligible))
	}
	facts := state.FactsOf(c, t.Job)
	if why := request.Resized(t.Profile); why != "" {
		if fixed := facts.WhyFixed(); fixed != "" {
			return why + ": " + fixed
		}
	}
	if why := request.ResizedTwice(t.Profile); why != "" && facts.ResizesOnce {
		return why + ", " + slurm.OnceWords(c)
	}
	if !t.Runs() {
		if why := neverStarts(c, s, t); why != "" {
			return why
		}
	}
	if c.Rules.Limits != nil {
		if never := slurm.Never(c, c.Rules.Limits, &t.Record, coming, false, t.Asked); len(never) > 0 {
			return strings.Join(never, "; ")
		}
	}
	return ""
}

// mostEligible returns the most nodes that the changed job may have in a partition, up to its peak or more.
func mostEligible(c *state.Core, s *state.Snapshot, t *state.Target, peak int) (most int) {
	for _, name := range slurm.Partitions(t.Job) {
		if t.Runs() && name != slurm.PartitionOf(t.Job) {
			continue
		}
		p, known := s.Partitions[name]
		nodes := slurm.MostTogether(s, slurm.InPartition(&t.Record, name), t.GRES)
		if t.Runs() {
			beside, _ := slurm.EligibleBeside(c, s, t.Job)
			nodes = len(beside)
		}
		if known && p.MaxNodes > 0 && p.MaxNodes < peak {
			nodes = min(p.MaxNodes, nodes)
		}
		most = max(most, nodes)
	}
	return most
}

// neverStarts returns why the changed waiting job can never start, or "".
func neverStarts(c *state.Core, s *state.Snapshot, t *state.Target) string {
	if n := t.Profile[0].Nodes; n != t.Record.NumNodes && len(t.GRES) > 0 {
		return fmt.Sprintf("its first step would have %d nodes in place of %d, and it asks for generic resources: cancel it and submit another", n, t.Record.NumNodes)
	}
	longest, why := act.LongestLimit(s, &t.Record, c.Rules.Limits)
	if need := act.LimitNeeded(c, t.Job); longest != slurmctl.Unlimited && need > longest {
		return fmt.Sprintf("it would need a time limit of %v, and %s allows %v", need, why, longest)
	}
	return ""
}

// beyondLimit returns why a running job's time limit cannot be as long as its plan, or "".
func beyondLimit(c *state.Core, s *state.Snapshot, t *state.Target) string {
	r := &t.Record
	if r.TimeLimit == slurmctl.Unlimited || r.EndTime.IsZero() {
		return ""
	}
	end := time.Unix(t.Plan[len(t.Plan)-1].End, 0)
	longest, why := act.LongestLimit(s, r, c.Rules.Limits)
	if _, latest := act.LongerLimit(r, end, longest); latest.Before(end) {
		return fmt.Sprintf("it would end at %s, and its time limit can be no later than %s (%s)", state.ClockText(c, end), state.ClockText(c, latest), why)
	}
	return ""
}

// inTheWay describes what uses the nodes at the time at which a delayed step was wanted.
func inTheWay(c *state.Core, s *state.Snapshot, t *state.Target, o *msg.Occupancy, now int64) string {
	wanted := max(t.Expected(), now)
	if t.State == row.Waiting {
		wanted = now
	}
	for k := t.Step; k < len(t.Plan); k++ {
		lasts := t.Profile[k].Duration
		if t.Plan[k].Start > wanted+1 || k == len(t.Plan)-1 {
			return whoHas(c, s, t, o, k, wanted, wanted+lasts)
		}
		wanted += lasts
	}
	return "it cannot be had"
}

// InTheWay describes what uses the nodes on which a job could start now.
func InTheWay(c *state.Core, s *state.Snapshot, j *state.Job, o *msg.Occupancy, now int64) string {
	return whoHas(c, s, &state.Target{Job: j}, o, 0, now, now+j.Profile[0].Duration)
}

// whoHas describes what uses the nodes that step k of a job may have, from start to end.
func whoHas(c *state.Core, s *state.Snapshot, t *state.Target, o *msg.Occupancy, k int, start, end int64) string {
	pool, _ := slurm.EligibleBeside(c, s, t.Job)
	mine := msg.SetOf(t.Nodes())
	free, taken := 0, msg.Set{}
	for _, n := range pool {
		name := s.Nodes[n].Name
		busy := o.Claimed(slices.Clone(o.Busy[n]), []int{n}, slurm.RankOf(c, &t.Record))
		used := slices.ContainsFunc(slices.Concat(busy, o.ReservedOn([]int{n}, t.Reservation), o.Outside([]int{n}, t.Reservation)), func(b planner.NodeBusy) bool {
			return b.Start+o.Origin < end && start < b.End+o.Origin
		})
		if used && !mine[name] {
			taken[name] = true
		} else {
			free++
		}
	}
	text := fmt.Sprintf("step %d wants %d nodes at %s, and %d are free from then on for as long", k+1, t.Profile[k].Nodes, state.ClockText(c, time.Unix(start, 0)), free)
	if who := users(c, s, t.Job, taken, start, end); len(who) > 0 {
		text += "; in the way: " + strings.Join(who, ", ")
	}
	return text
}

// mostNamed bounds how many jobs a message names as being in the way.
const mostNamed = 5

// users returns what uses some nodes, as far as the job's user may know.
func users(c *state.Core, s *state.Snapshot, j *state.Job, nodes msg.Set, start, end int64) []string {
	var who []string
	others, more := false, 0
	for _, user := range userJobs(c, s, j, nodes, start, end) {
		switch {
		case user.uid != j.UID && view.Reading(c) == api.OwnJobs:
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
	for _, name := range state.SortedKeys(s.Reservations) {
		r := s.Reservations[name]
		if _, ours := s.Holds[name]; !ours && r.Start.Unix() < end && start < r.End.Unix() && nodes.Any(r.Nodes) {
			who = append(who, "reservation "+name)
		}
	}
	if down := unusable(s, nodes); down > 0 {
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
func userJobs(c *state.Core, s *state.Snapshot, j *state.Job, nodes msg.Set, start, end int64) (all []userJob) {
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if c.Owner(r.ID) == nil && nodes.Any(r.NodeList) && slurm.Releases(c, r, s.Taken.Unix()) > start {
			all = append(all, userJob{r.UID, fmt.Sprintf("job %d", r.ID)})
		}
	}
	for _, other := range c.Active {
		if other.SlurmID == j.SlurmID {
			continue
		}
		if slices.ContainsFunc(other.Coming(), func(p msg.PlannedStep) bool { return p.Start < end && start < p.End && nodes.Any(p.Nodes) }) {
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
func unusable(s *state.Snapshot, nodes msg.Set) (n int) {
	for name := range nodes {
		if i, ok := s.Index[name]; ok && !s.Nodes[i].Usable() {
			n++
		}
	}
	return n
}

// rewrittenAs returns the comment of a job after a change.
func rewrittenAs(c *state.Core, j *state.Job, t *state.Target) (string, error) {
	one := *t.Job
	values := *t.Job.Job
	values.Changes = []row.Change{{ID: "ffffffffffffffff"}}
	one.Job, one.Record = &values, j.Record
	return act.Rewritten(c, &one)
}
