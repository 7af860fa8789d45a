package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// refusals are the events about refused changes among effects.
func refusals(effects []Effect) (all []AddEvent) {
	for _, e := range effects {
		if e, ok := e.(AddEvent); ok && e.Kind == "change refused" {
			all = append(all, e)
		}
	}
	return all
}

// TestRefusedChanges: 3,000 refused changes leave some events, and the last one, which says how
// many were left out, once there may be one more, or when the job ends. Each is answered.
func TestRefusedChanges(t *testing.T) {
	b, mine, _, held := twoUsers(t)
	b.Step(b.now, held...)
	written := 0
	for i := range uint64(3000) {
		ask := Call{ID: i + 1, Job: mine.SlurmID, Change: &api.ChangeRequest{ID: "1", Update: &api.Update{Profile: fmt.Sprintf("%d@10m", 9+i%40)}}}
		effects := b.Step(b.now, ask)
		if _, tries, replies := outcome(effects); len(tries) == 1 {
			effects = b.Step(b.now, tries[0].Run())
		} else if len(replies) != 1 {
			t.Fatalf("call %d is neither planned nor answered", i)
		}
		if _, _, replies := outcome(effects); len(replies) != 1 {
			t.Fatalf("call %d is not answered", i)
		}
		written += len(refusals(effects))
	}
	if written != jobEvents {
		t.Errorf("%d events are written, want %d", written, jobEvents)
	}
	b.unmuteAll()
	if len(refusals(b.effects)) > 0 {
		t.Errorf("%v is written at once", b.effects)
	}
	last := func(want int) {
		t.Helper()
		all := refusals(b.effects)
		b.effects = nil
		if len(all) != 1 || all[0].Detail.(map[string]any)["suppressed"] != want {
			t.Errorf("%v is written, want the last one with %d suppressed", all, want)
		}
	}
	b.now = b.now.Add(jobEvery)
	b.unmuteAll()
	last(3000 - jobEvents - 1)
	for range 3 {
		b.event(mine, "change refused", map[string]any{"why": "x"})
	}
	b.event(mine, "ended", nil)
	last(2)
}

// TestEventsOfUser: a user has a bounded number of such events for all jobs together; another
// user has its own, and who caused none for a while is forgotten.
func TestEventsOfUser(t *testing.T) {
	b := newBench(t, 8)
	for i := range 20 {
		j := b.evolving(i+1, 100, "1@10m", 0)
		j.UID = 1000 + uint32(i/10)
		for range jobEvents {
			b.event(j, "changed", map[string]any{"to": "1@1m"})
		}
	}
	if n := len(b.effects); n != 2*userEvents {
		t.Errorf("%d events are written, want %d of each user", n, userEvents)
	}
	b.now = b.now.Add(2 * userEvents * userEvery * time.Duration(jobEvents))
	b.unmuteAll()
	b.now = b.now.Add(2 * userEvents * userEvery)
	if b.unmuteAll(); len(b.eventsOf) != 0 {
		t.Errorf("%d users are remembered", len(b.eventsOf))
	}
}
