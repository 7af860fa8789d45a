package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
)

// A job may have an aim for its own placement (--prefer-start, --prefer-waste, --prefer-near). It is planned like all others,
// and then placed again in what the plan leaves free (msg.Aimed). Once it could have started without its aim, its turn is
// kept at the start that it waits for, and all are planned around that. It waits for prefer_wait at most.

// MostAimed is how many jobs of a user are placed again by their aims, and mostAimed how many of all users: each takes
// the time of some plans. The users take turns.
const MostAimed, mostAimed = 8, 32

// crowded says why a job is not placed again by its aim in this cycle.
var crowded = fmt.Sprintf("counts when earlier jobs have begun: it counts for %d jobs of a user and %d in all at a time, fewer on many nodes", MostAimed, mostAimed)

// aim sets which jobs of a list are placed again, and says why others with an aim are not.
func aim(c *state.Core, list []slurm.Candidate, now int64) {
	type turn struct{ of, at, wait int }
	of, turns := map[uint32]int{}, []turn(nil)
	for i := range list {
		j := list[i].Job
		if j == nil || j.Aim == planner.NoAim {
			continue
		}
		why := withoutEffect(c, j)
		if why == "" && len(list[i].Licenses) > 0 {
			why = "has no effect on a job that waits for licences"
		}
		switch {
		case why != "":
			j.WaitsFor(state.Saying(state.WhyAimed, j.Aim.Option()+" "+why))
		case j.AimSince > 0 && c.ReachedSecond(now, j.AimSince+aimPatience(c)):
		default:
			of[j.UID]++
			turns = append(turns, turn{of[j.UID], i, min(int(j.AimSince), 1)})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(b.wait, a.wait)) })
	for k, t := range turns {
		if j := list[t.at].Job; t.of > MostAimed || k >= mostAimed {
			j.WaitsFor(state.Saying(state.WhyAimed, j.Aim.Option()+" "+crowded))
		} else {
			list[t.at].Aim, list[t.at].AimTurn = j.Aim, k
		}
	}
}

// withoutEffect returns why a job's aim has no effect at all, or "".
func withoutEffect(c *state.Core, j *state.Job) string {
	switch {
	case c.Config.MayPrefer(j.Aim) != nil:
		return "has no effect: the site does not allow it (allow_prefer)"
	case j.Aim == planner.AimNear && len(c.Topology.Switches) == 0:
		return "has no effect: Slurm knows no switches or blocks here (topology)"
	case SwitchesOf(j) > 0:
		return "has no effect beside --switches"
	case j.Moldable != nil:
		return "has no effect on a moldable job, which has --moldable-by"
	}
	return ""
}

// aimPatience returns how many seconds later than it could a job may start because of its aim.
func aimPatience(c *state.Core) int64 { return slurm.Seconds(c.Config.PreferWait) }

// withoutAim returns a job with an aim as it is planned with all others. Its current plan is by its aim, so it prefers no
// nodes; if it waits for a start, that does not begin earlier.
func withoutAim(c *state.Core, j *state.Job, one planner.PoolJob, origin int64) planner.PoolJob {
	if j.AimSince == 0 {
		one.Prefer, one.Was = nil, nil
		return one
	}
	one.Submit = max(one.Submit, c.Since(origin, j.AimStart)-origin)
	return one
}

// takeAim is called with what the aim of a job made of its plan.
func takeAim(c *state.Core, j *state.Job, a msg.Aimed) {
	if a.Crowded && j.Reason().Words() == "" {
		j.WaitsFor(state.Saying(state.WhyAimed, j.Aim.Option()+" "+crowded))
	}
	if !a.Looked {
		return
	}
	c.AtSecond(a.Again)
	now, start, since := c.Snapshot.Taken.Unix(), j.Plan[0].Start, j.AimSince
	if since == 0 && start > a.Could && c.ReachedSecond(now, a.Could) {
		since = a.Could
	}
	if since > 0 && start > since+aimPatience(c) { // it waits for nothing any more
		start = 0
	}
	if since > 0 && (since != j.AimSince || start != j.AimStart) {
		j.AwaitAim(since, start)
		c.Save(j)
	}
	if j.Reason().Words() == "" {
		j.WaitsFor(state.Saying(state.WhyAimed, aimWords(c, j, a, since)))
	}
}

// aimWords says what its aim makes of a job's plan.
func aimWords(c *state.Core, j *state.Job, a msg.Aimed, since int64) string {
	clock := func(at int64) string { return time.Unix(c.WallSecond(at), 0).Local().Format(time.TimeOnly) }
	text, could := j.Aim.Option(), a.Could
	if since > 0 {
		could = since
	}
	switch {
	case a.Is == a.Was && since == 0 && j.Plan[0].Start == a.Could:
		return text + " changes nothing: no better place is free"
	case a.Is == a.Was:
	case j.Aim == planner.AimWaste:
		text += fmt.Sprintf(" keeps %d node-seconds idle, not %d", a.Is, a.Was)
	case j.Aim == planner.AimNear:
		text += fmt.Sprintf(" takes %d switches in all steps together, not %d", a.Is, a.Was)
	}
	return text + fmt.Sprintf(": starts at %s, not %s", clock(j.Plan[0].Start), clock(could))
}
