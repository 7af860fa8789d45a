package hold

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// TestWhole: which nodes can be given back where a job that runs cannot be changed.
func TestWhole(t *testing.T) {
	held := []msg.Part{{1, 1, []string{"n1"}}, {2, 2, []string{"n2", "n3"}}, {3, 3, []string{"n4"}}}
	for surplus, want := range map[string]bool{"n4": true, "n2 n3 n4": true, "n2 n3": true, "n2": false, "n1 n4": false, "": true} {
		if Whole(held, strings.Fields(surplus)) != want {
			t.Errorf("to give back %q: %v", surplus, !want)
		}
	}
}
