package slurm

import (
	"math"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestPriorityOf checks the priority of a job that Slurm shows with 50, where an hour of age counts 100.
func TestPriorityOf(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		submitted, begin, accrued time.Duration // before now; 0: never
		change                    func(b *statetest.Bench, j *state.Job)
		want                      uint64
	}{
		"two hours old":  {submitted: 2 * hour, want: 250},
		"just submitted": {submitted: time.Nanosecond, want: 50},
		"submitted in the future, by another clock":  {submitted: -hour, want: 50},
		"older than age counts":                      {submitted: 100 * hour, want: 1050},
		"its user's begin time is an hour ago":       {submitted: 2 * hour, begin: hour, want: 150},
		"its user's begin time was before it":        {submitted: hour, begin: 2 * hour, want: 150},
		"its user's begin time comes":                {submitted: 2 * hour, begin: -hour, want: 50},
		"Slurm counts half of it already":            {submitted: 2 * hour, accrued: hour, want: 150},
		"Slurm counts more than the sidecar":         {submitted: hour, accrued: 2 * hour, want: 50},
		"it is held":                                 {submitted: 2 * hour, change: func(_ *statetest.Bench, j *state.Job) { j.Record.Priority = 0 }, want: 0},
		"Slurm counts the age of parked jobs itself": {submitted: 2 * hour, change: func(b *statetest.Bench, _ *state.Job) { b.Ageing.Always = true }, want: 50},
		"age does not count here":                    {submitted: 2 * hour, change: func(b *statetest.Bench, _ *state.Job) { b.Ageing.Weight = 0 }, want: 50},
		"Slurm calculated half an hour ago":          {submitted: 2 * hour, change: func(b *statetest.Bench, _ *state.Job) { b.Ageing.Period, b.Calculated = hour, b.Now.Add(-hour/2) }, want: 200},
		"as high as can be":                          {submitted: 2 * hour, change: func(_ *statetest.Bench, j *state.Job) { j.Record.Priority = math.MaxUint32 }, want: math.MaxUint32},
		"of a value that no Slurm has":               {submitted: 2 * hour, change: func(_ *statetest.Bench, j *state.Job) { j.Record.Priority = math.MaxUint64 }, want: math.MaxUint32},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 1)
			b.Ageing = slurmctl.Ageing{Weight: 1000, MaxAge: 10 * hour, Period: time.Minute}
			b.Calculated = b.Now
			j := b.Evolving(1, 50, "1@1m", hour)
			ago := func(before time.Duration) time.Time {
				if before == 0 {
					return time.Time{}
				}
				return b.Now.Add(-before)
			}
			j.Record.SubmitTime, j.Begin, j.Accrued = ago(c.submitted), ago(c.begin), ago(c.accrued)
			if c.change != nil {
				c.change(b, j)
			}
			if got := PriorityOf(b.Core, j, b.Now); got != c.want {
				t.Errorf("priority %d, want %d", got, c.want)
			}
		})
	}
}

// TestEligibleAgain checks when a job's age begins again, after Slurm did not consider it for a while.
func TestEligibleAgain(t *testing.T) {
	for name, c := range map[string]struct {
		before   bool   // it was considered before
		priority uint64 // while Slurm does not consider it; 0: it is held
		limits   bool   // Slurm enforces limits
		again    bool
	}{
		"it waited for another job from the start":      {false, 50, false, true},
		"held from the start":                           {false, 0, false, true},
		"a dependency was added later":                  {true, 50, false, true},
		"held later, and it ages on":                    {true, 0, false, false},
		"held later, and limits end its age with that":  {true, 0, true, true},
		"a dependency was added later, with limits too": {true, 50, true, true},
	} {
		b := statetest.New(t, 1)
		b.Ageing.Limits = c.limits
		j := b.Evolving(1, c.priority, "1@1m", time.Hour)
		if c.before {
			EligibleAgain(b.Core, j, true, b.Now)
		}
		EligibleAgain(b.Core, j, false, b.Now)
		b.Later(time.Minute)
		EligibleAgain(b.Core, j, true, b.Now)
		if again := j.Begin.Equal(b.Now); again != c.again {
			t.Errorf("%s: its age begins at %v", name, j.Begin)
		}
		b.Later(time.Minute)
		if EligibleAgain(b.Core, j, true, b.Now); j.Begin.Equal(b.Now) {
			t.Errorf("%s: its age begins again and again", name)
		}
	}
}
