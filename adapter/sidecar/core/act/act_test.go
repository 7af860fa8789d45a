package act

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// held has the nodes of a job's step held, for this user.
func held(b *statetest.Bench, j *state.Job, step int, start, end int64, list, user string) {
	flags := state.Hold{Job: j, Step: step}.Flags()
	hold.SetHold(b.Core, slurmctl.Reservation{Name: state.OwnName{Job: j.BaseID(), Step: step, Attempt: 1}.String(), Flags: flags, Nodes: statetest.Nodes(list), Users: []string{user},
		Start: time.Unix(statetest.Second+start, 0), End: time.Unix(statetest.Second+end, 0)})
}

// acts has a job act, and returns the tasks that follow in words, or else why there are none.
func acts(b *statetest.Bench, j *state.Job) string {
	ActOn(b.Core, b.Seen, j, b.Now)
	SendWarnings(b.Core)
	if tasks := b.Tasks(); len(tasks) > 0 {
		return strings.Join(tasks, "; ")
	}
	return j.Reason().Words()
}

// contacted has n2 contacted so long from now; `told` is when Slurm had done so before, or that had failed.
func contacted(b *statetest.Bench, asked time.Duration, told time.Time) {
	b.Shrunk["n2"] = state.Miscount{Asked: b.Now.Add(asked), Told: told}
}

// TestStarts checks when a queued job with a plan for now is released, and what it waits for otherwise.
func TestStarts(t *testing.T) {
	const start = "start 1 in evo_1_1_1"
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"everything is ready":       {nil, start},
		"in its user's reservation": {func(b *statetest.Bench, j *state.Job) { j.RunsIn("course") }, start + ",course"},
		"in it, where Slurm would try that first": {func(b *statetest.Bench, j *state.Job) {
			b.SlurmConfig.Version = "24.11.5"
			j.RunsIn("course")
		}, start},
		"planned for a second later":           {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "1-601 n[1-2]", "601-1201 n[1-3]") }, ""},
		"it has no plan":                       {func(b *statetest.Bench, j *state.Job) { b.Plans(j) }, ""},
		"no hold for the start":                {func(b *statetest.Bench, _ *state.Job) { hold.ForgetHold(b.Core, "evo_1_1_1") }, "its nodes are being held"},
		"no hold for the growth":               {func(b *statetest.Bench, _ *state.Job) { hold.ForgetHold(b.Core, "evo_1_2_1") }, "its nodes are being held"},
		"its shares allow none for the growth": {func(b *statetest.Bench, j *state.Job) { hold.ForgetHold(b.Core, "evo_1_2_1"); j.Deferred = []int{2} }, start},
		"the hold begins later": {func(b *statetest.Bench, j *state.Job) {
			held(b, j, 1, 1, 1300, "n[1-2]", "user")
			b.HeldSince["evo_1_1_1"] = b.Now.Add(-time.Minute)
		}, "its nodes are being held"},
		"the hold has other nodes":         {func(b *statetest.Bench, j *state.Job) { held(b, j, 1, 0, 1300, "n[2-3]", "user") }, "its nodes are being held"},
		"the hold was made after the poll": {func(b *statetest.Bench, _ *state.Job) { b.HeldSince["evo_1_1_1"] = b.Now }, "its nodes are being held"},
		"and a later poll shows the nodes free": {func(b *statetest.Bench, _ *state.Job) {
			b.HeldSince["evo_1_1_1"], b.Seen.NodesTaken = b.Now, b.Now.Add(time.Second)
		},
			start},
		"a stock job is on one of its nodes": {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n2", time.Minute) }, "waits for nodes that are about to be free"},
		"one of its nodes is off":            {func(b *statetest.Bench, _ *state.Job) { b.Seen.Nodes[1].Flags = "~" }, "waits for 1 nodes that are being switched on"},
		"Slurm was made to contact a node":   {func(b *statetest.Bench, _ *state.Job) { contacted(b, -time.Second, time.Time{}) }, "waits for nodes that Slurm contacts"},
		"that node does not answer yet": {func(b *statetest.Bench, _ *state.Job) {
			contacted(b, -3*time.Second, b.Seen.Taken.Add(-time.Second))
			b.Seen.Asked = msg.Set{"n2": true}
		}, "waits for n2 (contacted)"},
		"the poll is older than the contact": {func(b *statetest.Bench, _ *state.Job) { contacted(b, -3*time.Second, b.Seen.Taken) }, "waits for nodes that Slurm contacts"},
		"that node answers":                  {func(b *statetest.Bench, _ *state.Job) { contacted(b, -3*time.Second, b.Seen.Taken.Add(-time.Second)) }, start},
		"it was contacted long ago":          {func(b *statetest.Bench, _ *state.Job) { contacted(b, -10*time.Second, time.Time{}) }, start},
		"others were promised a node since":  {func(b *statetest.Bench, _ *state.Job) { promises(b, "500-700 n[2,5]") }, "is planned again: its nodes were promised to job 2"},
		"others were promised it until then": {func(b *statetest.Bench, _ *state.Job) { promises(b, "1200-1300 n[2,5]") }, start},
		"a limit keeps it back":              {func(_ *statetest.Bench, j *state.Job) { j.Kept = &state.KeptBack{} }, ""},
		"it would be its claim's deadlock":   {func(b *statetest.Bench, j *state.Job) { claims(b, j) }, state.Unsafe},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 5)
			j := b.Evolving(1, 1, "2@10m,3@10m", 20*time.Minute)
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-3]")
			held(b, j, 1, 0, 1300, "n[1-2]", "user")
			held(b, j, 2, 600, 1300, "n3", "nobody")
			if c.change != nil {
				c.change(b, j)
			}
			if got := acts(b, j); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if starts := strings.HasPrefix(c.want, start); (j.State == row.Starting) != starts || j.Busy != starts {
				t.Errorf("the job is %s, busy %v", j.State, j.Busy)
			}
		})
	}
}

