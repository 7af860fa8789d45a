package follow

import (
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// TestKeeps: what a job whose promise has lapsed counts as having until its limit.
func TestKeeps(t *testing.T) {
	j := &state.Job{Mode: mode.Table[drivemode.Merge], Job: &row.Job{Life: row.Life{State: row.Running, Step: 1, BatchHost: "n3"}, Terms: row.Terms{Profile: planner.Profile{{Duration: 1, Nodes: 3}, {Duration: 1, Nodes: 2}, {Duration: 1, Nodes: 5}}}},
		Sight: state.Sight{Held: []msg.Part{{ID: 7, Nodes: []string{"n1", "n2", "n3"}}}}}
	if got := Keeps(j); !slices.Equal(got, []string{"n3", "n2"}) {
		t.Errorf("%v", got)
	}
	j.Step, j.Held[0].Nodes = 2, []string{"n1", "n3"}
	if got := Keeps(j); len(got) != 2 {
		t.Errorf("of a step that grows: %v", got)
	}
}
