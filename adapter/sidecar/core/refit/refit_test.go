package refit

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestKeeps: what a job whose promise has lapsed counts as having until its limit.
func TestKeeps(t *testing.T) {
	j := &state.Job{Mode: drivemode.Merge.Means(), Job: &row.Job{Life: row.Life{State: row.Running, Step: 1, BatchHost: "n3"}, Terms: row.Terms{Profile: planner.Profile{{Duration: 1, Nodes: 3}, {Duration: 1, Nodes: 2}, {Duration: 1, Nodes: 5}}}},
		Sight: state.Sight{Held: []msg.Part{{ID: 7, Nodes: []string{"n1", "n2", "n3"}}}}}
	if got := Keeps(j); !slices.Equal(got, []string{"n3", "n2"}) {
		t.Errorf("%v", got)
	}
	j.Step, j.Held[0].Nodes = 2, []string{"n1", "n3"}
	if got := Keeps(j); len(got) != 2 {
		t.Errorf("of a step that grows: %v", got)
	}
}

// TestOwn checks which nodes are a job's own, and which it is lent, of n1 to n4. Its step has two.
func TestOwn(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(b *statetest.Bench, j *state.Job)
		own, lent string
	}{
		"those of its plan":            {nil, "n[1-2]", "n[3-4]"},
		"planned on others":            {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-600 n[1,4]") }, "n[1,4]", "n[2-3]"},
		"planned without the script's": {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-600 n[3-4]") }, "n[1,3]", "n[2,4]"},
		"slurmctld pins another one":   {func(_ *statetest.Bench, j *state.Job) { j.Record.BatchHost = "n4" }, "n[1,4]", "n[2-3]"},
		"without a plan, the latest go": {func(b *statetest.Bench, j *state.Job) {
			b.Plans(j)
			b.Has(j, "n[3-4]", "n[1-2]")
			j.Held[0].Step, j.Held[1].Step = LentStep, 1
		}, "n[1-2]", "n[3-4]"},
		"it has just what it needs":         {func(b *statetest.Bench, j *state.Job) { b.Has(j, "n[1-2]") }, "n[1-2]", ""},
		"it lacks one":                      {func(b *statetest.Bench, j *state.Job) { b.Has(j, "n1") }, "n1", ""},
		"it is rigid: a shrink was lost":    {func(_ *statetest.Bench, j *state.Job) { j.Malleable = nil }, "n[1-2]", ""},
		"it has not begun: all are its own": {func(_ *statetest.Bench, j *state.Job) { j.State, j.Step = row.Queued, 0 }, "n[1-4]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 1, "2@10m", time.Hour)
			j.Malleable = &row.Malleable{Max: []int{4}}
			b.Runs(j, "n[1-4]")
			b.Plans(j, "0-600 n[1-2]")
			if c.change != nil {
				c.change(b, j)
			}
			if own, lent := slurmctl.CompressNodes(Own(j)), slurmctl.CompressNodes(Lent(j)); own != c.own || lent != c.lent {
				t.Errorf("own %s, lent %s; want %s and %s", own, lent, c.own, c.lent)
			}
		})
	}
}

// TestRefit checks where the second step of a job is planned again, which was promised n1 to n4 in ten minutes.
func TestRefit(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(b *statetest.Bench, j *state.Job)
		want, unfit string
	}{
		"nothing has changed":                 {nil, "0-600 n[1-2], 600-1200 n[1-4]", ""},
		"a promised node is down":             {func(b *statetest.Bench, _ *state.Job) { b.Seen.Nodes[2].State = "down" }, "0-600 n[1-2], 600-1200 n[1-2,4-5]", ""},
		"stock jobs have all others for long": {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(5, "n[3-6]", 15*time.Minute) }, "0-902 n[1-2], 902-1502 n[1-4]", ""},
		"too few nodes are left": {func(b *statetest.Bench, _ *state.Job) {
			for i := range 3 {
				b.Seen.Nodes[2+i].State = "down"
			}
		}, "0-600 n[1-2], 600-1200 n[1-4]", "the nodes of a coming step are not free in time, and its expand limit does not let it wait"},
		"another job was promised them": {func(b *statetest.Bench, _ *state.Job) {
			other := b.Evolving(2, 1, "1@10m,3@5m", time.Hour)
			b.Runs(other, "n6")
			b.Plans(other, "0-600 n6", "600-900 n[4-6]")
		}, "0-902 n[1-2], 902-1502 n[1-4]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			j := b.Evolving(1, 1, "2@10m,4@10m", time.Hour)
			b.Runs(j, "n[1-2]")
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-4]")
			if c.change != nil {
				c.change(b, j)
			}
			unfit := Refit(b.Core, b.Seen, j, statetest.Second, "of a test")
			if got := statetest.Planned(j); got != c.want || unfit != c.unfit {
				t.Errorf("planned %q (%q), want %q (%q)", got, unfit, c.want, c.unfit)
			}
		})
	}
}
