package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestMarkedByUser: the mark of a job that was let go, which users can write, lets nobody keep nodes of a running job that
// the sidecar drives.
func TestMarkedByUser(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   bool // it is let go
	}{
		"running":                         {func(b *statetest.Bench, j *state.Job) { b.Runs(j, "n1") }, false},
		"waiting":                         {func(b *statetest.Bench, j *state.Job) { b.Runs(j, "n1"); b.Waits(j) }, false},
		"queued":                          {func(*statetest.Bench, *state.Job) {}, true},
		"running, everything is released": {func(b *statetest.Bench, j *state.Job) { b.Runs(j, "n1"); b.Config.Drain = "release" }, true},
		"running, marked while no sidecar was up": {func(b *statetest.Bench, j *state.Job) { b.Runs(j, "n1"); j.Unmarked = false }, true},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(1, 1, "1@10m,2@10m", time.Hour)
		Follow(b.Core, b.Seen) // as its user submitted it
		c.change(b, j)
		b.Seen.ByID[1].Comment = request.LetGo("")
		b.Later(time.Minute)
		for range 2 {
			Follow(b.Core, b.Seen)
		}
		if got := len(b.Active) == 0; got != c.want {
			t.Errorf("%s: let go: %v", name, got)
		}
	}
}
