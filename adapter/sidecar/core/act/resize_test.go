package act

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestExpanderLimit: a job that brings nodes lasts as long as the base job may, in whole minutes
// rounded up, unless others have the nodes right after that.
func TestExpanderLimit(t *testing.T) {
	const never = 0
	for _, c := range []struct {
		left     time.Duration // of the base job's limit
		reserved time.Duration // from when on the nodes are; never
		want     time.Duration
		fits     bool
	}{
		{slurmctl.Unlimited, time.Hour, slurmctl.Unlimited, true},
		{19*time.Minute + 38*time.Second, never, 20 * time.Minute, true},
		{19*time.Minute + 38*time.Second, 20*time.Minute + plan.ExpanderBegins, 20 * time.Minute, true},
		{19*time.Minute + 38*time.Second, 19*time.Minute + 50*time.Second, 19 * time.Minute, true},
		{20 * time.Minute, 20 * time.Minute, 19 * time.Minute, true}, // it begins a little later
		{20*time.Minute + 5*time.Second, 20*time.Minute + 5*time.Second, 20 * time.Minute, true},
		{20 * time.Minute, 10 * time.Minute, 21 * time.Minute, true}, // the limit reaches into it anyway
		{time.Minute + 4*time.Second, time.Minute + 4*time.Second, time.Minute, false},
		{30 * time.Second, time.Minute + plan.ExpanderBegins, time.Minute, true},
		{30 * time.Second, never, time.Minute, true},
		{-time.Minute, never, time.Minute, true}, // Slurm lets jobs overrun (OverTimeLimit)
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(1, 1, "1@10m,2@10m", time.Hour)
		if j.Record.EndTime = b.Now.Add(c.left); c.left == slurmctl.Unlimited {
			j.Record.TimeLimit, j.Record.EndTime = slurmctl.Unlimited, time.Time{}
		}
		if c.reserved != never {
			b.Reserve("maint", c.reserved, time.Hour, 2, 3)
		}
		if limit, fits := ExpanderLimit(b.Core, j, []string{"n2"}); limit != c.want || fits != c.fits {
			t.Errorf("%v left, reserved in %v: limit %v, fits %v; want %v, %v", c.left, c.reserved, limit, fits, c.want, c.fits)
		}
		if limit, _ := ExpanderLimit(b.Core, j, []string{"n4"}); c.left != slurmctl.Unlimited && limit < c.left {
			t.Errorf("%v left, others reserved: limit %v", c.left, limit)
		}
	}
}
