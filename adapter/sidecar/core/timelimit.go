package core

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// If a job's plan ends later than intended, through no fault of the job, the sidecar raises its time limit in
// all its parts: base job and companions. Other jobs must not lose by that. So the limit never exceeds what
// the partition allows, and never reaches into reservations of others. If an administrator raises the limit of
// the base job, its companions get the same.

// limitSlack is how much earlier than its base job a companion may end: limits are in minutes, and the
// companion began at another second.
const limitSlack = time.Minute

// extendLimits raises the time limits of the job's parts that are too short.
func (c *Core) extendLimits(s *snapshot, j *job) {
	if j.mode.stepsAreJobs || len(j.plan) == 0 {
		return
	}
	if c.rules.read.IsZero() {
		c.rulesSince(c.now)
		return // wait until the limits are known
	}
	list := c.shortParts(s, j)
	if len(list) == 0 {
		j.extend = false
		return
	}
	c.do(j, "extend", fmt.Sprint(list), KindExtend, ExtendLimits{list}, Args{})
}

// settleExtend is called when time limits were raised, or when that failed.
func (c *Core) settleExtend(j *job, p *Pending, o Outcome) {
	list := commandOf[ExtendLimits](p).Parts
	if o.Err != nil || len(list) == 0 {
		return
	}
	j.extend = false
	if r, base := &j.record, list[0]; base.Job == r.ID && !r.EndTime.IsZero() {
		r.TimeLimit, r.EndTime = base.Limit, r.EndTime.Add(base.Limit-r.TimeLimit)
	}
	c.event(j, "limit raised", map[string]any{"minutes": int(list[0].Limit.Minutes()), "parts": len(list)})
}

// shortParts lists the parts that need a longer time limit, base job first. It records whether a part cannot
// get a limit as long as the plan needs.
func (c *Core) shortParts(s *snapshot, j *job) []Limit {
	base, before := &j.record, j.lastEnd
	planned := time.Unix(j.plan[len(j.plan)-1].end, 0)
	end := base.EndTime
	j.short, j.lastEnd = "", 0
	switch {
	case base.TimeLimit == slurmctl.Unlimited:
		end = planned
	case end.IsZero():
		return nil // not known
	}
	var list []Limit
	// needs lets a part end at a time, or as late as possible. It changes the limit only if raise is set.
	needs := func(r *slurmctl.Job, end time.Time, raise bool) time.Time {
		longest, why := s.longestLimit(r, c.rules.limits)
		if !j.mode.raisesLimits {
			longest, why = r.TimeLimit, accountWords
		}
		limit, latest := longerLimit(r, end, longest)
		if !raise && limit > r.TimeLimit {
			limit, latest, why = r.TimeLimit, r.EndTime, ""
		}
		j.tooShort(planned, latest, why, c.clockText)
		if limit > r.TimeLimit {
			list = append(list, Limit{r.ID, limit})
		}
		return latest
	}
	if planned.After(end) {
		// a job that overruns, or whose user has lowered its limit, keeps its limit
		if other := c.deadlocked(j); other != nil {
			end = needs(base, planned, false)
			j.short += "; " + deadlockWords(other)
		} else {
			end = needs(base, planned, j.extend)
		}
	}
	for _, p := range j.held {
		if j.touched.After(s.taken) {
			break // the records of the companions are outdated
		}
		if r := s.byID[p.ID]; p.ID != base.ID && endsBefore(r, end) {
			needs(r, end, true)
		}
	}
	if j.lastEnd != 0 && j.lastEnd != before {
		c.event(j, "time limit too short", map[string]any{"planned": c.wallSecond(planned.Unix()), "latest": c.wallSecond(j.lastEnd), "why": j.short})
		c.logJob(j).Warn(j.short)
	}
	return list
}

// endsBefore reports whether the time limit of a running companion is too short for the end of its base job.
func endsBefore(r *slurmctl.Job, end time.Time) bool {
	return r != nil && r.State == slurmctl.Running && r.TimeLimit != slurmctl.Unlimited && !r.EndTime.IsZero() && end.After(r.EndTime.Add(limitSlack))
}

// tooShort records the first part of the job that ends before its plan does.
func (j *job) tooShort(planned, latest time.Time, why string, clock func(time.Time) string) {
	if !latest.Before(planned) || j.lastEnd != 0 && latest.Unix() >= j.lastEnd {
		return
	}
	j.lastEnd = latest.Unix()
	what := "its time limit"
	if why != "" {
		what, why = "the latest time limit possible", " ("+why+")"
	}
	j.short = fmt.Sprintf("its plan ends at %s, after %s, %s%s", clock(planned), what, clock(latest), why)
	for k, p := range j.plan {
		if k >= j.Step && p.start >= j.lastEnd {
			j.short += fmt.Sprintf("; step %d cannot begin", k+1)
			break
		}
	}
}

// longerLimit returns the time limit with which a running job ends at `end` or a little later, and when the
// job ends with it. The limit is at most `longest` (Unlimited: no bound), and never shorter than now.
func longerLimit(r *slurmctl.Job, end time.Time, longest time.Duration) (time.Duration, time.Time) {
	limit := r.TimeLimit
	if end.After(r.EndTime) {
		// in whole minutes, plus a spare one
		limit = (r.TimeLimit + end.Sub(r.EndTime)).Truncate(time.Minute) + 2*time.Minute
	}
	if longest != slurmctl.Unlimited {
		limit = min(limit, longest.Truncate(time.Minute))
	}
	limit = max(limit, r.TimeLimit)
	return limit, r.EndTime.Add(limit - r.TimeLimit)
}

// longestLimit returns the longest time limit that a running job may get, and in words why it is not longer.
// It observes the limits of the partition, of the account and QOS (limits; nil: not known), and reservations
// of others on the job's nodes. Slurm would let root exceed all of these.
func (s *snapshot) longestLimit(r *slurmctl.Job, limits *slurmctl.Limits) (longest time.Duration, why string) {
	longest = slurmctl.Unlimited
	shorter := func(limit time.Duration, reason string) {
		if limit != slurmctl.Unlimited && (longest == slurmctl.Unlimited || limit < longest) {
			longest, why = limit, reason
		}
	}
	if p, ok := s.partitions[r.Partition]; ok {
		shorter(p.MaxTime, "MaxTime of partition "+p.Name)
	}
	if limits != nil {
		if most := limits.MostMinutes(subject(r, r.Partition)); most >= 0 {
			shorter(time.Duration(most)*time.Minute, "MaxWall of its account or QOS")
		}
	}
	nodes := setOf(r.NodeList)
	for _, name := range sortedKeys(s.reservations) {
		res := s.reservations[name]
		if _, ours := parseHoldName(name); !ours && name != r.Reservation && res.End.After(s.taken) && nodes.any(res.Nodes) {
			shorter(max(r.TimeLimit+res.Start.Sub(r.EndTime), 0), "reservation "+name)
		}
	}
	return longest, why
}
