package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm may suspend a job: on an administrator's command, or when a job of a partition with a higher
// PriorityTier takes its nodes (PreemptMode=SUSPEND,GANG). Its processes stop, and Slurm delays its end by the
// same time. The sidecar does the same with its steps: they count only time in which the job runs. If one of
// its companions is suspended, the whole job counts as suspended. In the meantime the sidecar does nothing to
// it. Its nodes count as used by the job and by the job that took them.

// suspendQuantum is how far a suspended job's steps are moved at a time.
const suspendQuantum = 10 * time.Second

func (j *job) isSuspended() bool { return !j.suspendedFrom.IsZero() }

// suspendedLong reports whether the job has been suspended for longer than d.
func (j *job) suspendedLong(now time.Time, d time.Duration) bool {
	return j.isSuspended() && now.Sub(j.suspendedFrom) > d
}

// followSuspension tracks whether Slurm has suspended the job or one of its companions.
func (c *Core) followSuspension(s *snapshot, j *job) {
	if !j.runs() {
		return
	}
	suspended := j.record.State == slurmctl.Suspended
	for _, p := range j.held {
		if r := s.byID[p.ID]; r != nil && r.State == slurmctl.Suspended {
			suspended = true
		}
	}
	switch {
	case suspended && !j.isSuspended():
		j.suspendedAt, j.suspendedFrom = s.taken, s.taken
		c.event(j, "suspended", map[string]any{"step": j.Step})
		c.logJob(j).Info("Slurm suspended the job, moving its steps")
	case !suspended && j.isSuspended():
		lasted := s.taken.Sub(j.suspendedFrom)
		c.putOff(j, s.taken.Sub(j.suspendedAt))
		j.suspendedAt, j.suspendedFrom, j.reason, j.recount = time.Time{}, time.Time{}, reason{}, true
		c.event(j, "resumed", map[string]any{"step": j.Step, "seconds": int(lasted.Seconds())})
		c.logJob(j).WithField("seconds", int(lasted.Seconds())).Info("job resumed")
		c.refit(s, j, s.taken.Unix(), "it was suspended")
	case suspended && s.taken.Sub(j.suspendedAt) >= suspendQuantum:
		c.putOff(j, s.taken.Sub(j.suspendedAt))
		j.suspendedAt = s.taken
		if j.State == row.Running {
			c.refit(s, j, s.taken.Unix(), "it is suspended")
		}
	}
	if j.isSuspended() {
		j.reason = reason{kind: whySuspended, at: c.wall(j.suspendedFrom)}
	}
}

// putOff delays a job's steps by a time for which it was suspended.
func (c *Core) putOff(j *job, by time.Duration) {
	if by = by.Round(time.Second); by <= 0 {
		return
	}
	j.Suspended += by
	c.shift(j, by)
}

// suspendedFor returns how long a job was suspended that began at `started` and has run for `used`, or 0 if
// that is not known.
func (c *Core) suspendedFor(started time.Time, used time.Duration) time.Duration {
	suspended := c.now.Sub(started) - used
	if used <= 0 || started.IsZero() || suspended < clockSlack {
		return 0
	}
	return suspended.Round(time.Second)
}

// recountSuspension asks Slurm how long the job or one of its companions was suspended in total. It then
// delays the job's steps by the suspensions that the sidecar did not see, while it was away or between two
// polls.
func (c *Core) recountSuspension(j *job) {
	j.recount = false
	parts := []StartedPart{{j.record.ID, j.record.StartTime}}
	for _, p := range j.companions() {
		if r := j.in(c.snapshot, p.ID); r != nil {
			parts = append(parts, StartedPart{r.ID, r.StartTime})
		}
	}
	c.recountParts(j, parts, 0)
}

// StartedPart is one of a job's Slurm jobs and when it started.
type StartedPart struct {
	Job     slurmctl.JobID
	Started time.Time
}

// recountParts asks for each of the job's parts in turn; longest is the longest suspension so far.
func (c *Core) recountParts(j *job, parts []StartedPart, longest time.Duration) {
	c.ask(j, "", KindTimeUsed, Task{Command: ReadTimeUsed{parts[0].Job}}, Args{Started: parts[0].Started, Parts: parts[1:], Longest: longest})
}

// settleTimeUsed records how long one of the job's parts has run.
func (c *Core) settleTimeUsed(j *job, p *Pending, o Outcome) {
	used, known := o.Result.(time.Duration)
	longest := p.Args.Longest
	switch {
	case transient(o.Err):
		j.recount, j.retryAt = true, c.now.Add(againAfter)
		return
	case o.Err == nil && known && !p.Args.Started.IsZero():
		longest = max(longest, c.now.Sub(p.Args.Started)-used)
	}
	if len(p.Args.Parts) > 0 {
		c.recountParts(j, p.Args.Parts, longest)
		return
	}
	if missed := longest - j.Suspended; missed >= clockSlack && j.runs() {
		c.putOff(j, missed)
		if c.snapshot != nil {
			c.refit(c.snapshot, j, c.now.Unix(), "it was suspended")
		}
	}
}
