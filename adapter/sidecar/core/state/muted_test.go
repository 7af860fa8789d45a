package state_test

import (
	"testing"
	"time"

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