// promises adds job 2, which runs on n5 and was promised a step.
func promises(b *statetest.Bench, step string) {
	other := b.Evolving(2, 1, "1@5m,2@5m", time.Hour)
	b.Runs(other, "n5")
	b.Plans(other, "0-500 n5", step)
}

// claims gives the job, and one that runs, a claim to all nodes.
func claims(b *statetest.Bench, j *state.Job) {
	other := b.Evolving(2, 1, "1@1h", time.Hour)
	b.Runs(other, "n5")
	b.Plans(other, "0-3600 n5")
	other.Claim, j.Claim = 5, 5
}

// TestTransition checks what brings a job whose step has ended to the nodes of its next one.
func TestTransition(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		has     string // the nodes that it has
		next    string // its planned next step
		change  func(b *statetest.Bench, j *state.Job)
		want    string // the tasks, the reason for none, or the step that it is in then
	}{
		"it grows":                          {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", nil, "grow 1 by n3 for step 2: merge"},
		"it grows from a hold":              {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { held(b, j, 2, 0, 120, "n3", "nobody") }, "grow 1 by n3 for step 2: merge from evo_1_2_1"},
		"the hold has but one of the nodes": {"2@1m,4@1m", "n[1-2]", "0-60 n[1-4]", func(b *statetest.Bench, j *state.Job) { held(b, j, 2, 0, 120, "n3", "nobody") }, "its hold is being moved"},
		"the hold has others, and another step's hold has it": {"1@1m,2@1m", "n1", "0-60 n[1,3]", func(b *statetest.Bench, j *state.Job) {
			held(b, j, 2, 0, 120, "n5", "nobody")
			held(b, j, 4, 120, 240, "n3", "nobody")
		}, "its hold is being moved"},
		"the hold has others, and no hold has it": {"1@1m,2@1m", "n1", "0-60 n[1,3]", func(b *statetest.Bench, j *state.Job) { held(b, j, 2, 0, 120, "n5", "nobody") }, "grow 1 by n3 for step 2: merge"},
		"its growth comes later":                  {"2@1m,3@1m", "n[1-2]", "60-120 n[1-3]", func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n3", time.Minute) }, "waits for 1 nodes, planned for "},
		"the nodes are free before":               {"2@1m,3@1m", "n[1-2]", "60-120 n[1-3]", nil, "grow 1 by n3 for step 2: merge"},
		"free, but promised until then": {"2@1m,3@1m", "n[1-2]", "60-120 n[1-3]", func(b *statetest.Bench, _ *state.Job) {
			promises(b, "500-700 n[4-5]")
			b.Plans(b.Active[1], "0-10 n5", "10-50 n[3,5]")
		}, "waits for 1 nodes, planned for "},
		"free, but reserved until then": {"2@1m,3@1m", "n[1-2]", "60-120 n[1-3]", func(b *statetest.Bench, _ *state.Job) {
			b.Reserve("x", 0, time.Minute, 3, 3)
			hold.TakeReservations(b.Core, b.Seen)
		}, "waits for 1 nodes, planned for "},
		"others have not given back a node": {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n3", time.Minute) }, "waits for nodes that others have not given back yet"},
		"by a companion":                    {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { j.Drive = "companion"; state.SetMode(b.Core, j) }, "grow 1 by n3 for step 2: companion"},
		"its request is not read":           {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(_ *statetest.Bench, j *state.Job) { j.Asked = nil }, "its request is being read"},
		"its user's tasks take all places":  {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", busyUser, "waits for other jobs of its user that are being changed"},
		"others have it in 65 s":            {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { reservedIn(b, j, 65*time.Second) }, "grow 1 by n3 for step 2: merge"},
		"others have it in 64 s":            {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { reservedIn(b, j, 64*time.Second) }, "its nodes are reserved for others in less than a minute, which is Slurm's shortest time limit"},
		"it shrinks":                        {"3@1m,1@1m", "n[1-3]", "0-60 n1", nil, "shrink 1 by n[2-3]"},
		"it shrinks before its time":        {"3@1m,1@1m", "n[1-3]", "60-120 n1", nil, "shrink 1 by n[2-3]"},
		"it has too many from a lost merge": {"2@1m,2@1m", "n[1-3]", "0-60 n[1-2]", nil, "shrink 1 by n3"},
		"it has the nodes already":          {"2@1m,2@1m", "n[1-2]", "0-60 n[1-2]", nil, "step 2"},
		"other nodes of the same number":    {"2@1m,2@1m", "n[1-2]", "0-60 n[1,3]", nil, "grow 1 by n3 for step 2: merge"},
		"a limit keeps the growth back": {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) {
			j.Kept = &state.KeptBack{Text: "no", Again: b.Now.Add(time.Second)}
		}, "no"},
		"it may be tried again from now on": {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { j.Kept = &state.KeptBack{Limit: "MaxJobs", Again: b.Now} }, "is planned again: there may be room under MaxJobs"},
		"it is suspended":                   {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(b *statetest.Bench, j *state.Job) { j.SuspendedFrom = b.Now }, ""},
		"it runs in another job's hold":     {"2@1m,3@1m", "n[1-2]", "0-60 n[1-3]", func(_ *statetest.Bench, j *state.Job) { j.Record.Reservation = "evo_7_1_1" }, "detach 1 from evo_7_1_1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 5)
			j := b.Evolving(1, 1, c.profile, time.Hour)
			b.Runs(j, c.has)
			b.Plans(j, "0-0 "+c.has, c.next)
			b.Waits(j)
			if c.change != nil {
				c.change(b, j)
			}
			got := acts(b, j)
			if j.Step == 2 {
				got = "step 2"
			}
			if got != c.want && (!strings.HasSuffix(c.want, " for ") || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestWatchSubmissions: a growth that a process of the job was to submit ends at once when its promise lapses, so that its
// hold goes. Otherwise the process has its time.
func TestWatchSubmissions(t *testing.T) {
	for name, c := range map[string]struct {
		next string
		in   time.Duration
		want string
	}{
		"in time":                {"0-60 n[1-3]", reportWithin - time.Second, ""},
		"late":                   {"0-60 n[1-3]", reportWithin, "grow 1 by n3 for step 2: companion from evo_1_2_1"},
		"its promise has lapsed": {"", 0, "grow 1 by n3 for step 2: companion from evo_1_2_1"},
	} {
		b := statetest.New(t, 5)
		j := b.Evolving(1, 1, "2@1m,3@1m", time.Hour)
		b.Runs(j, "n[1-2]")
		b.Plans(j, strings.Split(strings.Trim("0-0 n[1-2],"+c.next, ","), ",")...)
		b.Waits(j)
		askJob(b.Core, j, msg.Grow{Base: 1, Name: "evo_1_2_2", Hold: "evo_1_2_1", Step: 2, Nodes: []string{"n3"}}, state.Args{})
		b.Tasks()
		b.Later(c.in)
		if WatchSubmissions(b.Core); strings.Join(b.Tasks(), "; ") != c.want {
			t.Errorf("%s: want %q", name, c.want)
		}
	}
}

// busyUser has other jobs of the user run as many processes of the user as may run at once.
func busyUser(b *statetest.Bench, j *state.Job) {
	for id := 10; b.Work.RoomFor(j.UID); id++ {
		b.Do(b.Evolving(id, 1, "1@1m", time.Hour), "grow", "", state.KindGrow, msg.Grow{As: j.UID}, state.Args{})
	}
	b.Tasks()
}

// reservedIn has the job's limit end at once, and others reserve n3 for some time later.
func reservedIn(b *statetest.Bench, j *state.Job, in time.Duration) {
	j.Record.EndTime = b.Now
	b.Reserve("maint", in, time.Hour, 3, 3)
	j.Short, j.LastEnd = "known", statetest.Second
}

// TestOverrun checks what happens to a job that keeps n2 beyond its step's time of a minute, with a grace of 30 s.
func TestOverruns(t *testing.T) {
	for name, c := range map[string]struct {
		policy, signal string
		profile        string
		late           time.Duration
		rival          bool // another job waits for n2, which it was promised
		want           string
		state          row.State
	}{
		"within its grace":                     {"cancel", "USR1", "2@1m,1@1m", 29 * time.Second, true, "", row.Running},
		"it is warned once":                    {"cancel", "USR1", "2@1m,1@1m", 30 * time.Second, true, "signal [1] USR1", row.Running},
		"no signal at this site":               {"cancel", "", "2@1m,1@1m", 30 * time.Second, true, "the step lasts longer than its profile says", row.Running},
		"twice the grace, and nobody needs it": {"cancel", "", "2@1m,1@1m", time.Minute, false, "the step lasts longer than its profile says", row.Running},
		"a second before twice the grace":      {"cancel", "", "2@1m,1@1m", 59 * time.Second, true, "the step lasts longer than its profile says", row.Running},
		"twice the grace: cancel":              {"cancel", "", "2@1m,1@1m", time.Minute, true, "cancel [1]", row.Running},
		"twice the grace: shrink":              {"shrink", "", "2@1m,1@1m", time.Minute, true, "", row.Waiting},
		"shrink, but its next step grows":      {"shrink", "", "2@1m,3@1m", time.Minute, true, "the step lasts longer than its profile says; nodes are no longer held for its coming steps; it is planned again when it calls next", row.Running},
		"shrink, but it is in its last step":   {"shrink", "", "2@1m", time.Minute, true, "cancel [1]", row.Running},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 5)
			b.Config.Overrun, b.Config.OverrunSignal, b.Config.Grace = config.Overrun(c.policy), c.signal, 30*time.Second
			j := b.Evolving(1, 1, c.profile, 3*time.Hour)
			b.Runs(j, "n[1-2]")
			plan := []string{"0-60 n[1-2]", "60-120 n1"}
			b.Plans(j, plan[:len(j.Profile)]...)
			if len(j.Profile) > 1 && j.Profile[1].Nodes == 3 {
				b.Plans(j, "0-60 n[1-2]")
			}
			if c.rival {
				promises(b, "60-120 n[2,5]")
				b.Waits(b.Active[1])
			}
			b.Later(time.Minute + c.late)
			if got := acts(b, j); got != c.want || j.State != c.state {
				t.Errorf("%q, want %q; the job is %s", got, c.want, j.State)
			}
		})
	}
}

// TestActsOnce checks which jobs Act leaves alone.
func TestActsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		acts   bool
	}{
		"a job that is due":            {func(*statetest.Bench, *state.Job) {}, true},
		"an action is under way":       {func(_ *statetest.Bench, j *state.Job) { j.Busy = true }, false},
		"it is completing":             {func(_ *statetest.Bench, j *state.Job) { j.Ending = true }, false},
		"its last action failed":       {func(b *statetest.Bench, j *state.Job) { j.RetryAt = b.Now.Add(1) }, false},
		"the pause is over":            {func(b *statetest.Bench, j *state.Job) { j.RetryAt = b.Now }, true},
		"the sidecar has enough to do": {func(b *statetest.Bench, _ *state.Job) { fill(b) }, false},
	} {
		b := statetest.New(t, 2)
		j := b.Evolving(1, 1, "2@1m,1@1m", time.Hour)
		b.Runs(j, "n[1-2]")
		b.Plans(j, "0-0 n[1-2]", "0-60 n1")
		b.Waits(j)
		c.change(b, j)
		b.Tasks()
		Act(b.Core, b.Seen)
		if got := b.Tasks(); (len(got) > 0) != c.acts {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// fill begins as many tasks as may run at once.
func fill(b *statetest.Bench) {
	for i := 0; b.Work.Room(); i++ {
		b.Ask(nil, fmt.Sprint(i), state.KindLimits, msg.Task{Command: msg.ReadLimits{}}, state.Args{})
	}
}
