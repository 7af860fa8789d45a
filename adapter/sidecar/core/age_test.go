package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestAge(t *testing.T) {
	const hour = time.Hour
	// older is a bench with an evolving job that was submitted two hours ago and a stock
	// job an hour ago; Slurm has calculated priorities right now.
	older := func(t *testing.T) (*bench, *job, *slurmctl.Job) {
		b := newBench(t, 4)
		b.ageing = slurmctl.Ageing{Weight: 1000, MaxAge: 10 * hour, Period: time.Minute}
		b.calculated = b.s.taken
		j := b.evolving(1, 50, "4@1h", hour)
		j.record.SubmitTime = b.s.taken.Add(-2 * hour)
		b.stock(2, 150, 4, hour)
		stock := &b.s.jobs[1]
		stock.SubmitTime = b.s.taken.Add(-hour)
		return b, j, stock
	}
	t.Run("older than a stock job", func(t *testing.T) {
		b, j, stock := older(t)
		if in := b.startsIn(j); in != 0 || j.priority != 250 || b.describe(j).Priority != 250 {
			t.Errorf("it is to start in %v, with priority %d", in, j.priority)
		}
		stock.Priority = 251
		if in := b.startsIn(j); in < hour {
			t.Errorf("a stock job of higher priority is overtaken: it is to start in %v", in)
		}
		stock.Priority = 250
		if in := b.startsIn(j); in != 0 {
			t.Errorf("a stock job of equal priority that was submitted later overtakes: it is to start in %v", in)
		}
		stock.SubmitTime = b.s.taken.Add(-3 * hour)
		if in := b.startsIn(j); in < hour {
			t.Errorf("a stock job of equal priority that was submitted before is overtaken: it is to start in %v", in)
		}
	})
	t.Run("what counts", func(t *testing.T) {
		b, j, _ := older(t)
		now := b.s.taken
		priority := func(want uint64, of string) {
			t.Helper()
			b.plan(b.s)
			if j.priority != want {
				t.Errorf("%s: priority %d, want %d", of, j.priority, want)
			}
		}
		j.accrued = now.Add(-hour)
		priority(150, "Slurm counts from an hour ago")
		j.accrued = now.Add(parked)
		priority(250, "Slurm counts from the parked begin")
		b.ageing.Always = true
		priority(50, "Slurm counts all")
		b.ageing.Always, j.Begin = false, now.Add(-30*time.Minute)
		priority(100, "the user's own begin half an hour ago")
		j.Begin = time.Time{}
		j.record.Priority, j.record.Reason = 0, "JobHeldUser"
		priority(0, "held")
		j.record.Priority, j.record.Reason = 50, "BeginTime"
		priority(250, "held for a while, and limits are not enforced")
		j.record.Reason = "Dependency"
		b.plan(b.s)
		j.record.Reason = "BeginTime"
		b.plan(b.s)
		priority(50, "its dependency is just over")
		j.Begin, b.calculated = time.Time{}, time.Time{}
		priority(50+(2*3600-65)*1000/36000, "when Slurm calculated is not known")
		b.ageing = slurmctl.Ageing{}
		priority(50, "no age here")
	})
	t.Run("when Slurm calculates", func(t *testing.T) {
		b, _, stock := older(t)
		b.calculated = time.Time{}
		poll := func(priority uint64) {
			next := *b.s
			next.taken = b.s.taken.Add(time.Second)
			b.s.byID = map[slurmctl.JobID]*slurmctl.Job{2: stock}
			later := *stock
			later.Priority = priority
			next.jobs = []slurmctl.Job{later}
			b.watchPriorities(b.s, &next)
		}
		if poll(150); !b.calculated.IsZero() {
			t.Error("nothing has changed")
		}
		if poll(151); !b.calculated.Equal(b.s.taken) {
			t.Errorf("calculated at %v, seen between %v and a second later", b.calculated, b.s.taken)
		}
	})
}
