package delay

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDelayLicenses checks whether a promise lapses for a stock job that could have nodes, and asks for the only licence.
func TestDelayLicenses(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		change func(*bench, *slurmctl.Job)
		lapses bool
	}{
		"it is free":       {lapses: true},
		"it is free again": {change: func(_ *bench, r *slurmctl.Job) { r.Reason = "Licenses" }, lapses: true},
		"a running job has it": {change: func(b *bench, _ *slurmctl.Job) {
			b.StockRuns(3, "n8", 6*hour).Licenses = "foo"
			b.see()
		}},
		"a job before it gets it": {change: func(b *bench, _ *slurmctl.Job) {
			b.Stock(9, 999, 1, 6*hour).Licenses = "foo"
			b.see()
		}},
		"a queued job before it gets it": {change: func(b *bench, _ *slurmctl.Job) {
			b.Evolving(9, 999, "1@1h", 6*hour).Record.Licenses = "foo"
			b.see()
		}},
		"a task of an array gets it":       {change: func(_ *bench, r *slurmctl.Job) { r.ArrayTasks = 3 }, lapses: true},
		"it has vanished":                  {change: func(b *bench, _ *slurmctl.Job) { b.Licenses.Stock = nil }},
		"the licences cannot be read":      {change: func(b *bench, _ *slurmctl.Job) { b.Licenses.Known = false }, lapses: true},
		"the licences are not yet read":    {change: func(b *bench, _ *slurmctl.Job) { b.Licenses = state.LicenseBook{} }},
		"it is somewhere":                  {change: func(b *bench, _ *slurmctl.Job) { b.Licenses.Stock[0].Spread = true }, lapses: true},
		"it is somewhere, and Slurm waits": {change: func(b *bench, r *slurmctl.Job) { b.Licenses.Stock[0].Spread, r.Reason = true, "Licenses" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 8)
			b.Config.MaxDelay, b.Config.StockJobs = 0, 100
			b.Licenses = state.LicenseBook{Stock: []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 1}}}, Known: true, Read: b.Now}
			j := b.Evolving(1, 1000, "1@7h,7@1h", 9*hour)
			b.begin(j)
			r := b.Stock(2, 10, 2, 8*hour)
			r.Licenses = "foo"
			b.see()
			if c.change != nil {
				c.change(b, b.s.ByID[2])
			}
			b.later(time.Second)
			if j.Lapsed() != c.lapses {
				t.Errorf("the promise lapses: %v, want %v", j.Lapsed(), c.lapses)
			}
		})
	}
}
