package adopt

import (
	"context"
	"testing"
	"time"

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
