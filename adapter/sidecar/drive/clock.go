package drive

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// slurmClock is slurmctld's clock. It is the machine's, unless slurmctld runs on another host, whose clock differs.
// Each poll shows its time to the second.
type slurmClock struct {
	mu    sync.Mutex
	read  bool // before the first poll
	apart bool
	ahead time.Duration // if apart: of the driver's own clock, which is never set
}

// ClockSlack is the difference of two clocks that counts as none: less is being slewed, not set.
const ClockSlack = 2 * time.Second

// answersSoon is how long an answer may take from which slurmctld's time is read.
const answersSoon = 5 * time.Second

// Clock returns the time by slurmctld's clock.
func (d *Driver) Clock() time.Time {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	if d.clock.apart {
		return d.Now().Add(d.clock.ahead)
	}
	return d.Machine()
}

// Lead returns how far slurmctld's clock is ahead of the machine's, in whole seconds; 0 if both agree.
func (d *Driver) Lead() time.Duration {
	if by := d.Clock().Sub(d.Machine().Round(0)); by.Abs() > ClockSlack {
		return by.Round(time.Second)
	}
	return 0
}

// ReadClock reads slurmctld's clock before the first poll, and returns how far it is ahead of the driver's own. The
// caller sets that by as much.
func (d *Driver) ReadClock(ctx context.Context) (by time.Duration, err error) {
	meter, sent := &slurmctl.Meter{}, d.Now()
	if _, err = d.Slurm.Reservations(slurmctl.WithMeter(ctx, meter)); err == nil {
		by = d.Begin(sent, meter.Clock())
	}
	return by, err
}

// Begin does what ReadClock does, with the answer `at` to a command that began at `sent`.
func (d *Driver) Begin(sent, at time.Time) (by time.Duration) {
	d.sees(sent, at)
	by, d.clock.ahead, d.clock.read = d.clock.ahead, 0, true
	return by
}

// Misread returns an error if the first poll shows that slurmctld's clock is another than the one by which the caller
// read its database, since slurmctld did not answer ReadClock.
func (d *Driver) Misread() error {
	if lead := d.Lead(); !d.clock.read && lead != 0 {
		return fmt.Errorf("slurmctld did not answer at the start, and its clock is %v ahead of this host's: start again to go by it", lead)
	}
	return nil
}

// sees learns slurmctld's time from the answer to a command, or nothing if that has none (zero).
func (d *Driver) sees(sent, at time.Time) {
	now, lead := d.Now(), d.Clock().Sub(d.Machine().Round(0))
	if at.IsZero() || now.Sub(sent) > answersSoon {
		return
	}
	ahead := d.Machine().Round(0).Sub(now)
	least, most := at.Sub(now), at.Add(time.Second).Sub(sent) // slurmctld's lead over the own clock
	agrees := func(by time.Duration) bool { return by >= least-ClockSlack && by <= most+ClockSlack }
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	switch {
	case agrees(ahead + lead): // as known
		d.clock.apart = d.clock.apart && lead.Abs() > ClockSlack
	case agrees(ahead):
		d.clock.apart = false
	default: // plans that a clock behind Slurm's makes begin a second too early, so rather ahead
		d.clock.apart, d.clock.ahead = true, most
	}
}
