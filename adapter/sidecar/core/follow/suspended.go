package follow

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
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

func IsSuspended(j *state.Job) bool { return !j.SuspendedFrom.IsZero() }

// SuspendedLong reports whether the job has been suspended for longer than d.
func SuspendedLong(c *state.Core, j *state.Job, now time.Time, d time.Duration) bool {
	return IsSuspended(j) && c.Passed(now, j.SuspendedFrom.Add(d))
}

// followSuspension tracks whether Slurm has suspended the job or one of its companions.
func followSuspension(c *state.Core, s *state.Snapshot, j *state.Job) {
	if !j.Runs() {
		return
	}
	suspended := j.Record.State == slurmctl.Suspended
	for _, p := range j.Held {
		if r := s.ByID[p.ID]; r != nil && r.State == slurmctl.Suspended {
			suspended = true
		}
	}
	switch {
	case suspended && !IsSuspended(j):
		j.SuspendedAt, j.SuspendedFrom = s.Taken, s.Taken
		c.Event(j, "suspended", map[string]any{"step": j.Step})
		c.LogJob(j).Info("Slurm suspended the job, moving its steps")
	case !suspended && IsSuspended(j):
		lasted := s.Taken.Sub(j.SuspendedFrom)
		putOff(c, j, s.Taken.Sub(j.SuspendedAt))
		j.SuspendedAt, j.SuspendedFrom, j.Recount = time.Time{}, time.Time{}, true
		j.GoesOn()
		c.Event(j, "resumed", map[string]any{"step": j.Step, "seconds": int(lasted.Seconds())})
		c.LogJob(j).WithField("seconds", int(lasted.Seconds())).Info("job resumed")
		refit.Refit(c, s, j, s.Taken.Unix(), "it was suspended")
	case suspended && c.Reached(s.Taken, j.SuspendedAt.Add(suspendQuantum)):
		putOff(c, j, s.Taken.Sub(j.SuspendedAt))
		j.SuspendedAt = s.Taken
		if j.State == row.Running {
			refit.Refit(c, s, j, s.Taken.Unix(), "it is suspended")
		}
	}
	if IsSuspended(j) {
		j.WaitsFor(state.Reason{Kind: state.WhySuspended, At: c.Wall(j.SuspendedFrom)})
	}
}

// putOff delays a job's steps by a time for which it was suspended.
func putOff(c *state.Core, j *state.Job, by time.Duration) {
	if by = by.Round(time.Second); by <= 0 {
		return
	}
	j.Delay(by)
	state.Shift(c, j, by)
}

// RecountSuspension asks Slurm how long the job or one of its companions was suspended in total. It then
// delays the job's steps by the suspensions that the sidecar did not see, while it was away or between two
// polls.
func RecountSuspension(c *state.Core, j *state.Job) {
	if j.Recount = false; j.Record.State == slurmctl.Pending {
		return // a chain between two steps: Slurm shows when the next link is planned to begin
	}
	parts := []state.StartedPart{{j.Record.ID, j.Record.StartTime}}
	for _, p := range companionsOf(j) {
		if r := In(j, c.Snapshot, p.ID); r != nil {
			parts = append(parts, state.StartedPart{r.ID, r.StartTime})
		}
	}
	recountParts(c, j, parts, 0)
}

// recountParts asks for each of the job's parts in turn; longest is the longest suspension so far.
func recountParts(c *state.Core, j *state.Job, parts []state.StartedPart, longest time.Duration) {
	c.Ask(j, "", state.KindTimeUsed, msg.Task{Command: msg.ReadTimeUsed{parts[0].Job}}, state.Args{Begun: c.Now, Started: parts[0].Started, Parts: parts[1:], Longest: longest})
}

// SettleTimeUsed records how long one of the job's parts has run.
func SettleTimeUsed(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	used, known := o.Result.(time.Duration)
	longest := p.Args.Longest
	switch {
	case state.Transient(o.Err):
		j.Recount = true
		j.WaitUntil(c.Now.Add(state.AgainAfter))
		return
	case o.Err == nil && known && !p.Args.Started.IsZero():
		longest = max(longest, p.Args.Begun.Sub(p.Args.Started)-used) // at least: the answer may have taken long
	}
	if len(p.Args.Parts) > 0 {
		recountParts(c, j, p.Args.Parts, longest)
		return
	}
	if missed := longest - j.Suspended; missed >= state.ClockSlack && j.Runs() {
		putOff(c, j, missed)
		if c.Snapshot != nil {
			refit.Refit(c, c.Snapshot, j, c.Now.Unix(), "it was suspended")
		}
	}
}

// companionsOf lists the Slurm jobs beside the base job whose nodes the job has.
func companionsOf(j *state.Job) []msg.Part {
	if j.Mode.StepsAreJobs || len(j.Held) == 0 {
		return nil
	}
	return j.Held[1:]
}
