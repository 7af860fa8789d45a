package core

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSettleBy: each kind of task has one settle function of its own.
func TestSettleBy(t *testing.T) {
	seen := map[uintptr]state.Kind{}
	for kind := state.Kind(1); kind < state.NumberOfKinds; kind++ {
		if settleBy[kind] == nil {
			t.Errorf("kind %d has no settle function", kind)
			continue
		}
		at := reflect.ValueOf(settleBy[kind]).Pointer()
		if other, twice := seen[at]; twice {
			t.Errorf("kinds %d and %d share a settle function", other, kind)
		}
		seen[at] = kind
	}
}

// TestStateIsData: no field of the state, nor of what it refers to, is a function or a channel.
func TestStateIsData(t *testing.T) {
	known := map[reflect.Type]bool{}
	var walk func(t reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		if known[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		known[typ] = true
		switch typ.Kind() {
		case reflect.Func, reflect.Chan, reflect.UnsafePointer:
			t.Errorf("%s is a %v", path, typ)
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(typ.Field(i).Type, path+"."+typ.Field(i).Name)
			}
		case reflect.Map:
			walk(typ.Key(), path)
			walk(typ.Elem(), path)
		case reflect.Slice, reflect.Array, reflect.Pointer:
			walk(typ.Elem(), path)
		}
	}
	walk(reflect.TypeFor[state.Core](), "Core")
	for _, typ := range []reflect.Type{reflect.TypeFor[state.Pending](), reflect.TypeFor[state.Job](), reflect.TypeFor[state.Snapshot]()} {
		if !known[typ] {
			t.Errorf("%v is not reached", typ)
		}
	}
}

// TestSettled: an outcome changes what its kind says. No Slurm is needed for that.
func TestSettled(t *testing.T) {
	yes, refused := error(nil), errors.New("refused")
	hold := state.OwnName{7, 2, 1}.String()
	none := ""
	tests := map[string]struct {
		kind  state.Kind
		do    msg.Command
		args  state.Args
		err   error
		check func(b *bench, j *state.Job) bool
	}{
		"a hold was made": {state.KindCreateHold, msg.Reserve{}, state.Args{Hold: &slurmctl.Reservation{Name: hold}}, yes,
			func(b *bench, j *state.Job) bool { _, ok := b.Reservations[hold]; return ok && j.HoldRetry.IsZero() }},
		"a hold was refused": {state.KindCreateHold, msg.Reserve{}, state.Args{Hold: &slurmctl.Reservation{Name: hold}}, refused,
			func(b *bench, j *state.Job) bool { return len(b.Reservations) == 0 && j.HoldRetry.After(b.Now) }},
		"a hold waits for the backfill scheduler": {state.KindCreateHold, msg.Reserve{}, state.Args{Hold: &slurmctl.Reservation{Name: hold}}, msg.ErrBackfilling,
			func(b *bench, j *state.Job) bool { return j.HoldRetry.Equal(b.Now.Add(time.Second)) }},
		"a hold could not be changed": {state.KindAdjustHold, msg.ChangeHold{Name: hold}, state.Args{Hold: &slurmctl.Reservation{Name: hold}}, refused,
			func(b *bench, _ *state.Job) bool { return b.Unwilling[hold] }},
		"a change of a hold was not answered": {state.KindAdjustHold, msg.ChangeHold{Name: hold}, state.Args{Hold: &slurmctl.Reservation{Name: hold}}, context.DeadlineExceeded,
			func(b *bench, _ *state.Job) bool { return !b.Unwilling[hold] }},
		"a start was written": {state.KindMirror, msg.Update{7, slurmctl.JobUpdate{StartTime: time.Unix(99, 0), Reservation: &none}, 0}, state.Args{}, yes,
			func(_ *bench, j *state.Job) bool {
				return j.Record.StartTime.Equal(time.Unix(99, 0)) && j.Record.Reservation == ""
			}},
		"a start was written into a record of another poll": {state.KindMirror, msg.Update{7, slurmctl.JobUpdate{StartTime: time.Unix(99, 0)}, 0}, state.Args{Seen: time.Unix(1, 0)}, yes,
			func(_ *bench, j *state.Job) bool { return !j.Record.StartTime.Equal(time.Unix(99, 0)) }},
		"a limit was raised": {state.KindExtend, msg.ExtendLimits{[]msg.Limit{{7, time.Hour}}}, state.Args{}, yes,
			func(_ *bench, j *state.Job) bool { return j.Record.TimeLimit == time.Hour && !j.Extend }},
		"nodes were given back": {state.KindShrink, msg.Shrink{Surplus: []string{"n1"}}, state.Args{}, yes,
			func(b *bench, j *state.Job) bool {
				return len(j.Gave) == 1 && j.GaveAt.Equal(b.Now) && !b.s.InUse["n1"]
			}},
		"a job was parked": {state.KindEvict, msg.Update{Job: 7}, state.Args{State: row.Queued}, yes,
			func(_ *bench, j *state.Job) bool { return j.Kept != nil && j.State == row.Queued }},
		"a best-effort job was requeued": {state.KindLeaveAll, msg.Requeue{Job: 7}, state.Args{}, yes,
			func(_ *bench, j *state.Job) bool { return j.Ending }},
		"a best-effort job was not requeued while Slurm was away": {state.KindLeaveAll, msg.Requeue{Job: 7}, state.Args{}, context.DeadlineExceeded,
			func(b *bench, j *state.Job) bool { return j.RetryAt.After(b.Now) }},
		"a warning failed": {state.KindWarn, msg.Signal{Jobs: []slurmctl.JobID{7}}, state.Args{}, refused,
			func(_ *bench, j *state.Job) bool { return !j.Signalled }},
		"Slurm does not know the job any more": {state.KindEnd, msg.Ask{[]slurmctl.JobID{7}}, state.Args{}, yes,
			func(_ *bench, j *state.Job) bool { return j.State == row.Ended }},
		"it is not known how the job ended": {state.KindEnd, msg.Ask{[]slurmctl.JobID{7}}, state.Args{}, refused,
			func(_ *bench, j *state.Job) bool { return j.State == row.Starting }},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			j := b.Evolving(7, 1, "1@10m", time.Minute)
			j.State, j.Signalled, j.Extend, j.Record.EndTime = row.Starting, true, true, b.Now.Add(time.Minute)
			b.s.InUse["n1"] = true
			if !b.BeginTask(j, state.Pending{Task: msg.Task{Command: c.do, Intent: &row.Intent{Job: j.ID, Action: "try", At: b.Now}}, Kind: c.kind, Args: c.args}) {
				t.Fatal("the task does not begin")
			}
			if !j.Busy || len(b.Work.Pending) != 1 {
				t.Fatal("the job is not busy")
			}
			settled(b.Core, msg.Outcome{Task: b.Work.Last, Err: c.err})
			if j.Busy || len(b.Work.Pending) != 0 {
				t.Error("the job is still busy")
			}
			if !c.check(b, j) {
				t.Errorf("the outcome was not taken over: %+v", j)
			}
		})
	}
}

