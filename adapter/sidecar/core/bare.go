package core

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Some jobs can be made smaller by whole companions only: those of a site where nobody may change what
// runs, and those with a step manager of their own.
//
// There are sites whose job_submit plugin refuses every update of a job that lacks Account=
// (slurmctl.ErrWantsAccount). Slurm takes an account for pending jobs alone: so a job that
// runs can be given companions, and these can be ended, but it can neither be merged into, nor
// be made smaller, nor be given a longer time limit, nor be taken out of the hold in which it
// began: it stays there, and the hold lasts until its end. Whether a site is such a one is found out
// by an update that changes nothing, of each parked job where there are plugins (mayTry).

// stay is called when something began to run in a hold, and stays there.
func (c *Core) stay(name string) {
	if r, ok := c.reservations[name]; ok {
		c.forgetHold(name)
		c.lived[name] = r
	}
}

// takeLived tells the holds that something lives in, which are no promise of nodes any more,
// from the others that a poll has shown. What was done since it began is kept.
func (c *Core) takeLived(s *snapshot, seen map[string]slurmctl.Reservation) {
	before := c.lived
	c.lived = map[string]slurmctl.Reservation{}
	for name := range c.holdChanged {
		if r, ok := before[name]; ok {
			c.lived[name] = r
		}
	}
	for i := range s.jobs {
		r, ours := seen[s.jobs[i].Reservation]
		if !ours || !c.facts.updatesNeedAccount || len(s.jobs[i].NodeList) == 0 || s.jobs[i].Ended() || s.jobs[i].State == slurmctl.Completing {
			continue
		}
		if own, ours := parseHold(r); ours && (c.owner(s.jobs[i].ID) != nil || s.jobs[i].ID == own.job || c.isExpander(&s.jobs[i])) {
			c.lived[r.Name] = r
			delete(seen, r.Name)
			c.lengthen(r, &s.jobs[i])
		}
	}
}

// staysUntil is when what runs in a hold since then has ended at the latest, and some.
func (c *Core) staysUntil(since time.Time, limit time.Duration) time.Time {
	if limit == slurmctl.Unlimited {
		limit = longestHold * time.Second
	}
	return since.Add(limit + 2*time.Minute)
}

// lengthen sees that a hold does not end before the job that lives in it: Slurm would end
// that with it.
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

// settleLengthen is called when a hold that a job lives in was given a later end, or was not.
func (c *Core) settleLengthen(j *job, p *Pending, o Outcome) {
	if o.Err != nil {
		j.holdRetry = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("the reservation that it runs in, and cannot be taken out of, ends before its time limit")
		return
	}
	do := commandOf[ChangeHold](p)
	if r, ok := c.lived[do.Name]; ok {
		r.End = do.Change.End
		c.lived[do.Name] = r
	}
}

// whole reports whether nodes to be given back are those of companions, each with all of
// its own.
func whole(held []Part, surplus []string) bool {
	for i, p := range held {
		if rest := Without(p.Nodes, surplus); len(rest) < len(p.Nodes) && (i == 0 || len(rest) > 0) {
			return false
		}
	}
	return true
}

// canReturn reports whether the job can give just these nodes back.
func (j *job) canReturn(nodes []string) bool { return j.mode.resizesInPart || whole(j.held, nodes) }

// canGive returns the nodes of some that a job can give back: those of whole companions, where its Slurm jobs
// cannot be made smaller.
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

// touched are the nodes of all companions that have some of those to be given back.
func touched(held []Part, surplus []string) (all []string) {
	for _, p := range held[1:] {
		if len(common(p.Nodes, surplus)) > 0 {
			all = append(all, p.Nodes...)
		}
	}
	return all
}
