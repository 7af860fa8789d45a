package hold

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestBudget: two nodes held for half an hour are one node-hour of their owners; a growth without a hold is none. A
// stock job that is held up counts, one that is no longer does not.
func TestBudget(t *testing.T) {
	b := statetest.New(t, 8)
	j, other := b.Evolving(1, 1, "1@30m,3@30m", time.Hour), b.Evolving(2, 1, "1@30m,3@30m", time.Hour)
	b.Runs(j, "n1")
	b.Plans(j, "0-1800 n1", "1800-3600 n[1-3]")
	b.Runs(other, "n4")
	b.Plans(other, "0-1800 n4", "1800-3600 n[4-6]")
	j.Account = "physics"
	b.HoldNames[state.HoldKey{Job: 1, Step: 2}] = "evo_1_2_1"
	b.Ours = []state.OwnHold{{Name: "evo_1_2_1"}}
	for id := 7; id <= 9; id++ {
		b.Stock(id, 1, 1, time.Hour)
	}
	b.Delays.Jobs[7] = &state.HeldUp{Now: true, Since: b.Now.Add(-time.Minute)}
	b.Delays.Jobs[8] = &state.HeldUp{Now: true, Since: b.Now.Add(-3 * time.Minute)}
	b.Delays.Jobs[9] = &state.HeldUp{Since: b.Now.Add(-time.Hour)}
	row := func(scope, name string, holds, nodes int, hours float64) api.BudgetUse {
		return api.BudgetUse{Scope: scope, Name: name, Partition: "main", Holds: 1, MostHolds: holds, Nodes: 2, MostNodes: nodes, NodeHours: 1, MostNodeHours: hours}
	}
	want := api.Budget{Holds: 1, MostHolds: 100, Use: []api.BudgetUse{row("user", "user", 50, 6, 4), row("account", "physics", 75, 8, 6), row("partition", "", 100, 8, 8)},
		Delays: []api.BudgetDelay{{Partition: "main", Budget: 3600, Jobs: 2, Longest: 180}}}
	if got := Budget(b.Core); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
