package talk

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestNext checks what ends a step, and what a script may not ask for when it does.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		job    uint32
		ask    api.NextRequest
		want   string // the reply; "": the call waits
		state  row.State
	}{
		"the step that it is in": {nil, 1, api.NextRequest{From: 1}, "", row.Waiting},
		"again, while it waits":  {func(b *statetest.Bench, j *state.Job) { b.Waits(j) }, 1, api.NextRequest{From: 1}, "", row.Waiting},
		"a step that is over: what it has now": {func(b *statetest.Bench, j *state.Job) { j.Step = 2; b.Has(j, "n[1-4]") }, 1, api.NextRequest{From: 1},
			"reply to 1: step 2 on 4 nodes", row.Running},
		"the last step":                  {func(_ *statetest.Bench, j *state.Job) { j.Step = 3 }, 1, api.NextRequest{From: 3}, "reply to 1: done", row.Running},
		"a step that comes":              {nil, 1, api.NextRequest{From: 2}, "reply: step 2 has not begun: the job is in step 1", row.Running},
		"step 0":                         {nil, 1, api.NextRequest{}, "reply: step 0: the job has steps 1 to 3", row.Running},
		"a negative step":                {nil, 1, api.NextRequest{From: math.MinInt}, fmt.Sprintf("reply: step %d: the job has steps 1 to 3", math.MinInt), row.Running},
		"a step beyond the last":         {nil, 1, api.NextRequest{From: 4}, "reply: step 4: the job has steps 1 to 3", row.Running},
		"it gives back its own node":     {nil, 1, api.NextRequest{From: 1, Release: []string{"n2"}}, "", row.Waiting},
		"it gives back the script's":     {nil, 1, api.NextRequest{From: 1, Release: []string{"n1"}}, "reply: n1 runs the batch script and cannot be released before the end", row.Running},
		"it gives back another job's":    {nil, 1, api.NextRequest{From: 1, Release: []string{"n2", "n7"}}, "reply: the job does not hold n7", row.Running},
		"it has not begun":               {func(_ *statetest.Bench, j *state.Job) { j.State, j.Step = row.Queued, 0 }, 1, api.NextRequest{From: 1}, "", row.Queued},
		"a chain":                        {func(b *statetest.Bench, j *state.Job) { j.Drive = "chain"; state.SetMode(b.Core, j) }, 1, api.NextRequest{From: 1}, "reply: job 1 is a chain: every step is a job of its own, which ends when its script does", row.Running},
		"its growth was given up before": {func(_ *statetest.Bench, j *state.Job) { j.Denied, j.Denial = "no", "no" }, 1, api.NextRequest{From: 1}, "reply: no", row.Running},
		"another job":                    {nil, 9, api.NextRequest{From: 1}, "reply: job 9 is not an evolving job, or has ended", row.Running},
		"a job that is not seen yet":     {func(b *statetest.Bench, _ *state.Job) { b.Coming[9] = 1000 }, 9, api.NextRequest{From: 1}, "reply: the sidecar has just started and has not seen job 9 yet", row.Running},
		"a job that was refused": {func(b *statetest.Bench, _ *state.Job) {
			b.Refused[9] = state.Refused{Job: api.Job{ID: 9, Reason: "refused: no"}}
		}, 9, api.NextRequest{From: 1}, "reply: job 9 is not driven by the sidecar, refused: no", row.Running},
		"before the first poll": {func(b *statetest.Bench, _ *state.Job) { b.Snapshot = nil }, 1, api.NextRequest{From: 1}, "reply: the sidecar has just started and has not seen job 1 yet", row.Running},
		"another sidecar drives the cluster": {func(b *statetest.Bench, _ *state.Job) { b.Twin = errors.New("twin") }, 1, api.NextRequest{From: 1},
			"reply: the sidecar changes nothing: another evoslurmd drives this cluster", row.Running},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := statetest.Growing(t)
			if c.change != nil {
				c.change(b, j)
			}
			Called(b.Core, msg.Call{ID: 5, UID: 1000, Job: c.job, Next: &c.ask})
			if got := strings.Join(b.Replies(), "; "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if waits := len(b.Calling) == 1; waits != (c.want == "") || j.State != c.state {
				t.Errorf("the call waits: %v; the job is %s, want %s", waits, j.State, c.state)
			}
		})
	}
}

