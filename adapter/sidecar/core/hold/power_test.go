package hold

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
)

// TestPowerOccupancy: nodes that are off are free later, not never.
func TestPowerOccupancy(t *testing.T) {
	b := statetest.New(t, 1)
	c, s, now := b.Core, b.Seen, b.Now
	c.Power.SetSaving(statetest.SavesPower)
	s.Nodes[0].Flags = "~"
	WatchPower(c, s)
	if got := follow.Foreign(c, s, now.Unix()).Window([]int{0}, msg.Rank{}); !slices.Equal(got, []planner.NodeBusy{{Node: 0, Start: 0, End: 70}}) {
		t.Errorf("a node that is off is busy %v", got)
	}
	if slurm.Free(s, []string{"n1"}) {
		t.Error("a node that is off is free at once")
	}
	c.Power.Denied = now.Add(time.Hour)
	if WatchPower(c, s); !slurm.Free(s, []string{"n1"}) {
		t.Error("it is not free for Slurm to switch on")
	}
	if words := Switching(s, []string{"n1"}); !strings.Contains(words, "switched on") {
		t.Errorf("in words: %q", words)
	}
}
