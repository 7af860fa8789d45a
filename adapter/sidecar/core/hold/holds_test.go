package hold

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestWhole: which nodes can be given back where a job that runs cannot be changed.
func TestWhole(t *testing.T) {
	held := []msg.Part{{1, 1, []string{"n1"}}, {2, 2, []string{"n2", "n3"}}, {3, 3, []string{"n4"}}}
	for surplus, want := range map[string]bool{"n4": true, "n2 n3 n4": true, "n2 n3": true, "n2": false, "n1 n4": false, "": true} {
		if Whole(held, strings.Fields(surplus)) != want {
			t.Errorf("to give back %q: %v", surplus, !want)
		}
	}
}

// TestForsaken: the hold of a promise that lapsed is given up while its job is being started, and until then nothing else
// is done with it, whatever is planned meanwhile.
func TestForsaken(t *testing.T) {
	b := statetest.New(t, 4)
	j := b.Evolving(1, 1, "1@10m,3@10m", time.Hour)
	j.State = row.Starting
	b.Plans(j, "0-600 n1", "600-1200 n[1-3]")
	SetHold(b.Core, slurmctl.Reservation{Name: "evo_1_2_1", Nodes: []string{"n2", "n3"}, Start: b.Now.Add(10 * time.Minute), End: b.Now.Add(21 * time.Minute), Users: []string{"root"}, Flags: msg.HoldFlags})
	b.Do(j, "start", "evo_1_1_1", state.KindStart, msg.Start{Job: 1, Hold: "evo_1_1_1"}, state.Args{State: row.Starting})
	b.Tasks()
	for _, one := range []struct{ plan, want string }{{"600-1200 n[1-3]", ""}, {"", "give up evo_1_2_1"}, {"600-1200 n[1-4]", ""}} {
		b.Plans(j, strings.Split(strings.Trim("0-600 n1,"+one.plan, ","), ",")...)
		SyncHolds(b.Core, b.Seen)
		if got := strings.Join(b.Tasks(), "; "); got != one.want {
			t.Errorf("with plan %s: %q, not %q", statetest.Planned(j), got, one.want)
		}
	}
	b.Runs(j, "n1")
	j.Busy = false
	SyncHolds(b.Core, b.Seen)
	if _, there := HoldFor(b.Core, j, 2); there || len(b.Tasks()) > 0 {
		t.Error("a hold that is being given up is used")
	}
}

// TestHoldsOutlastPolls checks that holds last until the next poll can have come, however far apart polls come.
func TestHoldsOutlastPolls(t *testing.T) {
	b := statetest.New(t, 4)
	j := b.Evolving(1, 1, "1@10m,3@10m", time.Hour)
	b.Runs(j, "n1")
	b.Plans(j, "0-600 n1", "600-1200 n[1-3]")
	for _, c := range []struct{ pause, beyond time.Duration }{{0, time.Minute}, {5 * time.Second, time.Minute}, {time.Minute, 3 * time.Minute}, {10 * time.Minute, 11 * time.Minute}} {
		b.Pace.Pause = c.pause
		all := HoldsOf(b.Core, j, b.Now.Unix())
		if len(all) != 1 || all[0].End != j.Plan[1].End+int64(c.beyond/time.Second) {
			t.Errorf("with a pause of %v: %+v, want the end at %d plus %v", c.pause, all, j.Plan[1].End, c.beyond)
		}
	}
}
