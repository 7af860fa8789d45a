package core

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/google/go-cmp/cmp"
)

// twoUsers has a queued job of user 1000, and two of user 2000: the first is due to start,
// once it is known that the holds have been made.
func twoUsers(t *testing.T) (b *bench, mine, due *state.Job, held []msg.Input) {
	b = newBench(t, 8)
	due = b.Evolving(1, 200, "2@10m,4@10m", 0)
	mine = b.Evolving(2, 100, "8@10m,4@10m", 0)
	for _, j := range []*state.Job{due, mine, b.Evolving(3, 50, "8@10m,2@10m", 0)} {
		if j != mine {
			j.UID, j.Record.UID = 2000, 2000
		}
		j.Record.TimeLimit = slurmctl.Unlimited
		j.Record.Comment, _ = request.Request{Profile: j.Profile, Drive: drivemode.Companion}.Marker()
	}
	b.Snapshot, b.Rules = b.s, state.RuleBook{Read: b.Now}
	b.plan(b.s)
	return b, mine, due, done(step(b.Core, b.Now))
}

// done are the outcomes of all tasks of a step.
func done(effects []msg.Effect) (outcomes []msg.Input) {
	for _, e := range effects {
		if task, ok := e.(msg.Task); ok {
			outcomes = append(outcomes, msg.Outcome{Task: task.ID})
		}
	}
	return outcomes
}

// update is a call that changes a job.
func update(id uint64, uid uint32, job *state.Job, dry bool) msg.Call {
	return msg.Call{ID: id, UID: uid, Job: job.SlurmID, Change: &api.ChangeRequest{ID: fmt.Sprintf("%x", id), DryRun: dry, Update: &api.Update{Profile: "8@10m,5@10m"}}}
}

// outcome returns the tasks, attempts, and replies among effects.
func outcome(effects []msg.Effect) (tasks []string, tries []msg.Try, replies map[uint64]msg.Reply) {
	replies = map[uint64]msg.Reply{}
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Task:
			tasks = append(tasks, e.String())
		case msg.Try:
			tries = append(tries, e)
		case msg.Reply:
			replies[e.ID] = e
		}
	}
	return tasks, tries, replies
}

// TestDryRunsOfOneUser: 1,000 dry runs of a user come in the step in which another user's job
// is due. What is done for that job is the same as without them, and in the same step; nothing is planned
// for the dry runs in the loop; one of them is handed to the shell in each cycle, some wait,
// and all others are asked to try again.
func TestDryRunsOfOneUser(t *testing.T) {
	calm, _, _, held := twoUsers(t)
	want, _, _ := outcome(step(calm.Core, calm.Now, held...))
	b, mine, _, flood := twoUsers(t)
	for i := range 1000 {
		flood = append(flood, update(uint64(i+1), 1000, mine, true))
	}
	effects := step(b.Core, b.Now, flood...)
	tasks, tries, replies := outcome(effects)
	if len(want) == 0 || !cmp.Equal(tasks, want) {
		t.Errorf("with dry runs %q is begun, want %q", tasks, want)
	}
	if len(tries) != 1 || len(replies) != 1000-change.MostWaiting {
		t.Fatalf("%d are planned and %d answered, want 1 and %d", len(tries), len(replies), 1000-change.MostWaiting)
	}
	for id, r := range replies {
		if !errors.Is(r.Err, api.ErrUnavailable) || !strings.Contains(r.Err.Error(), "try again") {
			t.Fatalf("call %d: %v, want to be asked to try again", id, r.Err)
		}
	}
	step(b.Core, b.Now, done(effects)...)
	for cycle := range 3 {
		_, others, replies := outcome(step(b.Core, b.Now, tries[0].Run(), update(uint64(2000+cycle), 2000, b.ByID[3], true)))
		if r := replies[tries[0].ID]; len(replies) != 1 || r.Err != nil || !r.Change.Accepted || len(r.Change.Plan) != 2 {
			t.Fatalf("cycle %d: %+v, want call %d answered", cycle, replies, tries[0].ID)
		}
		if len(others) != 1 || others[0].Attempt.(*change.Attempt).Job.UID != 2000 {
			t.Fatalf("cycle %d: %v is planned next, want the other user's", cycle, others)
		}
		if _, others, _ = outcome(step(b.Core, b.Now, others[0].Run())); len(others) != 0 {
			t.Fatalf("cycle %d: %v is planned, and each user had one", cycle, others)
		}
		change.NextTries(b.Core)
		if _, tries, _ = outcome(step(b.Core, b.Now, msg.Tick{})); len(tries) != 1 {
			t.Fatalf("cycle %d: %d are planned, want the next one", cycle, len(tries))
		}
	}
}

// TestRootGoesFirst: a change of root is planned before waiting ones of users, and several in a cycle.
func TestRootGoesFirst(t *testing.T) {
	b, mine, _, held := twoUsers(t)
	_, tries, _ := outcome(step(b.Core, b.Now, append(held, update(1, 1000, mine, true), update(2, 1000, mine, true))...))
	for id := uint64(3); id < 6; id++ {
		_, tries, _ = outcome(step(b.Core, b.Now, update(id, 0, mine, true), tries[0].Run()))
		if len(tries) != 1 || tries[0].ID != id {
			t.Fatalf("%v is planned, want call %d", tries, id)
		}
	}
	if _, tries, _ = outcome(step(b.Core, b.Now, tries[0].Run())); len(tries) != 0 {
		t.Errorf("%v is planned in the same cycle", tries)
	}
}

