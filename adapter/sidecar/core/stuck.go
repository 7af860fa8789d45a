package core

import (
	"time"

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

// stay records that a job began to run in a hold and stays there.
func (c *Core) stay(name string) {
	if r, ok := c.reservations[name]; ok {
		c.forgetHold(name)
		c.stuckHolds[name] = r
	}
}

// takeStuckHolds removes the holds that a job is stuck in from those that a poll has shown: they no longer promise
// nodes. It keeps what was done since the poll began.
func (c *Core) takeStuckHolds(s *snapshot, seen map[string]slurmctl.Reservation) {
	before := c.stuckHolds
	c.stuckHolds = map[string]slurmctl.Reservation{}
	for name := range c.holdChanged {
		if r, ok := before[name]; ok {
			c.stuckHolds[name] = r
		}
	}
	for i := range s.jobs {
		r, ours := seen[s.jobs[i].Reservation]
		if !ours || !c.facts.updatesNeedAccount || len(s.jobs[i].NodeList) == 0 || s.jobs[i].Ended() || s.jobs[i].State == slurmctl.Completing {
			continue
		}
		if own, ours := parseHold(r); ours && (c.owner(s.jobs[i].ID) != nil || s.jobs[i].ID == own.job || c.isExpander(&s.jobs[i])) {
			c.stuckHolds[r.Name] = r
			delete(seen, r.Name)
			c.lengthen(r, &s.jobs[i])
		}
	}
}

// staysUntil returns the latest end of a job that has run in a hold since a time, plus two minutes.
func (c *Core) staysUntil(since time.Time, limit time.Duration) time.Time {
	if limit == slurmctl.Unlimited {
		limit = longestHold * time.Second
	}
	return since.Add(limit + 2*time.Minute)
}

// lengthen makes a hold last as long as the job that is stuck in it: Slurm would end the job with the hold.
func (c *Core) lengthen(hold slurmctl.Reservation, r *slurmctl.Job) {
	j := c.owner(r.ID)
	until := c.staysUntil(r.StartTime, r.TimeLimit)
	if !r.EndTime.IsZero() && r.TimeLimit != slurmctl.Unlimited {
		until = c.staysUntil(r.EndTime, 0)
	}
	if j == nil || j.busy || j.holdRetry.After(c.now) || r.TimeLimit == 0 || !hold.End.Before(until.Add(-90*time.Second)) {
		return
	}
	c.ask(j, "", KindLengthen, Task{Command: ChangeHold{hold.Name, slurmctl.ReservationUpdate{End: until}}}, Args{})
}

// settleLengthen is called when a hold that a job is stuck in was given a later end, or when that failed.
func (c *Core) settleLengthen(j *job, p *Pending, o Outcome) {
	if o.Err != nil {
		j.holdRetry = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("the job's reservation ends before its time limit, and Slurm cannot take the job out of it")
		return
	}
	do := commandOf[ChangeHold](p)
	if r, ok := c.stuckHolds[do.Name]; ok {
		r.End = do.Change.End
		c.stuckHolds[do.Name] = r
	}
}

// whole reports whether the surplus consists of all nodes of some companions.
func whole(held []Part, surplus []string) bool {
	for i, p := range held {
		if rest := Without(p.Nodes, surplus); len(rest) < len(p.Nodes) && (i == 0 || len(rest) > 0) {
			return false
		}
	}
	return true
}

// canReturn reports whether the job can give back exactly these nodes.
func (j *job) canReturn(nodes []string) bool { return j.mode.resizesInPart || whole(j.held, nodes) }

// canGive returns the nodes of a list that a job can give back. If its Slurm jobs cannot shrink in part, these
// are the nodes of whole companions.
func (c *Core) canGive(j *job, nodes []string) []string {
	if j.mode.shrinksInPart || len(j.held) == 0 || whole(j.held, nodes) {
		return nodes
	}
	var all []string
	for _, p := range j.held[1:] {
		if len(Without(p.Nodes, nodes)) == 0 {
			all = append(all, p.Nodes...)
		}
	}
	return all
}

// touched returns the nodes of all companions that have a node of the surplus.
func touched(held []Part, surplus []string) (all []string) {
	for _, p := range held[1:] {
		if len(common(p.Nodes, surplus)) > 0 {
			all = append(all, p.Nodes...)
		}
	}
	return all
}
