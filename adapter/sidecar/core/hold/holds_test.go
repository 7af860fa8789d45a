package hold

import (
	"fmt"
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

// TestForsaken: the holds of a promise that lapsed are given up while their job is busy with a start, or with a growth of
// another step, and until then nothing else is done with them.
func TestForsaken(t *testing.T) {
	for name, c := range map[string]struct {
		state row.State
		step  int
		kind  state.Kind
		do    msg.Command
		gone  string
	}{
		"a start":                          {row.Starting, 0, state.KindStart, msg.Start{Job: 1, Hold: "evo_1_1_1"}, "give up evo_1_3_1"},
		"a growth without a hold":          {row.Waiting, 1, state.KindGrow, msg.Grow{Base: 1, Step: 2}, "give up evo_1_3_1"},
		"a growth in its hold":             {row.Waiting, 1, state.KindGrow, msg.Grow{Base: 1, Step: 2, Hold: "evo_1_2_1"}, "give up evo_1_3_1"},
		"a growth that the job submits":    {row.Waiting, 1, state.KindSubmit, msg.Grow{Base: 1, Step: 2, Hold: "evo_1_2_1"}, "give up evo_1_3_1"},
		"a growth in that hold":            {row.Running, 3, state.KindGrow, msg.Grow{Base: 1, Step: 3, Hold: "evo_1_3_1"}, ""},
		"a shrink, which takes no seconds": {row.Waiting, 1, state.KindShrink, msg.Shrink{}, ""},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(1, 1, "1@10m,1@10m,3@10m", time.Hour)
		if c.step > 0 {
			b.Runs(j, "n1")
			j.Step = c.step
		}
		j.State = c.state
		SetHold(b.Core, slurmctl.Reservation{Name: "evo_1_3_1", Nodes: []string{"n2", "n3"}, Start: b.Now.Add(20 * time.Minute), End: b.Now.Add(31 * time.Minute), Users: []string{"root"}, Flags: msg.HoldFlags})
		b.Do(j, "acts", "evo_1_1_1", c.kind, c.do, state.Args{State: c.state})
		b.Tasks()
		for _, one := range []struct{ plan, want string }{{"1200-1800 n[1-3]", ""}, {"", c.gone}, {"1200-1800 n[1-4]", ""}} {
			b.Plans(j, strings.Split(strings.Trim("0-600 n1,600-1200 n1,"+one.plan, ","), ",")...)
			SyncHolds(b.Core, b.Seen)
			if got := strings.Join(b.Tasks(), "; "); got != one.want {
				t.Errorf("%s, with plan %s: %q, not %q", name, statetest.Planned(j), got, one.want)
			}
		}
		b.Runs(j, "n1")
		j.Busy = false
		SyncHolds(b.Core, b.Seen)
		if _, there := HoldFor(b.Core, j, 3); c.gone != "" && (there || len(b.Tasks()) > 0) {
			t.Errorf("%s: a hold that is being given up is used", name)
		}
	}
}

// TestFarHoldsInTurn: of holds of queued jobs whose starts recede, the one that lags most is changed first, also behind others
// that need a change all the time.
func TestFarHoldsInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		lags [3]int64 // seconds by which each hold begins too early
		want string
	}{
		"all lag a little":         {[3]int64{20, 20, 60}, "evo_1_1_1"},
		"the last lags by minutes": {[3]int64{20, 20, 61}, "evo_3_1_1"},
		"two lag by minutes":       {[3]int64{20, 120, 90}, "evo_2_1_1"},
	} {
		b := statetest.New(t, 12)
		for i, lag := range c.lags {
			id := i + 1
			j := b.Evolving(id, uint64(9-i), "1@10m", time.Hour)
			j.UID = uint32(1000 + i)
			start := int64(3600)
			b.Plans(j, fmt.Sprintf("%d-%d n%d", start, start+600, id))
			at := time.Unix(statetest.Second+start-lag, 0)
			SetHold(b.Core, slurmctl.Reservation{Name: state.OwnName{Job: slurmctl.JobID(id), Step: 1, Attempt: 1}.String(), Nodes: statetest.Nodes(fmt.Sprintf("n%d", id)), Users: []string{"user"},
				Flags: msg.StartFlags, Start: at, End: at.Add(time.Hour + time.Minute)})
		}
		b.Tasks()
		SyncHolds(b.Core, b.Seen)
		if got := strings.Join(b.Tasks(), "; "); !strings.HasPrefix(got, "change "+c.want+" ") || strings.Contains(got, ";") {
			t.Errorf("%s: %q, want a change of %s", name, got, c.want)
		}
	}
}

// TestHoldsOutlastPolls checks that holds last until the next poll can have come, however far apart polls come.
func TestHoldsOutlastPolls(t *testing.T) {
	b := statetest.New(t, 4)
	j := b.Evolving(1, 1, "1@10m,3@10m", time.Hour)
	b.Runs(j, "n1")
	b.Plans(j, "0-600 n1", "600-1200 n[1-3]")
	for _, c := range []struct{ pause, beyond time.Duration }{{0, time.Minute}, {5 * time.Second, time.Minute}, {time.Minute, 3 * time.Minute}, {10 * time.Minute, 33 * time.Minute}} {
		b.Pace.Pause = c.pause
		all := HoldsOf(b.Core, j, b.Now.Unix())
		if len(all) != 1 || all[0].End != j.Plan[1].End+int64(c.beyond/time.Second) {
			t.Errorf("with a pause of %v: %+v, want the end at %d plus %v", c.pause, all, j.Plan[1].End, c.beyond)
		}
	}
}
