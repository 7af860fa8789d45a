package hold

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Some jobs shrink only by whole companions: jobs on a site that does not allow changes of a running job, and
// jobs with their own step manager.
//
// The job_submit plugin of some sites rejects every update of a job without Account=
// (slurmctl.ErrWantsAccount). Slurm accepts an account for pending jobs only. So a running job can get
// companions, and these can be ended. But it is impossible to merge into the job, to shrink it, or to raise
// its time limit. It is also impossible to take it out of the hold in which it began: it stays there, and the
// hold lasts until the job ends. If a site has plugins, the sidecar finds out by an update of each parked job
// that changes nothing (mayTry).

// Stay records that a job began to run in a hold and stays there.
func Stay(c *state.Core, name string) {
	if r, ok := c.Reservations[name]; ok {
		c.StuckHolds[name] = r
		ForgetHold(c, name)
	}
}

// takeStuckHolds removes the holds that a job is stuck in from those that a poll has shown: they no longer promise
// nodes. It keeps what was done since the poll began.
func takeStuckHolds(c *state.Core, s *state.Snapshot, seen map[string]slurmctl.Reservation) {
	before := c.StuckHolds
	c.StuckHolds = map[string]slurmctl.Reservation{}
	for name := range c.HoldChanged {
		if r, ok := before[name]; ok {
			c.StuckHolds[name] = r
		}
	}
	for i := range s.Jobs {
		r, ours := seen[s.Jobs[i].Reservation]
		if !ours || !c.Facts.UpdatesNeedAccount || len(s.Jobs[i].NodeList) == 0 || s.Jobs[i].Ended() || s.Jobs[i].State == slurmctl.Completing {
			continue
		}
		if own, ours := state.ParseHold(r); ours && (c.Owner(s.Jobs[i].ID) != nil || s.Jobs[i].ID == own.Job || slurm.IsExpander(c, &s.Jobs[i])) {
			c.StuckHolds[r.Name] = r
			delete(seen, r.Name)
			lengthen(c, r, &s.Jobs[i])
		}
	}
}

// StaysUntil returns the latest end of a job that has run in a hold since a time, plus two minutes.
func StaysUntil(c *state.Core, since time.Time, limit time.Duration) time.Time {
	if limit == slurmctl.Unlimited {
		limit = plan.LongestHold * time.Second
	}
	return since.Add(limit + 2*time.Minute)
}

// lengthen makes a hold last as long as the job that is stuck in it: Slurm would end the job with the hold.
func lengthen(c *state.Core, hold slurmctl.Reservation, r *slurmctl.Job) {
	j := c.Owner(r.ID)
	until := StaysUntil(c, r.StartTime, r.TimeLimit)
	if !r.EndTime.IsZero() && r.TimeLimit != slurmctl.Unlimited {
		until = StaysUntil(c, r.EndTime, 0)
	}
	if j == nil || j.Busy || !c.Due(c.Now, j.HoldRetry) || r.TimeLimit == 0 || !hold.End.Before(until.Add(-90*time.Second)) {
		return
	}
	c.Ask(j, "", state.KindLengthen, msg.Task{Command: msg.ChangeHold{hold.Name, slurmctl.ReservationUpdate{End: until}}}, state.Args{})
}

// SettleLengthen is called when a hold that a job is stuck in was given a later end, or when that failed.
func SettleLengthen(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err != nil {
		j.HoldRetry = c.Now.Add(state.AgainAfter)
		c.LogJob(j).WithError(o.Err).Warn("the job's reservation ends before its time limit, and Slurm cannot take the job out of it")
		return
	}
	do := state.CommandOf[msg.ChangeHold](p)
	if r, ok := c.StuckHolds[do.Name]; ok {
		r.End = do.Change.End
		c.StuckHolds[do.Name] = r
	}
}

// Whole reports whether the surplus consists of all nodes of some companions.
func Whole(held []msg.Part, surplus []string) bool {
	for i, p := range held {
		if rest := msg.Without(p.Nodes, surplus); len(rest) < len(p.Nodes) && (i == 0 || len(rest) > 0) {
			return false
		}
	}
	return true
}

// CanReturn reports whether the job can give back exactly these nodes.
func CanReturn(j *state.Job, nodes []string) bool {
	return j.Mode.ResizesInPart || Whole(j.Held, nodes)
}

// CanGive returns the nodes of a list that a job can give back. If its Slurm jobs cannot shrink in part, these
// are the nodes of whole companions.
func CanGive(c *state.Core, j *state.Job, nodes []string) []string {
	if j.Mode.ShrinksInPart || len(j.Held) == 0 || Whole(j.Held, nodes) {
		return nodes
	}
	var all []string
	for _, p := range j.Held[1:] {
		if len(msg.Without(p.Nodes, nodes)) == 0 {
			all = append(all, p.Nodes...)
		}
	}
	return all
}

// Touched returns the nodes of all companions that have a node of the surplus.
func Touched(held []msg.Part, surplus []string) (all []string) {
	for _, p := range held[1:] {
		if len(msg.Common(p.Nodes, surplus)) > 0 {
			all = append(all, p.Nodes...)
		}
	}
	return all
}
