package follow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestFollow checks what an observation does to a job that is queued, or in its first of two steps on n1.
func TestFollow(t *testing.T) {
	type change = func(b *statetest.Bench, j *state.Job, r *slurmctl.Job)
	const later = time.Minute // the observation is made a minute after the start of the bench
	for name, c := range map[string]struct {
		queued bool
		change change // r is the job as Slurm shows it
		want   string // its state, step and nodes, with what is asked of Slurm
	}{
		"it goes on":           {false, nil, "running, step 1 on n1"},
		"it still waits":       {true, nil, "queued, step 0 on "},
		"Slurm has started it": {true, func(b *statetest.Bench, _ *state.Job, r *slurmctl.Job) { runs(b, r, "n2") }, "running, step 1 on n2"},
		"Slurm has started it, and suspended it": {true, func(b *statetest.Bench, _ *state.Job, r *slurmctl.Job) {
			runs(b, r, "n2")
			r.State = slurmctl.Suspended
		}, "running, step 1 on n2"},
		"its nodes come up": {true, func(b *statetest.Bench, _ *state.Job, r *slurmctl.Job) {
			runs(b, r, "n2")
			r.State = slurmctl.Configuring
		}, "starting, step 0 on n2"},
		"Slurm does not show it":       {false, func(b *statetest.Bench, _ *state.Job, _ *slurmctl.Job) { delete(b.Seen.ByID, 1) }, "running, step 1 on n1, ask [1]"},
		"it has ended":                 {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.State = slurmctl.Completed }, "running, step 1 on n1, ask [1]"},
		"it is completing":             {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.State = slurmctl.Completing }, "running, step 1 on n1, ending"},
		"Slurm has requeued it":        {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.State, r.NodeList = slurmctl.Pending, nil }, "queued, step 0 on "},
		"its number is another user's": {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.UID = 2000 }, "ended, step 1 on n1"},
		"its number is another job's since the start": {false, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			j.Record, j.Name, r.Name, r.SubmitTime = slurmctl.Job{}, "own", "another", b.Now
		}, "ended, step 1 on n1"},
		"it is a task": {false, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) { task(j, r, 3) }, "running, step 1 on n1"},
		"its number is another task's": {false, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			task(j, r, 3)
			r.Display = "50_4"
		}, "ended, step 1 on n1"},
		"it is a task, as an earlier sidecar wrote it": {false, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			task(j, r, 3)
			j.Array, j.Task = 0, 0
		}, "running, step 1 on n1"},
		"its record is that of several tasks again": {true, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			task(j, r, 3)
			r.Display, r.ArrayTasks = "50_[2-3%2]", 2
		}, "ended, step 0 on "},
		"it was renamed while the sidecar was down": {false, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			j.Record, j.Name, r.Name = slurmctl.Job{}, "own", "another"
		}, "running, step 1 on n1"},
		"it has lost a node, and got another":    {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.NodeList = []string{"n3"} }, "running, step 1 on n3"},
		"a merge was completed without the core": {false, func(_ *statetest.Bench, _ *state.Job, r *slurmctl.Job) { r.NodeList = []string{"n1", "n2"} }, "running, step 1 on n[1-2]"},
		"a companion of it":                      {false, func(b *statetest.Bench, j *state.Job, _ *slurmctl.Job) { companion(b, j, 1000) }, "running, step 1 on n[1,4]"},
		"another user's job, named as one":       {false, func(b *statetest.Bench, j *state.Job, _ *slurmctl.Job) { companion(b, j, 2000) }, "running, step 1 on n1"},
		"it has the mark of an expander as well": {false, func(b *statetest.Bench, j *state.Job, _ *slurmctl.Job) {
			companion(b, j, 2000)
			b.Seen.ByID[9].Comment = slurm.ExpanderMark
		}, "running, step 1 on n1"},
		"an action is under way": {false, func(_ *statetest.Bench, j *state.Job, r *slurmctl.Job) { j.Busy = true; r.State = slurmctl.Completed }, "running, step 1 on n1"},
		"its hold is being changed": {true, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			busy(b, j, state.KindAdjustHold)
			runs(b, r, "n2")
		}, "running, step 1 on n2"},
		"it has ended as its hold is being changed": {false, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			busy(b, j, state.KindCreateHold)
			r.State = slurmctl.Completed
		}, "running, step 1 on n1"},
		"it is being released from its hold": {true, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			busy(b, j, state.KindDeleteHold)
			runs(b, r, "n2")
		}, "queued, step 0 on "},
		"an action has ended since it was made": {false, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			j.Touched = b.Now.Add(1)
			r.State = slurmctl.Completed
		}, "running, step 1 on n1"},
		"an action ended at that moment": {false, func(b *statetest.Bench, j *state.Job, r *slurmctl.Job) {
			j.Touched = b.Now
			r.State = slurmctl.Completed
		}, "running, step 1 on n1, ask [1]"},
		"its nodes did not come up": {true, func(_ *statetest.Bench, j *state.Job, _ *slurmctl.Job) { j.State, j.Configuring = row.Starting, true }, "queued, step 0 on "},
		"Slurm's clock says that it starts later": {true, func(b *statetest.Bench, _ *state.Job, r *slurmctl.Job) {
			runs(b, r, "n2")
			r.StartTime = b.Now.Add(time.Hour)
		}, "running, step 1 on n2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 1, "1@10m,2@10m", time.Hour)
			if b.Plans(j, "0-600 n1", "600-1200 n[1-2]"); !c.queued {
				b.Runs(j, "n1")
			}
			b.Later(later)
			if c.change != nil {
				c.change(b, j, b.Seen.ByID[1])
			}
			Follow(b.Core, b.Seen)
			got := fmt.Sprintf("%s, step %d on %s", j.State, j.Step, slurmctl.CompressNodes(j.Nodes()))
			if j.Ending {
				got += ", ending"
			}
			if tasks := b.Tasks(); len(tasks) > 0 {
				got += ", " + strings.Join(tasks, ", ")
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if j.StepStarted.After(b.Now) {
				t.Errorf("its step begins in the future, at %v", j.StepStarted)
			}
		})
	}
}

