package controller

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestStartedAt: a job that Slurm started right before the clock was set back has not
// started in the future, and its next step does not wait until then.
func TestStartedAt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for after, want := range map[time.Duration]time.Duration{
		-time.Hour: -time.Hour, 0: 0, time.Second: time.Second, // Slurm's seconds are rounded
		time.Hour: 0, 3 * time.Second: 0,
	} {
		if got := startedAt(&slurmctl.Job{StartTime: now.Add(after)}, now).Sub(now); got != want {
			t.Errorf("%v from now: %v, want %v", after, got, want)
		}
	}
}
