package state_test

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestEventsOfUser: a user has a bounded number of such events for all jobs together; another
// user has its own, and who caused none for a while is forgotten.
func TestEventsOfUser(t *testing.T) {
	b := statetest.New(t, 8)
	for i := range 20 {
		j := b.Evolving(i+1, 100, "1@10m", 0)
		j.UID = 1000 + uint32(i/10)
		for range state.JobEvents {
			b.Event(j, "changed", map[string]any{"to": "1@1m"})
		}
	}
	if n := len(b.Effects); n != 2*state.UserEvents {
		t.Errorf("%d events are written, want %d of each user", n, state.UserEvents)
	}
	b.Now = b.Now.Add(2 * state.UserEvents * state.UserEvery * time.Duration(state.JobEvents))
	state.UnmuteAll(b.Core)
	b.Now = b.Now.Add(2 * state.UserEvents * state.UserEvery)
	if state.UnmuteAll(b.Core); len(b.EventsOf) != 0 {
		t.Errorf("%d users are remembered", len(b.EventsOf))
	}
}

// TestTroubleOfJob checks that a job that Slurm never starts writes a bounded number of events, that these leave room for
// what its user asks, and that the last one is written when the job ends.
func TestTroubleOfJob(t *testing.T) {
	b := statetest.New(t, 8)
	j := b.Evolving(1, 100, "1@10m", 0)
	for i := range 3000 {
		b.Event(j, "parked again", map[string]any{"reason": i})
	}
	if n := len(b.Effects); n != state.JobEvents {
		t.Errorf("%d events are written, want %d", n, state.JobEvents)
	}
	if !b.Event(j, "changed", map[string]any{"to": "1@1m"}) {
		t.Error("a change of its user is not written")
	}
	b.Effects = nil
	b.Event(j, "ended", nil)
	last, _ := b.Effects[0].(msg.AddEvent).Detail.(map[string]any)
	if last["reason"] != 2999 || last["suppressed"] != 3000-state.JobEvents-1 {
		t.Errorf("at its end %v is written", b.Effects)
	}
}

// TestSetbacksOfJob checks that a job whose actions fail and whose growths are late without end writes a bounded number of
// events, and that the last of each is written, with the number of the others: of late growths before the step begins.
func TestSetbacksOfJob(t *testing.T) {
	b := statetest.New(t, 8)
	j := b.Evolving(1, 100, "1@10m,2@10m", 0)
	for i := range 3000 {
		b.Event(j, "failed", map[string]any{"error": i})
		b.Event(j, "delayed", map[string]any{"was": i})
	}
	if n := len(b.Effects); n != 2*state.JobEvents {
		t.Errorf("%d events are written, want %d of each", n, state.JobEvents)
	}
	for _, last := range []string{"step begun", "ended"} {
		b.Effects = nil
		b.Event(j, last, nil)
		event, _ := b.Effects[0].(msg.AddEvent)
		detail, _ := event.Detail.(map[string]any)
		if want := map[string]string{"step begun": "delayed", "ended": "failed"}[last]; len(b.Effects) != 2 || event.Kind != want || detail["suppressed"] != 3000-state.JobEvents-1 {
			t.Errorf("with %q, %v is written, want the last %q first", last, b.Effects, want)
		}
	}
}
