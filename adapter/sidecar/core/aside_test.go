package core

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/planner"
)

// TestHandlingNamesTheJob has the note name the job whose handling panics, and no job once all
// are handled.
func TestHandlingNamesTheJob(t *testing.T) {
	b := newBench(t, 4)
	var h msg.Handling
	adopt.NoteIn(b.Core, &h)
	b.Evolving(1, 10, "1@1m", 0)
	bad := b.Evolving(2, 10, "1@1m", 0)
	b.Evolving(3, 10, "1@1m", 0)
	view.ViewOf(b.Core)
	if id, _, _ := h.At(); id != 0 {
		t.Errorf("job %d is noted after all", id)
	}
	bad.Plan, bad.Profile = []msg.PlannedStep{{}, {}}, planner.Profile{{Duration: 1, Nodes: 1}} // which never is
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing has panicked")
			}
		}()
		view.ViewOf(b.Core)
	}()
	if id, submitted, stage := h.At(); id != 2 || submitted.Unix() != bad.Submitted.Unix() || stage != msg.First {
		t.Errorf("job %d of %v is noted, at stage %d", id, submitted, stage)
	}
	h.Done()
	bad.Plan = nil
	adopt.Settle(b.Core)
	view.ViewOf(b.Core)
	for j := range plan.Each(b.Core, b.Active) {
		if id, _, stage := h.At(); id != j.BaseID() || stage != msg.Again {
			t.Errorf("job %d at stage %d is noted, want %d", id, stage, j.BaseID())
		}
		for range plan.Each(b.Core, b.Active) {
			break
		}
		if id, _, _ := h.At(); id != j.BaseID() {
			t.Errorf("job %d is noted after a look at others, want %d", id, j.BaseID())
		}
	}
	if id, _, _ := h.At(); id != 0 {
		t.Errorf("job %d is noted after all", id)
	}
}