// TestOutdatedAttempts: what was planned while any promise changed is planned again, and after
// some times the caller is asked to try again; a dry run is answered. What still holds is done.
func TestOutdatedAttempts(t *testing.T) {
	for _, dry := range []bool{false, true} {
		b, mine, due, held := twoUsers(t)
		_, tries, replies := outcome(step(b.Core, b.Now, append(held, update(1, 1000, mine, dry))...))
		planned := 0
		for len(tries) == 1 {
			planned++
			done := tries[0].Run()
			plan := append([]msg.PlannedStep(nil), due.Plan...)
			plan[1].End++
			b.StorePlan(due, plan)
			_, tries, replies = outcome(step(b.Core, b.Now, done))
		}
		r, answered := replies[1]
		switch {
		case !answered:
			t.Errorf("dry run %v: not answered", dry)
		case dry && (planned != 1 || r.Err != nil || !r.Change.Accepted):
			t.Errorf("a dry run is planned %d times: %+v", planned, r)
		case !dry && (planned != change.MostTries || !errors.Is(r.Err, api.ErrUnavailable)):
			t.Errorf("planned %d times: %+v", planned, r)
		}
		if mine.Profile.String() != "8@10m,4@10m" {
			t.Errorf("dry run %v: the job has become %v", dry, mine.Profile)
		}
	}
	b, mine, _, held := twoUsers(t)
	_, tries, _ := outcome(step(b.Core, b.Now, append(held, update(1, 1000, mine, false))...))
	step(b.Core, b.Now, tries[0].Run())
	if got := mine.Profile.String(); got != "8@10m,5@10m" {
		t.Errorf("the job has %s", got)
	}
	if _, tries, _ = outcome(step(b.Core, b.Now, msg.Tried{ID: 77}, msg.Withdrawal{ID: 1})); len(tries) != 0 {
		t.Errorf("%v after the caller has gone", tries)
	}
}

// shared has the maps and jobs below a value, with where they were found.
type shared map[uintptr]string

// unchanging are fields that are replaced as a whole, if at all.
var unchanging = []string{"Config", "SlurmConfig", "Rules", "Partitions", "Snapshot.ByID", "Index", "Marks", "Record", "Asked.Nodes", "Effects", "Log", "Site", "Strategy", "Quiet", "Survey", "Calling", "Switches"}

func (s shared) walk(v reflect.Value, path string) {
	if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[msg.Quota]() || slices.ContainsFunc(unchanging, func(name string) bool { return strings.HasSuffix(path, "."+name) }) {
		return
	}
	switch v.Kind() {
	case reflect.Map:
		if !v.IsNil() {
			s[v.Pointer()] = path
			for it := v.MapRange(); it.Next(); {
				s.walk(it.Value(), path+"[]")
			}
		}
	case reflect.Pointer:
		if _, seen := s[v.Pointer()]; v.IsNil() || seen || v.Type() == reflect.TypeFor[*slurmctl.JobRequest]() {
			return
		}
		s[v.Pointer()] = path
		s.walk(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			s.walk(v.Index(i), path+"[]")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			s.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

// TestCopiedSharesNothing: the copy on which a change is planned has no map or job in common
// with the core, which goes on to change them.
func TestCopiedSharesNothing(t *testing.T) {
	b, mine, _, _ := twoUsers(t)
	mine.Kept, mine.Moldable = &state.KeptBack{}, &row.Moldable{}
	mine.Shunned, mine.RefusedAs, mine.Marked = map[string]time.Time{}, map[int]state.Refusal{}, map[slurmctl.JobID]int{}
	own, others := shared{}, shared{}
	own.walk(reflect.ValueOf(b.Core).Elem(), "core")
	others.walk(reflect.ValueOf(change.CopyAll(b.Core)).Elem(), "core")
	if len(own) < 20 {
		t.Fatalf("only %d were found: %v", len(own), own)
	}
	for at, path := range own {
		if _, both := others[at]; both {
			t.Errorf("%s is shared", path)
		}
	}
}

// TestAttemptBesideSteps: while a change is planned, steps go on; the race detector finds what both
// would have in common.
func TestAttemptBesideSteps(t *testing.T) {
	b, mine, due, held := twoUsers(t)
	_, tries, _ := outcome(step(b.Core, b.Now, append(held, update(1, 1000, mine, false))...))
	came := make(chan msg.Tried)
	go func() { came <- tries[0].Run() }()
	for i := range 100 {
		b.StorePlan(due, nil)
		b.plan(b.s)
		step(b.Core, b.Now.Add(time.Duration(i)*time.Millisecond), msg.Tick{})
		view.ViewOf(b.Core)
	}
	if in := <-came; in.ID != 1 || in.Refused != "" || len(in.Plan) != 2 {
		t.Errorf("%+v", in)
	}
}
