package delay

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDelayShared checks whether a promise of n2 lapses for a stock job that Slurm would start on part of a node now, if nothing were
// held. A stock job has two CPUs of n2 until an hour before the growth.
func TestDelayShared(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		change func(*bench, *slurmctl.Job)
		budget time.Duration
		lapses bool
	}{
		"it fits on the rest of the node": {budget: hour, lapses: true},
		"within the budget":               {budget: 9 * hour},
		"it needs more CPUs":              {change: func(_ *bench, r *slurmctl.Job) { r.NumCPUs = 3 }},
		"it needs the whole node":         {change: func(_ *bench, r *slurmctl.Job) { r.Exclusive = true }},
		"it needs a GPU":                  {change: func(_ *bench, r *slurmctl.Job) { r.TRESPer = "gres:gpu:1" }},
		"it ends before the growth":       {change: func(_ *bench, r *slurmctl.Job) { r.TimeLimit = 6 * hour }},
		"one before it takes the rest": {change: func(b *bench, _ *slurmctl.Job) {
			first := b.Stock(9, 999, 1, 6*hour)
			first.NumCPUs, first.Exclusive = 2, false
			b.see()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.Config.MaxDelay, b.Config.StockJobs = c.budget, 100
			runs := b.StockRuns(3, "n2", 6*hour)
			runs.NumCPUs, runs.Exclusive = 2, false
			b.Seen.Nodes[1].CPUsAlloc = 2
			b.see()
			j := b.Evolving(1, 1000, "1@7h,2@1h", 9*hour)
			b.begin(j)
			r := b.Stock(2, 10, 1, 8*hour)
			r.NumCPUs, r.Exclusive = 1, false
			b.see()
			if c.change != nil {
				c.change(b, b.s.ByID[2])
			}
			b.later(time.Second)
			if lapses := len(j.Plan) < len(j.Profile); lapses != c.lapses {
				t.Errorf("the promise lapses: %v, want %v", lapses, c.lapses)
			}
		})
	}
}