// runs has Slurm show a job as running.
func runs(b *statetest.Bench, r *slurmctl.Job, node string) {
	r.State, r.NodeList, r.BatchHost = slurmctl.Running, []string{node}, node
	r.StartTime, r.EndTime = b.Now, b.Now.Add(r.TimeLimit)
}

// task makes a job a task of array 50.
func task(j *state.Job, r *slurmctl.Job, number uint32) {
	j.Array, j.Task = 50, number
	r.ArrayJobID, r.Display = 50, fmt.Sprintf("50_%d", number)
}

// busy has a task of a kind be under way for a job.
func busy(b *statetest.Bench, j *state.Job, kind state.Kind) {
	b.Ask(j, "", kind, msg.Task{}, state.Args{})
	b.Effects = nil
}

// companion has job 9 of a user run on n4 with the name of a companion of a job.
func companion(b *statetest.Bench, j *state.Job, uid uint32) {
	j.Drive = "companion"
	state.SetMode(b.Core, j)
	r := b.StockRuns(9, "n4", time.Hour)
	r.Name, r.UID = "evo_1_2_1", uid
}

// TestBegins checks the plan of a job whose next step begins, in seconds from its start.
func TestBegins(t *testing.T) {
	for name, c := range map[string]struct {
		at    time.Duration
		blind bool // no poll has come, so that nothing can be planned
		want  string
	}{
		"as planned":                  {10 * time.Minute, false, "0-600 n1, 600-1200 n[1-2], 1200-1800 n1"},
		"a minute late":               {11 * time.Minute, false, "0-660 n1, 660-1260 n[1-2], 1260-1860 n1"},
		"a minute early":              {9 * time.Minute, false, "0-540 n1, 540-1140 n[1-2], 1140-1740 n1"},
		"at its own start":            {0, false, "0-0 n1, 0-600 n[1-2], 600-1200 n1"},
		"late, before the first poll": {11 * time.Minute, true, "0-660 n1, 660-1200 n[1-2], 1200-1800 n1"},
		"later than its plan's end":   {time.Hour, true, "0-3600 n1, 3600-3600 n[1-2], 3600-3600 n1"},
	} {
		b := statetest.New(t, 4)
		b.Config.Margin = 0
		j := b.Evolving(1, 1, "1@10m,2@10m,1@10m", time.Hour)
		b.Runs(j, "n1")
		b.Plans(j, "0-600 n1", "600-1200 n[1-2]", "1200-1800 n1")
		b.Later(c.at)
		b.Has(j, "n[1-2]")
		b.Waits(j)
		if c.blind {
			b.Snapshot = nil
		}
		BeginStep(b.Core, j, b.Now)
		if got := statetest.Planned(j); got != c.want || j.Step != 2 || j.State != row.Running {
			t.Errorf("%s: step %d: %s\nwant %s", name, j.Step, got, c.want)
		}
	}
}

// TestBelieve checks which step a job is in once its application has named one. The sidecar inferred the second of
// three.
func TestBelieve(t *testing.T) {
	for name, c := range map[string]struct {
		guess   int // the lowest step that it may be in; 0: the sidecar knows its step
		reached int // the step in which its request was changed
		said    int
		want    int
	}{
		"the same":                           {1, 0, 2, 2},
		"a later one":                        {1, 0, 3, 3},
		"an earlier one":                     {1, 0, 1, 1},
		"an earlier one than it was changed": {1, 2, 1, 2},
		"an earlier one than the copy knew":  {2, 0, 1, 2},
		"no step":                            {1, 0, 0, 2},
		"a negative step":                    {1, 0, -1, 2},
		"a step beyond the last":             {1, 0, 4, 2},
		"the sidecar knows its step":         {0, 0, 3, 2},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(1, 1, "1@10m,1@10m,1@10m", time.Hour)
		b.Runs(j, "n1")
		j.Step, j.Guess, j.Reached = 2, c.guess, c.reached
		Believe(b.Core, j, c.said)
		if j.Step != c.want {
			t.Errorf("%s: step %d, want %d", name, j.Step, c.want)
		}
		if Believe(b.Core, j, 3); c.want == c.said && j.Step != c.want {
			t.Errorf("%s: it is believed a second time", name)
		}
	}
}

// TestKeptStart checks when a limit is taken for the reason that Slurm does not start a released job.
func TestKeptStart(t *testing.T) {
	for name, c := range map[string]struct {
		state  slurmctl.JobState
		reason string
		after  time.Duration // since it was released
		want   bool
	}{
		"a limit, at once":      {slurmctl.Pending, "AssocGrpNodeLimit", limitPatience, false},
		"a limit, a bit later":  {slurmctl.Pending, "AssocGrpNodeLimit", limitPatience + 1, true},
		"it waits for its turn": {slurmctl.Pending, "Priority", time.Hour, false},
		"it waits for nodes":    {slurmctl.Pending, "Resources", time.Hour, false},
		"it runs":               {slurmctl.Running, "AssocGrpNodeLimit", time.Hour, false},
		"in the future":         {slurmctl.Pending, "AssocGrpNodeLimit", -time.Hour, false},
	} {
		b := statetest.New(t, 1)
		if got := KeptStart(b.Core, b.Seen, &slurmctl.Job{State: c.state, Reason: c.reason}, b.Now.Add(-c.after)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
