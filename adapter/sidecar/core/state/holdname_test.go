package state_test

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// TestParseHoldName: only names as the sidecar gives them are taken for its own, and the
// next one is such a name, too.
func TestParseHoldName(t *testing.T) {
	for _, own := range []state.OwnName{{1, 1, 0}, {4711, 2, 13}, {1<<32 - 1, 999_999_999, 999_999_999}} {
		if got, ours := state.ParseHoldName(own.String()); !ours || got != own {
			t.Errorf("%s: %+v, %v", own, got, ours)
		}
	}
	for _, name := range []string{"", "evo_", "evo_1", "evo_1_2", "evo_1_2_", "evo_1_2_3_4", "evo_1_2_3x", "xevo_1_2_3", "evo_-1_2_3", "evo_+1_2_3",
		"evo_1_2_3\n", "evo_ 1_2_3", "evo_4294967296_1_1", "evo_12345678901_1_1", "evo_1_1234567890_1", "evo_1_1_1234567890", "EVO_1_2_3", "evo__2_3"} {
		if got, ours := state.ParseHoldName(name); ours {
			t.Errorf("%q: %+v", name, got)
		}
	}
}
