package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestUnfold bounds how many tasks of an array get records of their own.
func TestUnfold(t *testing.T) {
	const asks = "evo:v2;p=1@10m,3@5m;;"
	for _, c := range []struct {
		name string
		set  func(*statetest.Bench, *slurmctl.Job)
		want string
	}{
		{"the first 32", func(*statetest.Bench, *slurmctl.Job) {}, `unfold 1-32 of 50 as work, the rest as "work (waiting)"`},
		{"the rest has its name", func(_ *statetest.Bench, r *slurmctl.Job) { r.Name = "work (waiting)" }, "unfold 1-32 of 50 as work"},
		{"a million", func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayTasks = "50_[0-999999]", 1_000_000 }, `unfold 0-31 of 50 as work, the rest as "work (waiting)"`},
		{"a cut list", func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayTasks = "50_[1,4,...]", 300_000 }, `unfold 1,4 of 50 as work, the rest as "work (waiting)"`},
		{"all but one", func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayTasks = "50_[4,7,9]", 3 }, `unfold 4,7 of 50 as work, the rest as "work (waiting)"`},
		{"a limit", func(_ *statetest.Bench, r *slurmctl.Job) { r.Display, r.ArrayLimit = "50_[1-100%3]", 3 }, `unfold 1-3 of 50 as work, the rest as "work (waiting)"`},
		{"a limit that is reached", func(b *statetest.Bench, r *slurmctl.Job) {
			r.Display, r.ArrayLimit = "50_[3-100%2]", 2
			tasks(b, 2, slurmctl.Running)
		}, ""},
		{"31 of the user wait", func(b *statetest.Bench, _ *slurmctl.Job) { tasks(b, 31, slurmctl.Pending) }, `unfold 1 of 50 as work, the rest as "work (waiting)"`},
		{"32 of the user wait", func(b *statetest.Bench, _ *slurmctl.Job) { tasks(b, 32, slurmctl.Pending) }, ""},
		{"40 of the user run", func(b *statetest.Bench, _ *slurmctl.Job) { tasks(b, 40, slurmctl.Running) }, `unfold 1-32 of 50 as work, the rest as "work (waiting)"`},
		{"32 of another user wait", func(b *statetest.Bench, r *slurmctl.Job) {
			tasks(b, 32, slurmctl.Pending)
			r.UID = 1001
		}, `unfold 1-32 of 50 as work, the rest as "work (waiting)"`},
		{"a task was refused", func(b *statetest.Bench, r *slurmctl.Job) {
			tasks(b, 1, slurmctl.Pending)
			b.Seen.ByID[200].ArrayJobID, b.Seen.ByID[200].Display = 50, "50_1"
			Refuse(b.Core, b.Seen.ByID[200], errors.New("too large"))
		}, ""},
		{"tasks of another array were refused", func(b *statetest.Bench, _ *slurmctl.Job) {
			tasks(b, 32, slurmctl.Pending)
			for id := range 32 {
				Refuse(b.Core, b.Seen.ByID[slurmctl.JobID(200+id)], errors.New("too large"))
			}
		}, `unfold 1-32 of 50 as work, the rest as "work (waiting)"`},
		{"held", func(_ *statetest.Bench, r *slurmctl.Job) { r.Priority = 0 }, ""},
		{"after another job", func(_ *statetest.Bench, r *slurmctl.Job) { r.Dependency = "afterok:7_*(unfulfilled)" }, ""},
		{"each after its own", func(_ *statetest.Bench, r *slurmctl.Job) { r.Dependency = "aftercorr:7_*(unfulfilled)" }, `unfold 1-32 of 50 as work, the rest as "work (waiting)"`},
		{"a stock job's", func(b *statetest.Bench, r *slurmctl.Job) { r.Comment, r.StartTime = "", b.Now }, ""},
		{"it failed just now", func(b *statetest.Bench, _ *slurmctl.Job) {
			Unfold(b.Core, b.Seen)
			_, p, o := b.Ends(errors.New("no"), nil)
			SettleUnfold(b.Core, nil, p, o)
		}, ""},
		{"a chain", func(_ *statetest.Bench, r *slurmctl.Job) { r.Comment = "evo:v2;p=1@10m,3@5m;d=chain;i=1;;" }, "refused: a chain cannot be an array: its steps are jobs of their own"},
		{"a name as long as Slurm takes", func(_ *statetest.Bench, r *slurmctl.Job) { r.Name = strings.Repeat("x", 1020) }, "refused: the name of an array has at most 1000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := statetest.New(t, 4)
			r := b.Stock(50, 1, 1, time.Hour)
			r.Name, r.Comment, r.Display, r.ArrayJobID, r.ArrayTasks, r.Reason = "work", asks, "50_[1-100]", 50, 100, "BeginTime"
			r.StartTime = b.Now.Add(Parked)
			c.set(b, r)
			b.Tasks()
			noteArrays(b.Core, b.Seen)
			Unfold(b.Core, b.Seen)
			got := strings.Join(b.Tasks(), " ")
			if in, is := b.Refused[50]; is {
				got = in.Reason
			}
			if got != c.want && !(strings.HasPrefix(c.want, "refused") && strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if n := len(b.Tasks()); n != 0 {
				t.Errorf("%d tasks left", n)
			}
			if Unfold(b.Core, b.Seen); slices.ContainsFunc(b.Tasks(), func(s string) bool { return strings.HasPrefix(s, "unfold ") }) {
				t.Error("it was unfolded again before Slurm answered")
			}
		})
	}
}

