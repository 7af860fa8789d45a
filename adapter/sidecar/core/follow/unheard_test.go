package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestUnheard: a restarted slurmctld has not heard of its idle nodes yet. They count as nodes that come soon: a
// running job keeps its plan, even if a growth is due, and a job that begins gets one.
func TestUnheard(t *testing.T) {
	for name, after := range map[string]time.Duration{"long before the growth": time.Minute, "as it is due": 10 * time.Minute} {
		b := statetest.New(t, 2)
		j := b.Evolving(1, 1, "1@10m,2@10m", time.Hour)
		b.Runs(j, "n1")
		b.Plans(j, "0-600 n1", "600-1200 n[1-2]")
		b.Later(after)
		b.Seen.Nodes[1].State = "unknown"
		if refit.FollowPlans(b.Core, b.Seen); statetest.Planned(j) != "0-600 n1, 600-1200 n[1-2]" {
			t.Errorf("%s: %s", name, statetest.Planned(j))
		}
	}
	b := statetest.New(t, 2)
	j := b.Evolving(1, 1, "1@10m,2@10m", time.Hour)
	b.Plans(j, "5-605 n1", "605-1205 n[1-2]")
	r := b.Seen.ByID[1]
	runs(b, r, "n1")
	b.Seen.Nodes[1].State = "unknown"
	if Follow(b.Core, b.Seen); statetest.Planned(j) != "0-600 n1, 600-1200 n[1-2]" {
		t.Errorf("it starts: %s", statetest.Planned(j))
	}
	for _, kind := range b.Events() {
		if kind == "delayed" {
			t.Error("the growth is delayed")
		}
	}
}
