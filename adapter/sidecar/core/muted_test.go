package core

import (
	"fmt"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// refusals are the events about refused changes among effects.
func refusals(effects []msg.Effect) (all []msg.AddEvent) {
	for _, e := range effects {
		if e, ok := e.(msg.AddEvent); ok && e.Kind == "change refused" {
			all = append(all, e)
		}
	}
	return all
}

// TestRefusedChanges: 3,000 refused changes leave some events, and the last one, which says how
// many were left out, once there may be one more, or when the job ends. Each is answered.
func TestRefusedChanges(t *testing.T) {
	b, mine, _, held := twoUsers(t)
	step(b.Core, b.Now, held...)
	written := 0
	for i := range uint64(3000) {
		ask := msg.Call{ID: i + 1, Job: mine.SlurmID, Change: &api.ChangeRequest{ID: "1", Update: &api.Update{Profile: fmt.Sprintf("%d@10m", 9+i%40)}}}
		effects := step(b.Core, b.Now, ask)
		if _, tries, replies := outcome(effects); len(tries) == 1 {
			effects = step(b.Core, b.Now, tries[0].Run())
		} else if len(replies) != 1 {
			t.Fatalf("call %d is neither planned nor answered", i)
		}
		if _, _, replies := outcome(effects); len(replies) != 1 {
			t.Fatalf("call %d is not answered", i)
		}
		written += len(refusals(effects))
	}
	if written != state.JobEvents {
		t.Errorf("%d events are written, want %d", written, state.JobEvents)
	}
	state.UnmuteAll(b.Core)
	if len(refusals(b.Effects)) > 0 {
		t.Errorf("%v is written at once", b.Effects)
	}
	last := func(want int) {
		t.Helper()
		all := refusals(b.Effects)
		b.Effects = nil
		if len(all) != 1 || all[0].Detail.(map[string]any)["suppressed"] != want {
			t.Errorf("%v is written, want the last one with %d suppressed", all, want)
		}
	}
	b.Now = b.Now.Add(state.JobEvery)
	state.UnmuteAll(b.Core)
	last(3000 - state.JobEvents - 1)
	for range 3 {
		b.Event(mine, "change refused", map[string]any{"why": "x"})
	}
	b.Event(mine, "ended", nil)
	last(2)
}