// TestSettledWithoutJob: a task of no job is not begun twice, nor soon after it failed. The outcome of a task whose job
// ended long ago changes nothing, but its intent is settled.
func TestSettledWithoutJob(t *testing.T) {
	b := newBench(t, 1)
	ask := func() bool {
		return b.Ask(nil, "limits", state.KindLimits, msg.Task{Command: msg.ReadLimits{}}, state.Args{Begun: b.Now})
	}
	if !ask() || ask() {
		t.Error("a task is begun never or twice")
	}
	settled(b.Core, msg.Outcome{Task: b.Work.Last, Err: slurmctl.ErrUnreachable})
	if ask() {
		t.Error("a task is begun again at once after it failed")
	}
	b.Now = b.Now.Add(state.AgainAfter)
	if !ask() {
		t.Error("a task is not begun again after it failed")
	}
	j := b.Evolving(7, 1, "1@10m", time.Minute)
	b.Do(j, "grow", "", state.KindGrow, msg.Grow{}, state.Args{})
	b.Active, b.Effects = nil, nil
	settled(b.Core, msg.Outcome{Task: b.Work.Last})
	if want := (msg.Settle{Intent: b.Work.Last, At: b.Now}); len(b.Effects) != 1 || b.Effects[0] != want {
		t.Errorf("effects %+v, want %+v", b.Effects, want)
	}
}

// TestUndoChange: a refused change leaves the job as it was.
func TestUndoChange(t *testing.T) {
	b := newBench(t, 4)
	j := b.Evolving(7, 1, "1@10m,2@10m", time.Hour)
	b.plan(b.s)
	before, plan := *j.Job, j.Plan
	changed := j.Copy()
	changed.Profile = changed.Profile[:1]
	change.MakeChange(b.Core, j, &state.Target{Job: changed, Words: "less"}, "1")
	if len(j.Profile) != 1 || j.Undo == nil || !j.Unwritten {
		t.Fatal("the job is not changed")
	}
	act.NotKept(b.Core, j, errors.New("refused"))
	if !reflect.DeepEqual(*j.Job, before) || !reflect.DeepEqual(j.Plan, plan) || j.Undo != nil || j.Unwritten {
		t.Errorf("job %+v, want %+v", *j.Job, before)
	}
}
