package hold

import (
	"context"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestWhyHoldsEnd: the row of a hold says why it was given up, who wanted it, and what it held until then.
func TestWhyHoldsEnd(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	planned := func(nodes ...string) []msg.PlannedStep { return []msg.PlannedStep{{}, {Nodes: nodes}} }
	for name, c := range map[string]struct {
		step   int
		does   func(c *state.Core, j *state.Job)
		site   bool // something else than the sidecar removes it
		want   string
		wantBy string
	}{
		"used":              {2, func(_ *state.Core, j *state.Job) { j.BeginStep(at.Add(time.Minute)) }, false, row.CauseKept, ""},
		"used, then gone":   {2, func(_ *state.Core, j *state.Job) { j.BeginStep(at.Add(time.Minute)) }, true, row.CauseKept, ""},
		"the job ended":     {2, func(_ *state.Core, j *state.Job) { j.End(at.Add(time.Minute), "COMPLETED") }, false, row.CauseJobEnded, ""},
		"the job is gone":   {2, func(c *state.Core, _ *state.Job) { clear(c.ByID) }, true, row.CauseJobEnded, ""},
		"removed by others": {2, func(*state.Core, *state.Job) {}, true, row.CauseGone, ""},
		"refused":           {2, func(c *state.Core, _ *state.Job) { c.Unwilling["evo_7_2_1"] = true }, false, row.CauseRefused, ""},
		"overrun":           {2, func(c *state.Core, j *state.Job) { c.Event(j, "lapsed", map[string]any{"step": 1}) }, false, row.CauseOverrun, ""},
		"the budget": {2, func(c *state.Core, j *state.Job) {
			c.Event(j, "lapsed", map[string]any{"before": 2, "budget": int64(0)})
		}, false, row.CauseBudget, ""},
		"cancelled":     {2, func(c *state.Core, j *state.Job) { c.Event(j, "lapsed", map[string]any{"after": 1, "by": "ann"}) }, false, row.CauseCancelled, "ann"},
		"another job":   {2, func(c *state.Core, j *state.Job) { c.Event(j, "lapsed", map[string]any{"in": 1, "for": uint32(9)}) }, false, row.CauseYielded, ""},
		"requeued":      {2, func(_ *state.Core, j *state.Job) { j.Requeue(at) }, false, row.CauseRequeued, ""},
		"a limit":       {2, func(_ *state.Core, j *state.Job) { j.KeepBack(&state.KeptBack{}) }, false, row.CauseKeptBack, ""},
		"the shares":    {2, func(_ *state.Core, j *state.Job) { j.Deferred = []int{2} }, false, row.CauseShares, ""},
		"a node failed": {2, func(c *state.Core, _ *state.Job) { c.Snapshot.Nodes[0].State = "down" }, false, row.CauseNodeFailed, ""},
		"released":      {2, func(c *state.Core, _ *state.Job) { c.Config.Drain = "release by=ann" }, false, row.CauseReleased, "ann"},
		"drained":       {2, func(c *state.Core, _ *state.Job) { c.Config.Drain = "drain by=ann" }, false, row.CauseReleased, "ann"},
		"no plan":       {2, func(*state.Core, *state.Job) {}, false, row.CauseReplanned, ""},
		"other nodes":   {2, func(_ *state.Core, j *state.Job) { j.Plan = planned("n3") }, false, row.CauseReplanned, ""},
		"another step":  {3, func(_ *state.Core, j *state.Job) { j.Plan = planned("n2") }, false, row.CauseReplanned, ""},
		"it has grown":  {2, func(_ *state.Core, j *state.Job) { j.Plan = planned() }, false, row.CauseNotNeeded, ""},
		"an offer":      {refit.LentStep, func(*state.Core, *state.Job) {}, false, row.CauseOffer, ""},
	} {
		core := state.New(msg.Site{Root: true}, config.Default(), msg.Strategy{}, at)
		j := sharesJob(core, 7, "alice", "main", row.Running)
		j.Profile = make(planner.Profile, 2)
		held := slurmctl.Reservation{Name: state.OwnName{Job: 7, Step: c.step, Attempt: 1}.String(), Nodes: []string{"n1", "n2"}, Start: at.Add(10 * time.Minute), End: at.Add(time.Hour), Flags: msg.HoldFlags}
		core.Snapshot = pace.NewSnapshot(core, msg.Observation{Begun: at, Nodes: []slurmctl.Node{{Name: "n1", State: "idle"}, {Name: "n2", State: "idle"}}})
		SetHold(core, held)
		core.Now = at.Add(90 * time.Second)
		if c.does(core, j); c.site {
			delete(core.Reservations, held.Name)
			nameHolds(core)
		} else {
			ForgetHold(core, held.Name)
		}
		var last row.Hold
		for _, e := range core.Effects {
			if e, ok := e.(msg.SaveHold); ok {
				last = e.Hold
			}
		}
		if last.Cause != c.want || last.By != c.wantBy || !last.Ended.Equal(core.Now) || last.Held != 2*90_000 || last.Nodes != 2 || len(core.Ledger) > 0 {
			t.Errorf("%s: %+v, want it closed: %s by %q", name, last, c.want, c.wantBy)
		}
	}
}

// TestMadeAfterAll: the command that makes a hold times out once a poll has shown the hold. Its row stays.
func TestMadeAfterAll(t *testing.T) {
	b := statetest.New(t, 2)
	j := b.Evolving(7, 1, "1@10m,2@10m", time.Hour)
	r := slurmctl.Reservation{Name: "evo_7_2_1", Nodes: []string{"n2"}, Start: b.Now.Add(time.Minute), End: b.Now.Add(time.Hour), Flags: msg.HoldFlags}
	SetHold(b.Core, r)
	made := b.Ledger[r.Name]
	SettleCreateHold(b.Core, j, &state.Pending{Args: state.Args{Hold: &r}}, msg.Outcome{Err: context.DeadlineExceeded})
	if b.Ledger[r.Name] != made || made.Cause != "" {
		t.Errorf("the row is %+v", b.Ledger[r.Name])
	}
}
