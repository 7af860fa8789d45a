package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestAskDBD: slurmdbd is asked right before a step ends, so that a resize at its end need
// not ask; not in between, and not where nothing is resized.
func TestAskDBD(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	config := slurmctl.Config{Version: "22.05.8", Values: map[string]string{"AccountingStorageType": "accounting_storage/slurmdbd"}}
	for _, c := range []struct {
		name    string
		drive   string
		nodes   int   // of the next step; it has 2
		at      int64 // seconds after the step's beginning
		answers int64 // the last answer
		asks    bool
		needs   bool // what begins at that time
	}{
		{"in the middle", "merge", 4, 50, 0, false, true},
		{"about to grow", "merge", 4, 97, 0, true, true},
		{"asked already", "merge", 4, 98, 96, false, false},
		{"a little late", "merge", 4, 103, 96, true, false},
		{"long overdue", "merge", 4, 120, 96, false, true},
		{"about to shrink", "merge", 1, 97, 0, true, true},
		{"beside it", "companion", 4, 97, 0, false, true},
		{"the same", "merge", 2, 97, 0, false, true},
		{"the clock was set back", "merge", 4, 97, 500, true, true},
	} {
		j := &job{Job: &row.Job{State: row.Running, Step: 1, Drive: c.drive, StepStarted: begun,
			Profile: planner.Profile{{Duration: 100, Nodes: 2}, {Duration: 100, Nodes: c.nodes}}},
			held: []Part{{ID: 7, Nodes: []string{"n1", "n2"}}}}
		core := &Core{now: begun.Add(time.Duration(c.at) * time.Second)}
		core.active, core.slurmConfig = []*job{j}, config
		core.dbdAnswered = begun.Add(time.Duration(c.answers) * time.Second)
		core.work.pending, core.work.keys = map[int64]func(Outcome){}, map[string]bool{}
		if needs := core.needsDBD(); needs != c.needs {
			t.Errorf("%s: needs to ask: %v, want %v", c.name, needs, c.needs)
		}
		core.askDBD()
		if asks := len(core.effects) > 0; asks != c.asks {
			t.Errorf("%s: asked: %v, want %v", c.name, asks, c.asks)
		}
		if len(core.effects) == 0 {
			continue
		}
		core.settled(Outcome{Task: core.work.last})
		if core.needsDBD() {
			t.Errorf("%s: its answer does not count", c.name)
		}
	}
}
