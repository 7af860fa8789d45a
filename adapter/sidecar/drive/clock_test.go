package drive

import (
	"context"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestClock: the driver goes by slurmctld's clock, which answers show to the second, whatever is done to the machine's.
func TestClock(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 700e6, time.UTC)
	var own, machine, slurm time.Duration // since the start, by each clock
	clock := func(d *time.Duration) func() time.Time { return func() time.Time { return start.Add(*d) } }
	d := New(nil, clock(&own))
	d.Machine = clock(&machine)
	after := func(by time.Duration) { own, machine, slurm = own+by, machine+by, slurm+by }
	answer := func(takes time.Duration) {
		sent := d.Now()
		after(takes / 2)
		at := start.Add(slurm).Truncate(time.Second)
		after(takes - takes/2)
		d.sees(sent, at)
	}
	is := func(what string, lead time.Duration) {
		t.Helper()
		if by := d.Clock().Sub(start.Add(slurm)); by < -ClockSlack || by > ClockSlack {
			t.Errorf("%s: its time is %v ahead of slurmctld's", what, by)
		}
		if by := d.Lead() - lead; by.Abs() > time.Second || (lead == 0) != (d.Lead() == 0) {
			t.Errorf("%s: slurmctld's clock is %v ahead, not %v", what, d.Lead(), lead)
		}
	}
	for range 20 {
		answer(300 * time.Millisecond)
		is("as the machine's", 0)
	}
	slurm -= 2 * time.Minute
	answer(time.Millisecond)
	is("slurmctld's was set", -2*time.Minute)
	for range 20 {
		answer(900 * time.Millisecond)
		is("apart", -2*time.Minute)
	}
	answer(time.Minute)
	is("an answer that takes a minute", -2*time.Minute)
	d.sees(d.Now(), time.Time{})
	is("an answer without a time", -2*time.Minute)
	machine -= time.Hour
	is("the machine's was set", 58*time.Minute)
	answer(time.Millisecond)
	is("and slurmctld answered", 58*time.Minute)
	machine = slurm
	answer(time.Millisecond)
	is("repaired", 0)
	machine, slurm = machine+time.Hour, slurm+time.Hour
	is("both are set", 0)

	own, machine = 0, 0 // at a start
	slurm = 90 * time.Second
	d = New(nil, d.Now)
	d.Machine = clock(&machine)
	own += d.Begin(d.Now(), start.Add(slurm).Truncate(time.Second))
	is("at the start", 90*time.Second)
	if by := d.Clock().Sub(d.Now()); by != 0 {
		t.Errorf("its own clock was not set: %v", by)
	}
	if err := d.Misread(); err != nil {
		t.Error(err)
	}
	d = New(away{}, d.Now)
	d.Machine = clock(&machine)
	if _, err := d.ReadClock(t.Context()); err == nil || d.Misread() != nil {
		t.Error("the clock of a slurmctld that is away was read")
	}
	if answer(time.Millisecond); d.Misread() == nil {
		t.Error("the sidecar goes on after it read its database by another clock")
	}
}

// away is a Slurm that does not answer.
type away struct{ Slurm }

func (away) Reservations(context.Context) ([]slurmctl.Reservation, error) {
	return nil, slurmctl.ErrUnreachable
}
