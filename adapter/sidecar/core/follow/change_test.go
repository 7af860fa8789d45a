package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestGrowthFailed: a growth that took 300 seconds of job 9, which has six nodes and could start in two minutes, fails.
func TestGrowthFailed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, r *slurmctl.Job)
		want   string
	}{
		"at once":                     {func(*statetest.Bench, *slurmctl.Job) {}, "[false 9: 100 true 1000: 600]"},
		"just before it could start":  {func(b *statetest.Bench, _ *slurmctl.Job) { b.Later(2 * time.Minute) }, "[false 9: 100 true 1000: 600]"},
		"a minute after that":         {func(b *statetest.Bench, _ *slurmctl.Job) { b.Later(3 * time.Minute) }, "[false 9: 160 true 1000: 960]"},
		"when all of it is lost":      {func(b *statetest.Bench, _ *slurmctl.Job) { b.Later(time.Hour) }, "[]"},
		"when job 9 runs":             {func(_ *statetest.Bench, r *slurmctl.Job) { r.State = slurmctl.Running }, "[]"},
		"another job has that number": {func(_ *statetest.Bench, r *slurmctl.Job) { r.SubmitTime = r.SubmitTime.Add(time.Second) }, "[]"},
		"nothing else was taken": {func(b *statetest.Bench, _ *slurmctl.Job) {
			for of, d := range b.Delays.Grown {
				d.Amount = map[bool]int64{false: 300, true: 1800}[of.User]
				b.Delays.Grown[of] = d
			}
		}, "[false 9: 0 true 1000: 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 8)
			j, r := b.Evolving(1, 1, "2@10m", time.Hour), b.Stock(9, 10, 6, time.Hour)
			b.Delays.Grown[row.GrowDelayOf{ID: 9}] = row.GrowDelay{GrowDelayOf: row.GrowDelayOf{ID: 9}, Since: r.SubmitTime, Amount: 400}
			b.Delays.Grown[row.GrowDelayOf{User: true, ID: 1000}] = row.GrowDelay{GrowDelayOf: row.GrowDelayOf{User: true, ID: 1000}, Since: b.Now, Amount: 2400}
			j.Growing = &row.Growing{Postpones: []row.Postponed{{Job: 9, Seconds: 300, Nodes: 6, Would: b.Now.Unix() + 120}}}
			c.change(b, r)
			var saved []string
			GrowthFailed(b.Core, j)
			GrowthFailed(b.Core, j) // gives nothing back again
			for _, e := range b.Effects {
				if s, is := e.(msg.SaveGrowDelay); is {
					saved = append(saved, fmt.Sprintf("%v %d: %d", s.Row.User, s.Row.ID, s.Row.Amount))
				}
			}
			if got := fmt.Sprint(saved); got != c.want {
				t.Errorf("saved %s, want %s", got, c.want)
			}
		})
	}
}
