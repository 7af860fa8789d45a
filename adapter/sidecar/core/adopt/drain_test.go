package adopt

import (
	"context"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestPeakOfStopped: a user who stops the commands that run in the user's name gets no second try with the largest step.
func TestPeakOfStopped(t *testing.T) {
	b := statetest.New(t, 4)
	b.Evolving(9, 1, "1@10m,4@10m", time.Hour)
	b.Active, b.Config.Drain = nil, "release as=peak"
	delete(b.ByID, 9)
	LeaveDrained(b.Core, b.Seen.ByID[9], Stranger(b.Seen.ByID[9], "drained"), time.Time{}, 4)
	Release(b.Core, b.Seen)
	j, p, o := b.Ends(context.DeadlineExceeded, nil)
	if SettleLeave(b.Core, j, p, o); !b.Refused[9].PeakRefused {
		t.Errorf("it is tried again: %+v", b.Refused[9])
	}
}

// TestReleaseNamesArrays: the rest of an array that is let go has its user's name again, and other jobs keep theirs.
func TestReleaseNamesArrays(t *testing.T) {
	for name, c := range map[string]struct {
		display string
		tasks   int
		want    string
	}{
		"an array": {"9_[3-40]", 38, "work"},
		"a job":    {"9", 1, ""},
	} {
		b := statetest.New(t, 4)
		r := b.Stock(9, 1, 1, time.Hour)
		r.Name, r.Display, r.ArrayJobID, r.ArrayTasks, r.StartTime = "work (waiting)", c.display, 9, c.tasks, b.Now.Add(Parked)
		b.Config.Drain = "release"
		LeaveDrained(b.Core, r, Stranger(r, "drained"), time.Time{}, 1)
		Release(b.Core, b.Seen)
		u, _ := b.Newest().Task.Command.(msg.Update)
		if u.Change.Name != c.want || !u.Change.StartNow {
			t.Errorf("%s: %+v, want the name %q", name, u.Change, c.want)
		}
	}
}
