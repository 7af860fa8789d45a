package request

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// TestMinutes checks that limits on a job's time count for each job of a chain.
func TestMinutes(t *testing.T) {
	p := planner.Profile{{Duration: 61, Nodes: 1}, {Duration: 3600, Nodes: 2}}
	if job, chain := Minutes(p, false), Minutes(p, true); job != 62 || chain != 60 {
		t.Errorf("%d minutes as one job, want 62; %d as a chain, want 60", job, chain)
	}
}
