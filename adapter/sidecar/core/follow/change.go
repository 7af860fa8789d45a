package follow

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// GrowthFailed gives back what a growth on demand that will not come took from waiting jobs, except the time for which
// they have already waited because of it.
func GrowthFailed(c *state.Core, j *state.Job) {
	if j.Growing == nil {
		return
	}
	taken := int64(0)
	for _, one := range j.Growing.Postpones {
		r := c.Snapshot.ByID[slurmctl.JobID(one.Job)]
		if r == nil || r.State != slurmctl.Pending {
			continue // the row of a job that no longer waits is forgotten
		}
		back := one.Seconds - min(max(c.Now.Unix()-one.Would, 0), one.Seconds)
		of := row.GrowDelayOf{ID: one.Job}
		if back > 0 && c.Wall(r.SubmitTime).Equal(c.Delays.Grown[of].Since) {
			giveBack(c, of, back)
			taken += back * int64(one.Nodes)
		}
	}
	if taken > 0 {
		giveBack(c, row.GrowDelayOf{User: true, ID: j.UID}, taken)
		c.LogJob(j).WithField("node_seconds", taken).Info("its growth has failed: waiting jobs get back what it took")
	}
	j.GrowthSettled()
}

// giveBack takes an amount off a row of the ledger of growth on demand, and deletes a row without an amount.
func giveBack(c *state.Core, of row.GrowDelayOf, amount int64) {
	d, booked := c.Delays.Grown[of]
	if !booked {
		return
	}
	if d.Amount = max(d.Amount-amount, 0); d.Amount > 0 {
		c.Delays.Grown[of] = d
	} else {
		delete(c.Delays.Grown, of)
	}
	c.Emit(msg.SaveGrowDelay{Row: d})
}