// TestLinkThatComes checks that a chain's script is not told the nodes of the step before, if no poll has shown its own as running.
func TestLinkThatComes(t *testing.T) {
	for _, c := range []struct {
		step   int
		caller uint32
		want   string
	}{
		{1, 1, "reply to 1: step 1 on 2 nodes"},
		{1, 8, "reply: job 8 is not running yet"},
		{2, 8, "reply to 1: step 2 on 2 nodes"},
		{2, 9, "reply: job 9 is not running yet"},
		{2, 1, "reply to 1: step 2 on 2 nodes"},
	} {
		b, j := statetest.Growing(t)
		j.Drive, j.Chain, j.Step = "chain", []slurmctl.JobID{1, 8, 9}, c.step
		state.SetMode(b.Core, j)
		b.ByID[8], b.ByID[9] = j, j
		Called(b.Core, msg.Call{ID: 5, UID: 1000, Job: c.caller})
		if got := strings.Join(b.Replies(), "; "); got != c.want {
			t.Errorf("in step %d, job %d: %q, want %q", c.step, c.caller, got, c.want)
		}
	}
}

// TestNextTwice checks that a call that is repeated ends no second step, and that both callers get the answer.
func TestNextTwice(t *testing.T) {
	b, j := statetest.Growing(t)
	for id := range uint64(2) {
		Called(b.Core, msg.Call{ID: id + 1, Job: 1, Next: &api.NextRequest{From: 1}})
	}
	if got := b.Events(); !slices.Equal(got, []string{"step ended"}) {
		t.Errorf("events %v, want one end of a step", got)
	}
	b.Replies()
	b.Has(j, "n[1-4]")
	follow.BeginStep(b.Core, j, b.Now)
	AnswerCalls(b.Core)
	want := "reply to 1: step 2 on 4 nodes"
	if got := b.Replies(); !slices.Equal(got, []string{want, want}) || len(b.Calling) > 0 {
		t.Errorf("%q, %d calls wait", got, len(b.Calling))
	}
}

// TestWithdrawn checks that a caller that stops waiting is answered, and that its step stays ended.
func TestWithdrawn(t *testing.T) {
	b, j := statetest.Growing(t)
	Called(b.Core, msg.Call{ID: 1, Job: 1, Next: &api.NextRequest{From: 1}})
	j.WaitsFor(state.Because(state.WhyHeldSoon))
	for _, c := range []struct {
		id   uint64
		want []string
	}{{7, nil}, {1, []string{"reply to 1: not yet: its nodes are being held"}}, {1, nil}} {
		Withdrawn(b.Core, msg.Withdrawal{ID: c.id})
		if got := b.Replies(); !slices.Equal(got, c.want) {
			t.Errorf("call %d: %q, want %q", c.id, got, c.want)
		}
	}
	if j.State != row.Waiting {
		t.Errorf("the job is %s", j.State)
	}
}

// TestTooMany checks how many changes of a user may wait, and that those of root and operators are not counted.
func TestTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		uid  uint32
		want int // of MostWaiting and one more
	}{"a user": {1000, change.MostWaiting}, "root": {0, change.MostWaiting + 1}, "Slurm's user": {64030, change.MostWaiting + 1}} {
		b, _ := statetest.Growing(t)
		b.SlurmUser = 64030
		for id := range uint64(change.MostWaiting + 1) {
			Called(b.Core, msg.Call{ID: id, UID: c.uid, Job: 1, Change: &api.ChangeRequest{ID: "1", Grow: &api.Grow{Nodes: 1}}})
		}
		if got := len(b.Calling); got != c.want {
			t.Errorf("%s: %d changes wait, want %d", name, got, c.want)
		}
		Called(b.Core, msg.Call{ID: 99, UID: 1001, Job: 1, Change: &api.ChangeRequest{ID: "1", Grow: &api.Grow{Nodes: 1}}})
		if got := len(b.Calling); got != c.want+1 {
			t.Errorf("%s: another user's change does not wait", name)
		}
	}
}

// TestLastStepTwice checks that the last step ends once, whatever the script repeats.
func TestLastStepTwice(t *testing.T) {
	b, j := statetest.Growing(t)
	j.Step = 3
	for range 2 {
		Called(b.Core, msg.Call{ID: 1, Job: 1, Next: &api.NextRequest{From: 3}})
		b.Later(time.Minute)
	}
	if got := b.Events(); !slices.Equal(got, []string{"step ended"}) || !j.StepEnded.Equal(statetest.Start) {
		t.Errorf("events %v; it ended at %v", got, j.StepEnded)
	}
}
