package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestStartedAt: a job that Slurm started right before the clock was set back has not
// started in the future, and its next step does not wait until then; one that it started
// right before the clock was set forward has not overrun.
func TestStartedAt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ start, queued, want time.Duration }{ // from now
		{start: -time.Hour, queued: -2 * time.Hour, want: -time.Hour},
		{0, -time.Second, 0},
		{time.Second, 0, 0}, // Slurm's clock may be a little ahead: a step that ends at once did not end before it began
		{-time.Second, 0, -time.Second},
		{time.Hour, -time.Second, 0},
		{3 * time.Second, -time.Second, 0},
		{-time.Hour, -time.Second, -time.Second},
		{-4 * time.Second, -time.Second, -time.Second},
	} {
		if got := startedAt(&slurmctl.Job{StartTime: now.Add(c.start)}, now.Add(c.queued), now).Sub(now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got := startedAt(&slurmctl.Job{StartTime: now.Add(-time.Hour)}, time.Time{}, now).Sub(now); got != -time.Hour {
		t.Errorf("found running: %v", got)
	}
}
