package core

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// TestHandlingNamesTheJob has the note name the job whose handling panics, and no job once all
// are handled.
func TestHandlingNamesTheJob(t *testing.T) {
	b := newBench(t, 4)
	var h Handling
	b.NoteIn(&h)
	b.evolving(1, 10, "1@1m", 0)
	bad := b.evolving(2, 10, "1@1m", 0)
	b.evolving(3, 10, "1@1m", 0)
	b.View()
	if id, _, _ := h.At(); id != 0 {
		t.Errorf("job %d is noted after all", id)
	}
	bad.plan, bad.Profile = []plannedStep{{}, {}}, planner.Profile{{Duration: 1, Nodes: 1}} // which never is
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing has panicked")
			}
		}()
		b.View()
	}()
	if id, submitted, stage := h.At(); id != 2 || submitted.Unix() != bad.Submitted.Unix() || stage != First {
		t.Errorf("job %d of %v is noted, at stage %d", id, submitted, stage)
	}
	h.Done()
	bad.plan = nil
	b.settle()
	b.View()
	for j := range b.each(b.active) {
		if id, _, stage := h.At(); id != j.id() || stage != Again {
			t.Errorf("job %d at stage %d is noted, want %d", id, stage, j.id())
		}
		for range b.each(b.active) {
			break
		}
		if id, _, _ := h.At(); id != j.id() {
			t.Errorf("job %d is noted after a look at others, want %d", id, j.id())
		}
	}
	if id, _, _ := h.At(); id != 0 {
		t.Errorf("job %d is noted after all", id)
	}
}
