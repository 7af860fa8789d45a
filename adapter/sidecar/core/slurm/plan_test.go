package slurm

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestQueues checks which pending jobs wait only for their turn, or for nodes.
func TestQueues(t *testing.T) {
	for reason, want := range map[string]bool{
		"None": true, "Priority": true, "Resources": true,
		"ReqNodeNotAvail, UnavailableNodes:n1":                      true,
		"Nodes required for job are DOWN, DRAINED or reserved for…": true,
		"BeginTime": false, "Dependency": false, "JobHeldUser": false, "AssocGrpNodeLimit": false, "QOSMaxJobsPerUserLimit": false, "": false, "PriorityX": false,
	} {
		if got := Queues(&slurmctl.Job{Priority: 1, Reason: reason}); got != want {
			t.Errorf("%q: %v", reason, got)
		}
		if Queues(&slurmctl.Job{Priority: 0, Reason: reason}) {
			t.Errorf("%q: a held job queues", reason)
		}
	}
}

// TestSeconds checks that no time limit, however it was written, is longer than the planner's longest step.
func TestSeconds(t *testing.T) {
	for limit, want := range map[time.Duration]int64{
		time.Minute: 60, 1500 * time.Millisecond: 1, 0: 0,
		slurmctl.Unlimited: planner.MaxDuration, time.Duration(math.MaxInt64): min(math.MaxInt64/int64(time.Second), planner.MaxDuration),
	} {
		if got := Seconds(limit); got != want {
			t.Errorf("%v: %d s, want %d", limit, got, want)
		}
	}
}

// TestTurn checks that the tier of the partition counts before any priority.
func TestTurn(t *testing.T) {
	order := []Turn{{math.MinInt, 0}, {-1, math.MaxUint64}, {0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0}, {math.MaxInt, math.MaxUint64}}
	for i, a := range order {
		for k, b := range order {
			if got, want := a.Compare(b), cmp.Compare(i, k); got != want {
				t.Errorf("%v beside %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

// TestReach checks how many seconds away a job's time limit is.
func TestReach(t *testing.T) {
	for name, c := range map[string]struct {
		limit, left time.Duration
		want        int64
	}{
		"it runs":                   {time.Hour, time.Minute, 60},
		"it ends now":               {time.Hour, 0, 0},
		"it overruns":               {time.Hour, -time.Minute, 0},
		"it has not begun":          {time.Hour, noEnd, 3600},
		"no limit":                  {slurmctl.Unlimited, noEnd, planner.MaxDuration},
		"no limit, yet Slurm's end": {slurmctl.Unlimited, time.Minute, planner.MaxDuration},
	} {
		w := statetest.New(t, 1)
		j := w.Evolving(1, 1, "1@1m", c.limit)
		if j.Record.EndTime = (time.Time{}); c.left != noEnd {
			j.Record.EndTime = statetest.Start.Add(c.left)
		}
		if got := Reach(w.Core, j, statetest.Second); got != c.want {
			t.Errorf("%s: %d s, want %d", name, got, c.want)
		}
	}
}
