package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Booked is the row of a hold while the hold is there, and until its last seconds are counted.
type Booked struct {
	row.Hold
	Size    int  // nodes at present
	Ran     bool // its job ran when the hold was last looked at
	GivenUp bool // the sidecar has given it up
	Refused bool // Slurm refused to change it
}

// Count adds the time until `at` to what was held.
func (b *Booked) Count(at time.Time) {
	if d := at.Sub(b.Counted); d > 0 {
		b.Held += d.Milliseconds() * int64(b.Size)
		b.Counted = at
	}
}

// Within returns how much of a period the row covers.
func (b *Booked) Within(since, until time.Time) time.Duration {
	if !b.Ended.IsZero() && b.Ended.Before(until) {
		until = b.Ended
	}
	return max(0, until.Sub(msg.Later(since, b.Made)))
}

// SaveHold saves the row of a hold.
func (c *Core) SaveHold(b *Booked) { c.Emit(msg.SaveHold{b.Hold}) }

// Promised records the open promise that the database has.
func (p *Promise) Promised(open row.Promise) { p.Open = open }

// lapseCause returns why a promise lapsed, by its event.
func lapseCause(detail map[string]any) string {
	for key, cause := range map[string]string{"by": row.CauseCancelled, "budget": row.CauseBudget, "for": row.CauseYielded} {
		if _, is := detail[key]; is {
			return cause
		}
	}
	return row.CauseOverrun
}

// watchPromise follows the promise of a job's next growth by its events, written or not. It saves the promise when
// the promised time moves for the first time, when it lapses, and when it is decided.
func (c *Core) watchPromise(j *Job, kind string, detail map[string]any) {
	p, second := &j.Open, func(key string) time.Time {
		t, _ := detail[key].(int64)
		return c.FromWall(t)
	}
	switch kind {
	case "started", "requeued":
		if p.Step > 0 {
			*p = row.Promise{}
			c.savePromise(j, j.Step+1)
		}
	case "step ended":
		p.Asked = c.Now
	case "lapsed":
		p.Lapsed, p.Cause = true, lapseCause(detail)
		p.By, _ = detail["by"].(string)
		c.savePromise(j, max(j.Step, 1)+1)
	case "delayed":
		if p.Hindered(kind); p.At.IsZero() {
			p.At = second("was")
			c.savePromise(j, j.Step+1)
		}
	case "kept back", "nodes did not come up", "failed", "given up", "resumed", "drive changed", "nodes left alone":
		p.Hindered(kind)
	case "step begun":
		if p.At.IsZero() {
			p.At = second("planned")
		}
		if grows(j, j.Step) {
			p.Came(j.StepStarted, len(j.Nodes()))
			c.savePromise(j, j.Step)
		}
		*p = row.Promise{}
	case "ended":
		for step := j.Step + 1; j.Step > 0 && step <= len(j.Plan); step++ {
			p.NotReached(j.Ended)
			c.savePromise(j, step)
			*p = row.Promise{}
		}
	}
}

// grows reports whether a step is a growth, and records it in the open promise.
func grows(j *Job, step int) bool {
	if step < 2 || step > len(j.Profile) {
		return false
	}
	p := &j.Open
	p.Job, p.Step, p.From, p.To = j.ID, step, j.Profile[step-2].Nodes, j.Profile[step-1].Nodes
	return p.To > p.From
}

// savePromise saves the job's open promise as that of a step, if it is a growth.
func (c *Core) savePromise(j *Job, step int) {
	if grows(j, step) {
		c.Emit(msg.SavePromise{j.Open})
	}
}
