package adopt

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestPartsAreRefused checks that a component of a heterogeneous job and a task of an array of chains are not
// adopted, whether they wait or run already: a user can write their markers by hand.
func TestPartsAreRefused(t *testing.T) {
	for display, want := range map[string]string{"7_3": "a chain cannot be an array", "7+0": "heterogeneous jobs cannot be planned"} {
		for _, st := range []slurmctl.JobState{slurmctl.Pending, slurmctl.Running} {
			c := statetest.NewCore(config.Default(), time.Now())
			s := &state.Snapshot{Nodes: []slurmctl.Node{{Name: "n1"}, {Name: "n2"}}}
			r := &slurmctl.Job{ID: 7, Display: display, Heterogenous: strings.Contains(display, "+"), ArrayJobID: 7, ArrayTasks: 1, State: st, Comment: "evo:v2;p=1@1m,2@1m;d=chain;i=1;;"}
			AdoptIfAsked(c, s, r)
			if why := c.Refused[7].Reason; !strings.Contains(why, want) || len(c.Active) > 0 {
				t.Errorf("%s job %s: refused with %q, want %q; %d jobs are adopted", st, display, why, want, len(c.Active))
			}
		}
	}
}
