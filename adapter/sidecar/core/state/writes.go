package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func (c *Core) Emit(e msg.Effect) { c.Effects = append(c.Effects, c.Out(e)) }

// Event appends to the event log. It reports whether the event is written now, or later.
func (c *Core) Event(j *Job, kind string, detail map[string]any) bool {
	id := int64(0)
	if j != nil {
		c.watchPromise(j, kind, detail)
		if t := j.told(kind); t != nil {
			return c.causedEvent(j, t, kind, detail)
		}
		switch id = j.ID; kind {
		case "step begun": // after what is said of its promise
			c.unmute(j, &j.Delays)
		case "ended":
			for _, t := range []*Told{&j.Asking, &j.Trouble, &j.Tries, &j.Delays} {
				c.unmute(j, t)
			}
		}
	}
	c.Emit(msg.AddEvent{Job: id, At: c.Now, Kind: kind, Detail: detail})
	return true
}

// Save saves the current state of a job.
func (c *Core) Save(j *Job) {
	j.HeldIdle, j.HeldIdleRest = j.IdleHeld(), j.HeldIdleRest%1000 // what was counted
	c.Emit(msg.SaveJob{*j.Job})
}

// SaveParts saves which Slurm jobs the job consists of.
func (c *Core) SaveParts(j *Job) { c.Emit(msg.SaveParts{j.ID, PartsBy(j, slurmctl.CompressNodes)}) }

// SaveAllocation saves what the job has from then on.
func (c *Core) SaveAllocation(j *Job, at time.Time, nodes int, list string) {
	c.Emit(msg.SaveAllocation{j.ID, j.Step, at, nodes, list})
}

// AddJob adds a new job, or again one that was considered ended.
func (c *Core) AddJob(j *Job, detail map[string]any) {
	kind := "adopted"
	k, again := c.Known[j.BaseID()]
	if again = again && k.UID == j.UID && k.Submitted.Equal(j.Submitted); again {
		j.ID, kind = k.ID, "adopted again"
	} else {
		c.LastRow++
		j.ID = c.LastRow
	}
	c.Known[j.BaseID()] = row.Known{ID: j.ID, SlurmID: j.SlurmID, UID: j.UID, Submitted: j.Submitted, Steps: len(j.Profile)}
	c.Emit(msg.AddJob{Job: *j.Job, Parts: PartsBy(j, slurmctl.CompressNodes), Bound: j.Bound, Again: again})
	if again { // it may have changed, and had a plan
		c.Emit(msg.SaveProfile{j.ID, j.Profile})
		c.Unsaved[j] = true
	}
	c.Event(j, kind, detail)
}

// SavePlans saves the plans that have changed.
func (c *Core) SavePlans() {
	for _, j := range c.Active {
		if c.Unsaved[j] {
			c.Emit(msg.SavePlan{j.ID, msg.Spans(j.Plan)})
		}
	}
	clear(c.Unsaved)
}
