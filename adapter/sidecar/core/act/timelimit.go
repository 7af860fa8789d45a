package act

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
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
func extendLimits(c *state.Core, s *state.Snapshot, j *state.Job) {
	if j.Mode.StepsAreJobs || len(j.Plan) == 0 {
		return
	}
	if c.Rules.Read.IsZero() {
		slurm.RulesSince(c, c.Now)
		return // wait until the limits are known
	}
	list := ShortParts(c, s, j)
	if len(list) == 0 {
		j.Extend = false
		return
	}
	c.Do(j, "extend", fmt.Sprint(list), state.KindExtend, msg.ExtendLimits{list}, state.Args{})
}

// SettleExtend is called when time limits were raised, or when that failed.
func SettleExtend(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	list := state.CommandOf[msg.ExtendLimits](p).Parts
	if o.Err != nil || len(list) == 0 {
		return
	}
	j.LimitRaised(list[0])
	c.Event(j, "limit raised", map[string]any{"minutes": int(list[0].Limit.Minutes()), "parts": len(list)})
}

// ShortParts lists the parts that need a longer time limit, base job first. It records whether a part cannot
// get a limit as long as the plan needs.
func ShortParts(c *state.Core, s *state.Snapshot, j *state.Job) []msg.Limit {
	base, before := &j.Record, j.LastEnd
	planned := time.Unix(j.Plan[len(j.Plan)-1].End, 0)
	end := base.EndTime
	j.Short, j.LastEnd = "", 0
	switch {
	case base.TimeLimit == slurmctl.Unlimited:
		end = planned
	case end.IsZero():
		return nil // not known
	}
	var list []msg.Limit
	// needs lets a part end at a time, or as late as possible. It changes the limit only if raise is set.
	needs := func(r *slurmctl.Job, end time.Time, raise bool) time.Time {
		longest, why := LongestLimit(s, r, c.Rules.Limits)
		if !j.Mode.RaisesLimits {
			longest, why = r.TimeLimit, mode.AccountWords
		}
		limit, latest := LongerLimit(r, end, longest)
		if !raise && limit > r.TimeLimit {
			limit, latest, why = r.TimeLimit, r.EndTime, ""
		}
		TooShort(j, planned, latest, why, func(t time.Time) string { return state.ClockText(c, t) })
		if limit > r.TimeLimit {
			list = append(list, msg.Limit{r.ID, limit})
		}
		return latest
	}
	if planned.After(end) {
		// a job that overruns, or whose user has lowered its limit, keeps its limit
		if other := Deadlocked(c, j); other != nil {
			end = needs(base, planned, false)
			j.Short += "; " + deadlockWords(other)
		} else {
			end = needs(base, planned, j.Extend)
		}
	}
	for _, p := range j.Held {
		if j.Touched.After(s.Taken) {
			break // the records of the companions are outdated
		}
		if r := s.ByID[p.ID]; p.ID != base.ID && endsBefore(r, end) {
			needs(r, end, true)
		}
	}
	if j.LastEnd != 0 && j.LastEnd != before {
		c.Event(j, "time limit too short", map[string]any{"planned": c.WallSecond(planned.Unix()), "latest": c.WallSecond(j.LastEnd), "why": j.Short})
		c.LogJob(j).Warn(j.Short)
	}
	return list
}

// endsBefore reports whether the time limit of a running companion is too short for the end of its base job.
func endsBefore(r *slurmctl.Job, end time.Time) bool {
	return r != nil && r.State == slurmctl.Running && r.TimeLimit != slurmctl.Unlimited && !r.EndTime.IsZero() && end.After(r.EndTime.Add(limitSlack))
}

// TooShort records the first part of the job that ends before its plan does.
func TooShort(j *state.Job, planned, latest time.Time, why string, clock func(time.Time) string) {
	if !latest.Before(planned) || j.LastEnd != 0 && latest.Unix() >= j.LastEnd {
		return
	}
	j.LastEnd = latest.Unix()
	what := "its time limit"
	if why != "" {
		what, why = "the latest time limit possible", " ("+why+")"
	}
	j.Short = fmt.Sprintf("its plan ends at %s, after %s, %s%s", clock(planned), what, clock(latest), why)
	for k, p := range j.Plan {
		if k >= j.Step && p.Start >= j.LastEnd {
			j.Short += fmt.Sprintf("; step %d cannot begin", k+1)
			break
		}
	}
}

// LongerLimit returns the time limit with which a running job ends at `end` or a little later, and when the
// job ends with it. The limit is at most `longest` (Unlimited: no bound), and never shorter than now.
func LongerLimit(r *slurmctl.Job, end time.Time, longest time.Duration) (time.Duration, time.Time) {
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

// LongestLimit returns the longest time limit that a running job may get, and in words why it is not longer.
// It observes the limits of the partition, of the account and QOS (limits; nil: not known), reservations
// of others on the job's nodes, and the end of the job's own reservation. Slurm would let root exceed all of these.
func LongestLimit(s *state.Snapshot, r *slurmctl.Job, limits *slurmctl.Limits) (longest time.Duration, why string) {
	longest = slurmctl.Unlimited
	shorter := func(limit time.Duration, reason string) {
		if limit != slurmctl.Unlimited && (longest == slurmctl.Unlimited || limit < longest) {
			longest, why = limit, reason
		}
	}
	if p, ok := s.Partitions[r.Partition]; ok {
		shorter(p.MaxTime, "MaxTime of partition "+p.Name)
	}
	if limits != nil {
		if most := limits.MostMinutes(state.Subject(r, r.Partition)); most >= 0 {
			shorter(time.Duration(most)*time.Minute, "MaxWall of its account or QOS")
		}
	}
	nodes := msg.SetOf(r.NodeList)
	for _, name := range state.SortedKeys(s.Reservations) {
		res := s.Reservations[name]
		if name == state.OwnReservation(r.Reservation) {
			shorter(max(r.TimeLimit+res.End.Sub(r.EndTime), 0), "the end of reservation "+name)
		} else if _, ours := state.ParseHoldName(name); !ours && res.End.After(s.Taken) && nodes.Any(res.Nodes) {
			shorter(max(r.TimeLimit+res.Start.Sub(r.EndTime), 0), "reservation "+name)
		}
	}
	return longest, why
}

// LimitNeeded returns the time limit that a waiting job needs, calculated as in evosbatch.
func LimitNeeded(c *state.Core, j *state.Job) time.Duration {
	limit := plan.ExpandLimit(c, j)
	if limit == planner.Infinite {
		limit = 2
	}
	total := int64(time.Minute / time.Second)
	for _, step := range j.Profile {
		total = min(total+min(limit.Stretch(step.Duration), planner.MaxDuration), planner.MaxDuration)
	}
	return time.Duration((total+59)/60) * time.Minute
}
