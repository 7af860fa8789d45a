package lend

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// parks returns a bench of four nodes with the best-effort job 1, which waits for two to four nodes.
func parks(t *testing.T) (*statetest.Bench, *state.Job) {
	b := statetest.New(t, 4)
	b.Config.Margin, b.Config.PollInterval, b.Config.BestEffort.Enabled = 0, 0, true
	return b, bestEffort(b, 1, "2@1h")
}

func bestEffort(b *statetest.Bench, id int, profile string) *state.Job {
	j := b.Evolving(id, 1, profile, 3*time.Hour)
	j.Malleable = &row.Malleable{Max: []int{4}, BestEffort: row.Requeued}
	return j
}

// TestParked checks when a best-effort job starts, and where.
func TestParked(t *testing.T) {
	// comes adds a job that is planned to start on n1 after some seconds.
	comes := func(b *statetest.Bench, at int) {
		b.Plans(b.Evolving(2, 1, "1@1h", 3*time.Hour), fmt.Sprintf("%d-9000 n1", at))
	}
	// asleep switches nodes off where Slurm saves power. They take 70 s to come up.
	asleep := func(b *statetest.Bench, nodes ...int) {
		b.Power.SetSaving(statetest.SavesPower)
		for _, n := range nodes {
			b.Seen.Nodes[n-1].Flags = "~"
		}
	}
	// comesFirst adds a best-effort job of another user that waits for three nodes since before.
	comesFirst := func(b *statetest.Bench, j *state.Job) {
		other := bestEffort(b, 3, "3@1h")
		other.Submitted = j.Submitted.Add(-time.Second)
		other.UID++
	}
	const waits = "waits for nodes that nobody else has, was promised, or could use"
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string // the nodes, or why it waits
	}{
		"idle nodes":                    {nil, "n[1-2]"},
		"one is promised for just then": {func(b *statetest.Bench, _ *state.Job) { comes(b, 96) }, "n[2-3]"},
		"only that one, just then":      {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n[3-4]", time.Hour); comes(b, 96) }, waits},
		"only that one, a second later": {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n[3-4]", time.Hour); comes(b, 97) }, "n[1-2]"},
		"a stock job could use three":   {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 3, time.Hour) }, waits},
		"a stock job, where jobs keep": {func(b *statetest.Bench, _ *state.Job) {
			b.Config.Malleable.Approach = "pra"
			b.Stock(9, 5, 3, time.Hour)
		}, waits},
		"a stock job could use two":         {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 2, time.Hour) }, "n[3-4]"},
		"reserved before its limit":         {func(b *statetest.Bench, _ *state.Job) { b.Reserve("maint", 2*time.Hour, time.Hour, 1, 3) }, waits},
		"reserved after its limit":          {func(b *statetest.Bench, _ *state.Job) { b.Reserve("maint", 3*time.Hour, time.Hour, 1, 3) }, "n[1-2]"},
		"all are in use":                    {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n[1-3]", time.Hour) }, waits},
		"switched off":                      {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.Enabled = false }, config.NoBestEffort},
		"a bound of the site":               {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.MaxNodes = 1 }, "this site gives the best-effort jobs of a user 1 nodes at most (best_effort.max_nodes), and the job needs 2: give --nodes=MIN-MAX with MIN at most 1"},
		"a bound of the site that it has":   {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.MaxNodes = 2 }, "n[1-2]"},
		"some are off":                      {func(b *statetest.Bench, _ *state.Job) { asleep(b, 1, 3) }, "n[2,4]"},
		"all but one are off":               {func(b *statetest.Bench, _ *state.Job) { asleep(b, 1, 2, 3) }, "n[1,4]"},
		"Slurm may not switch them on":      {func(b *statetest.Bench, _ *state.Job) { asleep(b, 1, 2, 3); b.Power.On = false }, waits},
		"one off is promised for just then": {func(b *statetest.Bench, _ *state.Job) { asleep(b, 1, 2, 3, 4); comes(b, 70+96) }, "n[2-3]"},
		"only that one": {func(b *statetest.Bench, _ *state.Job) {
			asleep(b, 1, 2)
			b.StockRuns(9, "n[3-4]", time.Hour)
			comes(b, 70+96)
		}, waits},
		"only that one, a second after": {func(b *statetest.Bench, _ *state.Job) {
			asleep(b, 1, 2)
			b.StockRuns(9, "n[3-4]", time.Hour)
			comes(b, 70+97)
		}, "n[1-2]"},
		"one of its plan is promised as its hold changes": {func(b *statetest.Bench, j *state.Job) {
			j.Busy = true
			b.Plans(j, "0-3600 n[1-2]")
			b.StockRuns(9, "n[3-4]", time.Hour)
			comes(b, 96)
		}, waits},
		"nodes that come up are wanted by a stock job": {func(b *statetest.Bench, j *state.Job) {
			asleep(b, 1, 2, 3)
			b.Plans(j, "70-3670 n[1,4]")
			b.Stock(9, 5, 4, time.Hour)
		}, waits},
		"held":                          {func(_ *statetest.Bench, j *state.Job) { j.Record.Priority = 0 }, ""},
		"Slurm resizes a job only once": {func(b *statetest.Bench, _ *state.Job) { state.SetFacts(b.Core, mode.Facts{ResizesOnce: true}) }, "a best-effort job gives nodes back while it runs, and a running job cannot be resized here, or only once"},
		"another QOS is charged":        {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.QOS = "idle" }, `this site runs best-effort jobs with --qos=idle, and the job has "" (scontrol update JobId=1 qos=idle)`},
		"another malleable job comes first": {func(b *statetest.Bench, _ *state.Job) {
			first := b.Evolving(3, 1, "1@1h", 3*time.Hour)
			first.Malleable = &row.Malleable{Max: []int{3}}
			b.Runs(first, "n1")
			b.Plans(first, "0-3600 n1")
		}, waits},
		"others could wait for its licences": {func(_ *statetest.Bench, j *state.Job) { j.Record.Licenses = "foo:1" }, "a best-effort job must not ask for licences (foo:1): it would keep them from others; submit it without"},
		"another user came first":            {func(b *statetest.Bench, j *state.Job) { comesFirst(b, j) }, waits},
		"another user came first, and it is its turn": {func(b *statetest.Bench, j *state.Job) {
			comesFirst(b, j)
			j.TakesTurn(b.Now.Add(time.Second))
		}, "n[1-2]"},
		"another user came first, and its turn is over": {func(b *statetest.Bench, j *state.Job) {
			comesFirst(b, j)
			j.TakesTurn(b.Now)
		}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := parks(t)
			if c.change != nil {
				c.change(b, j)
			}
			hold.TakeReservations(b.Core, b.Seen)
			Manage(b.Core, b.Seen)
			got := slurmctl.CompressNodes(j.Planned())
			if got == "" {
				got = j.Reason().Words()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLeaves checks when a best-effort job that runs on n1 and n2, and is lent n3, is demanded which nodes.
func TestLeaves(t *testing.T) {
	comes := func(at int, node string) func(b *statetest.Bench, j *state.Job) {
		return func(b *statetest.Bench, _ *state.Job) {
			b.Plans(b.Evolving(2, 1, "1@1h", 3*time.Hour), fmt.Sprintf("%d-9000 %s", at, node))
		}
	}
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"others have enough":         {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 1, time.Hour) }, ""},
		"a stock job could use one":  {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 2, time.Hour) }, "must shrink n3"},
		"a stock job could use more": {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 3, time.Hour) }, "must shrink n[1-3]"},
		"a stock job, where jobs keep": {func(b *statetest.Bench, _ *state.Job) {
			b.Config.Malleable.Approach = "pra"
			b.Stock(9, 5, 2, time.Hour)
		}, "must shrink n3"},
		"a start on the lent node": {comes(36, "n3"), "must shrink n3"},
		"a start on its own node":  {comes(36, "n1"), "must shrink n[1-3]"},
		"a start a second later":   {comes(37, "n1"), "grow n4"},
		"another user has none, and it has had its turn": {func(b *statetest.Bench, j *state.Job) {
			b.StockRuns(9, "n4", time.Hour)
			bestEffort(b, 2, "1@1h").UID++
			j.Started = b.Now.Add(-bestEffortTurn)
		}, "must shrink n3"},
		"another user has none, too soon": {func(b *statetest.Bench, j *state.Job) {
			b.StockRuns(9, "n4", time.Hour)
			bestEffort(b, 2, "1@1h").UID++
			j.Started = b.Now.Add(time.Second - bestEffortTurn)
		}, ""},
		"its own user has another one": {func(b *statetest.Bench, j *state.Job) {
			b.StockRuns(9, "n4", time.Hour)
			bestEffort(b, 2, "1@1h")
			j.Started = b.Now.Add(-bestEffortTurn)
		}, ""},
		"it is another user's turn": {func(b *statetest.Bench, _ *state.Job) {
			other := bestEffort(b, 2, "2@1h")
			other.UID++
			other.TakesTurn(b.Now.Add(time.Second))
		}, ""},
		"the site gives its user no more": {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.MaxNodes = 3 }, ""},
		"the site gives its user one":     {func(b *statetest.Bench, _ *state.Job) { b.Config.BestEffort.MaxNodes = 4 }, "grow n4"},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := parks(t)
			b.Runs(j, "n[1-2]")
			b.Has(j, "n[1-3]")
			b.Plans(j, "0-3600 n[1-2]")
			c.change(b, j)
			hold.TakeReservations(b.Core, b.Seen)
			Manage(b.Core, b.Seen)
			if got := offer(j); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
