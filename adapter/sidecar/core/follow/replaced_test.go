package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSettleEnd checks what becomes of a job that a poll did not show, by what Slurm then answers.
func TestSettleEnd(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(r *slurmctl.Job) // nil: Slurm does not know the number
		want   row.State
	}{
		"it waits":                     {func(*slurmctl.Job) {}, row.Queued},
		"it has another submit time":   {func(r *slurmctl.Job) { r.SubmitTime = r.SubmitTime.Add(time.Minute) }, row.Queued},
		"it has ended":                 {func(r *slurmctl.Job) { r.State = slurmctl.Cancelled }, row.Ended},
		"Slurm does not know it":       {nil, row.Ended},
		"its number is another user's": {func(r *slurmctl.Job) { r.UID = 2000 }, row.Ended},
		"its number is its user's next job": {func(r *slurmctl.Job) {
			r.SubmitTime, r.Name = r.SubmitTime.Add(time.Minute), "next"
		}, row.Ended},
		"its number is another task's": {func(r *slurmctl.Job) { r.ArrayJobID, r.Display = 50, "50_4" }, row.Ended},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 100, "1@10m,2@10m", 30*time.Minute)
			task(j, &j.Record, 3)
			var o msg.Outcome
			if r := j.Record; c.answer != nil {
				c.answer(&r)
				o.Result = []slurmctl.Job{r}
			}
			if SettleEnd(b.Core, j, nil, o); j.State != c.want {
				t.Errorf("it is %s, want %s", j.State, c.want)
			}
		})
	}
}
