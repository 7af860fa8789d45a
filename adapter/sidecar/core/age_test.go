package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestAge(t *testing.T) {
	const hour = time.Hour
	// older is a bench with an evolving job that was submitted two hours ago and a stock
	// job an hour ago; Slurm has calculated priorities right now.
	older := func(t *testing.T) (*bench, *state.Job, *slurmctl.Job) {
		b := newBench(t, 4)
		b.Ageing = slurmctl.Ageing{Weight: 1000, MaxAge: 10 * hour, Period: time.Minute}
		b.Calculated = b.s.Taken
		j := b.Evolving(1, 50, "4@1h", hour)
		j.Record.SubmitTime = b.s.Taken.Add(-2 * hour)
		b.Stock(2, 150, 4, hour)
		stock := &b.s.Jobs[1]
		stock.SubmitTime = b.s.Taken.Add(-hour)
		return b, j, stock
	}
	t.Run("older than a stock job", func(t *testing.T) {
		b, j, stock := older(t)
		if in := b.startsIn(j); in != 0 || j.Priority != 250 || view.Describe(b.Core, j).Priority != 250 {
			t.Errorf("it is to start in %v, with priority %d", in, j.Priority)
		}
		stock.Priority = 251
		if in := b.startsIn(j); in < hour {
			t.Errorf("a stock job of higher priority is overtaken: it is to start in %v", in)
		}
		stock.Priority = 250
		if in := b.startsIn(j); in != 0 {
			t.Errorf("a stock job of equal priority that was submitted later overtakes: it is to start in %v", in)
		}
		stock.SubmitTime = b.s.Taken.Add(-3 * hour)
		if in := b.startsIn(j); in < hour {
			t.Errorf("a stock job of equal priority that was submitted before is overtaken: it is to start in %v", in)
		}
	})
	t.Run("what counts", func(t *testing.T) {
		b, j, _ := older(t)
		now := b.s.Taken
		priority := func(want uint64, of string) {
			t.Helper()
			b.plan(b.s)
			if j.Priority != want {
				t.Errorf("%s: priority %d, want %d", of, j.Priority, want)
			}
		}
		j.Accrued = now.Add(-hour)
		priority(150, "Slurm counts from an hour ago")
		j.Accrued = now.Add(adopt.Parked)
		priority(250, "Slurm counts from the parked begin")
		b.Ageing.Always = true
		priority(50, "Slurm counts all")
		b.Ageing.Always, j.Begin = false, now.Add(-30*time.Minute)
		priority(100, "the user's own begin half an hour ago")
		j.Begin = time.Time{}
		j.Record.Priority, j.Record.Reason = 0, "JobHeldUser"
		priority(0, "held")
		j.Record.Priority, j.Record.Reason = 50, "BeginTime"
		priority(250, "held for a while, and limits are not enforced")
		j.Record.Reason = "Dependency"
		b.plan(b.s)
		j.Record.Reason = "BeginTime"
		b.plan(b.s)
		priority(50, "its dependency is just over")
		j.Begin, b.Calculated = time.Time{}, time.Time{}
		priority(50+(2*3600-65)*1000/36000, "when Slurm calculated is not known")
		b.Ageing = slurmctl.Ageing{}
		priority(50, "no age here")
	})
	t.Run("when Slurm calculates", func(t *testing.T) {
		b, _, stock := older(t)
		b.Calculated = time.Time{}
		poll := func(priority uint64) {
			next := *b.s
			next.Taken = b.s.Taken.Add(time.Second)
			b.s.ByID = map[slurmctl.JobID]*slurmctl.Job{2: stock}
			later := *stock
			later.Priority = priority
			next.Jobs = []slurmctl.Job{later}
			slurm.WatchPriorities(b.Core, b.s, &next)
		}
		if poll(150); !b.Calculated.IsZero() {
			t.Error("nothing has changed")
		}
		if poll(151); !b.Calculated.Equal(b.s.Taken) {
			t.Errorf("calculated at %v, seen between %v and a second later", b.Calculated, b.s.Taken)
		}
	})
}
