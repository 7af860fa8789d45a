package core

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSettleBy: each kind of task has one settle function of its own.
func TestSettleBy(t *testing.T) {
	seen := map[uintptr]Kind{}
	for kind := Kind(1); kind < numberOfKinds; kind++ {
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
	walk(reflect.TypeFor[Core](), "Core")
	for _, typ := range []reflect.Type{reflect.TypeFor[Pending](), reflect.TypeFor[job](), reflect.TypeFor[snapshot]()} {
		if !known[typ] {
			t.Errorf("%v is not reached", typ)
		}
	}
}

// TestSettled: an outcome changes what its kind says. No Slurm is needed for that.
func TestSettled(t *testing.T) {
	yes, refused := error(nil), errors.New("refused")
	hold := ownName{7, 2, 1}.String()
	none := ""
	tests := map[string]struct {
		kind  Kind
		do    Command
		args  Args
		err   error
		check func(b *bench, j *job) bool
	}{
		"a hold was made": {KindCreateHold, Reserve{}, Args{Hold: &slurmctl.Reservation{Name: hold}}, yes,
			func(b *bench, j *job) bool { _, ok := b.reservations[hold]; return ok && j.holdRetry.IsZero() }},
		"a hold was refused": {KindCreateHold, Reserve{}, Args{Hold: &slurmctl.Reservation{Name: hold}}, refused,
			func(b *bench, j *job) bool { return len(b.reservations) == 0 && j.holdRetry.After(b.now) }},
		"a hold waits for the backfill scheduler": {KindCreateHold, Reserve{}, Args{Hold: &slurmctl.Reservation{Name: hold}}, ErrBackfilling,
			func(b *bench, j *job) bool { return j.holdRetry.Equal(b.now.Add(time.Second)) }},
		"a hold could not be changed": {KindAdjustHold, ChangeHold{Name: hold}, Args{Hold: &slurmctl.Reservation{Name: hold}}, refused,
			func(b *bench, _ *job) bool { return b.unwilling[hold] }},
		"a start was written": {KindMirror, Update{7, slurmctl.JobUpdate{StartTime: time.Unix(99, 0), Reservation: &none}, 0}, Args{}, yes,
			func(_ *bench, j *job) bool {
				return j.record.StartTime.Equal(time.Unix(99, 0)) && j.record.Reservation == ""
			}},
		"a start was written into a record of another poll": {KindMirror, Update{7, slurmctl.JobUpdate{StartTime: time.Unix(99, 0)}, 0}, Args{Seen: time.Unix(1, 0)}, yes,
			func(_ *bench, j *job) bool { return !j.record.StartTime.Equal(time.Unix(99, 0)) }},
		"a limit was raised": {KindExtend, ExtendLimits{[]Limit{{7, time.Hour}}}, Args{}, yes,
			func(_ *bench, j *job) bool { return j.record.TimeLimit == time.Hour && !j.extend }},
		"nodes were given back": {KindShrink, Shrink{Surplus: []string{"n1"}}, Args{}, yes,
			func(b *bench, j *job) bool { return len(j.gave) == 1 && j.gaveAt.Equal(b.now) && !b.s.inUse["n1"] }},
		"a job was parked": {KindEvict, Update{Job: 7}, Args{State: row.Queued}, yes,
			func(_ *bench, j *job) bool { return j.kept != nil && j.State == row.Queued }},
		"a warning failed": {KindWarn, Signal{}, Args{}, refused,
			func(_ *bench, j *job) bool { return !j.warned }},
		"Slurm does not know the job any more": {KindEnd, Ask{[]slurmctl.JobID{7}}, Args{}, yes,
			func(_ *bench, j *job) bool { return j.State == row.Ended }},
		"it is not known how the job ended": {KindEnd, Ask{[]slurmctl.JobID{7}}, Args{}, refused,
			func(_ *bench, j *job) bool { return j.State == row.Starting }},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			j := b.evolving(7, 1, "1@10m", time.Minute)
			j.State, j.warned, j.extend, j.record.EndTime = row.Starting, true, true, b.now.Add(time.Minute)
			b.s.inUse["n1"] = true
			if !b.beginTask(j, Pending{Task: Task{Command: c.do, Intent: &row.Intent{Job: j.ID, Action: "try", At: b.now}}, Kind: c.kind, Args: c.args}) {
				t.Fatal("the task does not begin")
			}
			if !j.busy || len(b.work.pending) != 1 {
				t.Fatal("the job is not busy")
			}
			b.settled(Outcome{Task: b.work.last, Err: c.err})
			if j.busy || len(b.work.pending) != 0 {
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
	ask := func() bool { return b.ask(nil, "limits", KindLimits, Task{Command: ReadLimits{}}, Args{Begun: b.now}) }
	if !ask() || ask() {
		t.Error("a task is begun never or twice")
	}
	b.settled(Outcome{Task: b.work.last, Err: slurmctl.ErrUnreachable})
	if ask() {
		t.Error("a task is begun again at once after it failed")
	}
	b.now = b.now.Add(againAfter)
	if !ask() {
		t.Error("a task is not begun again after it failed")
	}
	j := b.evolving(7, 1, "1@10m", time.Minute)
	b.do(j, "grow", "", KindGrow, Grow{}, Args{})
	b.active, b.effects = nil, nil
	b.settled(Outcome{Task: b.work.last})
	if want := (Settle{Intent: b.work.last, At: b.now}); len(b.effects) != 1 || b.effects[0] != want {
		t.Errorf("effects %+v, want %+v", b.effects, want)
	}
}

// TestUndoChange: a refused change leaves the job as it was.
func TestUndoChange(t *testing.T) {
	b := newBench(t, 4)
	j := b.evolving(7, 1, "1@10m,2@10m", time.Hour)
	b.plan(b.s)
	before, plan := *j.Job, j.plan
	changed := j.copied()
	changed.Profile = changed.Profile[:1]
	b.makeChange(j, &target{job: changed, words: "less"}, "1")
	if len(j.Profile) != 1 || j.undo == nil || !j.unwritten {
		t.Fatal("the job is not changed")
	}
	b.notKept(j, errors.New("refused"))
	if !reflect.DeepEqual(*j.Job, before) || !reflect.DeepEqual(j.plan, plan) || j.undo != nil || j.unwritten {
		t.Errorf("job %+v, want %+v", *j.Job, before)
	}
}