// TestRests checks what evosqueue shows of the tasks that wait in an array's record: one line, no longer than a bound.
func TestRests(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*statetest.Bench, *slurmctl.Job)
		want string
	}{
		{"waits", func(*statetest.Bench, *slurmctl.Job) {}, "50_[1-1000000%10] work: waits for earlier tasks"},
		{"held", func(_ *statetest.Bench, r *slurmctl.Job) { r.Priority, r.Reason = 0, "JobHeldUser" }, "50_[1-1000000%10] work: JobHeldUser"},
		{"after another job", func(_ *statetest.Bench, r *slurmctl.Job) {
			r.Dependency, r.Reason = "afterok:7_*(unfulfilled)", "Dependency"
		}, "50_[1-1000000%10] work: Dependency"},
		{"a long list", func(_ *statetest.Bench, r *slurmctl.Job) { r.Display = "50_[" + strings.Repeat("1,", 2000) + "...%10]" },
			"50_[" + strings.Repeat("1,", 30) + "...%10] work: waits for earlier tasks"},
		{"a stock job's", func(b *statetest.Bench, r *slurmctl.Job) { r.Comment, r.StartTime = "", b.Now }, ""},
		{"refused", func(_ *statetest.Bench, r *slurmctl.Job) { r.Comment = "evo:v2;p=1@10m,3@5m;d=chain;i=1;;" }, ""},
		{"cancelled", func(b *statetest.Bench, r *slurmctl.Job) {
			Unfold(b.Core, b.Seen)
			r.State = slurmctl.Cancelled
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := statetest.New(t, 4)
			r := b.Stock(50, 1, 1, time.Hour)
			r.Name, r.Comment, r.Display, r.ArrayJobID, r.ArrayTasks, r.ArrayLimit, r.Reason = "work (waiting)", "evo:v2;p=1@10m,3@5m;;", "50_[1-1000000%10]", 50, 1_000_000, 10, "BeginTime"
			r.StartTime = b.Now.Add(Parked)
			c.set(b, r)
			noteArrays(b.Core, b.Seen)
			Unfold(b.Core, b.Seen)
			noteArrays(b.Core, b.Seen)
			got := ""
			for _, j := range Rests(b.Core) {
				if got += j.Label() + " " + j.Name + ": " + j.Reason; len(j.ArrayRest) > mostRest {
					t.Errorf("%d bytes of tasks", len(j.ArrayRest))
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// tasks adds tasks of another array that will be adopted, with IDs from 200 on.
func tasks(b *statetest.Bench, n int, state slurmctl.JobState) {
	for i := range n {
		r := b.Stock(200+i, 1, 1, time.Hour)
		r.ArrayJobID, r.Display, r.State = 50, fmt.Sprintf("50_%d", 200+i), state
		if state == slurmctl.Pending {
			r.ArrayJobID, r.Display = 199, fmt.Sprintf("199_%d", i)
			b.Coming[r.ID] = r.UID
		}
	}
}
