package follow

import (
	"cmp"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// firstAgain is the longest wait before the first further attempt; mostAgain is the longest one after many
	// attempts.
	firstAgain = 30 * time.Second
	mostAgain  = 5 * time.Minute
	// soonestAgain is the shortest wait before a further attempt.
	soonestAgain = 3 * time.Second
	// limitPatience is how long a released job may show a limit as its reason.
	limitPatience = 2 * time.Second
)

// KeepBack is called when Slurm did not let a job start (to is 0) or grow to `to` nodes.
func KeepBack(c *state.Core, j *state.Job, limit string, to int) {
	k := &state.KeptBack{Limit: limit, To: to, Again: c.Now.Add(min(firstAgain<<min(j.KeptTimes, 4), mostAgain))}
	k.Say(limit)
	k.Look, k.Fresh = slurmctl.KindOf(limit) == slurmctl.LimitReason, c.Now
	if c.Snapshot != nil {
		k.Usage = usageBeside(c.Snapshot, &j.Record)
	}
	j.KeepBackAgain(k)
	if j.KeptTimes == 1 {
		c.Event(j, "kept back", map[string]any{"limit": limit, "nodes": to})
		c.LogJob(j).WithField("limit", limit).Info(k.Text)
	}
}

// TryAgain replans a running job whose growth was kept back.
func TryAgain(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) {
	limit := j.Kept.Limit
	j.LetTry()
	j.WaitsFor(state.Saying(state.WhyRoomUnder, limit))
	refit.Refit(c, s, j, now.Unix(), "its growth was kept back by "+limit)
}

// FollowKept starts another attempt once the jobs that the limit may count use less.
func FollowKept(c *state.Core, s *state.Snapshot) {
	for j := range plan.Each(c, c.Active) {
		if j.Kept == nil || j.Kept.GivenUp || j.Touched.After(s.Taken) {
			continue
		}
		k, u := j.Kept, usageBeside(s, &j.Record)
		if u.Less(k.Usage) {
			if soon := j.Touched.Add(soonestAgain); soon.Before(k.Again) {
				k.Again = soon
			}
			k.Usage, k.Fresh, k.Look = u, c.Now, slurmctl.KindOf(k.Limit) == slurmctl.LimitReason
		}
		k.Usage = u.Most(k.Usage)
		slurm.Explain(c, j, c.Now)
	}
}

// usageBeside returns the usage of all jobs that share the user, account, QOS, or partition with a job.
// O(jobs).
func usageBeside(s *state.Snapshot, with *slurmctl.Job) (u state.Usage) {
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if len(r.NodeList) == 0 || r.UID != with.UID && r.Account != with.Account && r.QOS != with.QOS && r.Partition != with.Partition {
			continue
		}
		u.Jobs++
		u.Nodes += len(r.NodeList)
		u.CPUs += r.NumCPUs
	}
	return u
}

// KeptStart reports whether Slurm shows a limit as the reason why it does not start a released job.
func KeptStart(c *state.Core, s *state.Snapshot, r *slurmctl.Job, letGo time.Time) bool {
	return r.State == slurmctl.Pending && c.Passed(s.Taken, letGo.Add(limitPatience)) && slurmctl.KindOf(r.Reason) == slurmctl.LimitReason
}

// Park takes back a Slurm job of j that Slurm does not start for a reason of its own, such as a limit of the
// account. So no nodes are held for nothing.
func Park(c *state.Core, j *state.Job, r *slurmctl.Job, st row.State) {
	limit := cmp.Or(r.Reason, "no reason given")
	TakeBack(c, j, r.ID, "Slurm did not start it: "+limit, state.KindPark, state.Args{State: st, Limit: limit})
}

// TakeBack parks a Slurm job of j that was released and does not run.
func TakeBack(c *state.Core, j *state.Job, id slurmctl.JobID, why string, kind state.Kind, args state.Args) {
	back := j.Reservation
	c.Do(j, "park", why, kind, msg.Update{Job: id, Change: slurmctl.JobUpdate{StartTime: c.Now.Add(adopt.Parked), Reservation: &back}}, args)
}

// planWhole drops the plan of a job that is queued again if the promises for its growths have lapsed.
func planWhole(c *state.Core, j *state.Job) {
	if len(j.Plan) < len(j.Profile) && j.State == row.Queued {
		c.StorePlan(j, nil)
	}
}

// TookBack records that a job was parked, and reports whether it was.
func TookBack(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) bool {
	if o.Err != nil {
		return false
	}
	j.Parked(p.Args.State)
	planWhole(c, j)
	c.Save(j)
	c.Event(j, "parked again", map[string]any{"reason": p.Task.Intent.Detail})
	return true
}
