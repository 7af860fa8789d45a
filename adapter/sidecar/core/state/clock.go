package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// ClockSlack is how far off times of Slurm may be.
const ClockSlack = 2 * time.Second

// ClockText returns a time of day for people.
func ClockText(c *Core, t time.Time) string { return c.Wall(t).Local().Format(time.TimeOnly) }

// ClockSet translates the times that were read from Slurm's clock before it was set.
func (j *Job) ClockSet(by time.Duration) {
	msg.Clock{Skew: by}.In(&j.Begin, &j.Submitted, &j.Accrued, &j.Record.SubmitTime, &j.Record.StartTime, &j.Record.EndTime)
}

// Shift moves the plan and step times of a job by a duration.
func Shift(c *Core, j *Job, by time.Duration) {
	if len(j.Plan) > 0 {
		plan := make([]msg.PlannedStep, len(j.Plan))
		for i, p := range j.Plan {
			plan[i] = msg.PlannedStep{Start: p.Start + int64(by/time.Second), End: p.End + int64(by/time.Second), Nodes: p.Nodes}
		}
		c.StorePlan(j, plan)
	}
	if j.Overdue != 0 {
		j.Overdue += int64(by / time.Second)
	}
	for _, at := range []*time.Time{&j.StepStarted, &j.StepEnded} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
	c.Save(j)
}

// NotInFuture corrects the times of a job if the clock was set back while the sidecar was
// down. How much of the step has passed is then unknown.
func (c *Core) NotInFuture(j *Job, now time.Time) {
	if j.State == row.Ended || !j.StepStarted.After(now.Add(ClockSlack)) {
		return
	}
	c.LogJob(j).Warn("the step begins in the future because the clock was set back; assuming that it begins now")
	j.StepStarted, j.StepEnded = now, time.Time{}
	if j.State == row.Waiting {
		j.StepEnded = now
	}
	c.StorePlan(j, nil)
	c.Save(j)
}
