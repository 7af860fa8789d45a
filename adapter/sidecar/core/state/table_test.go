package state_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestTasks checks which tasks may begin beside those under way.
func TestTasks(t *testing.T) {
	ask := func(b *statetest.Bench, key string) bool {
		return b.Ask(nil, key, state.KindScript, msg.Task{Command: msg.ReadScript{}}, state.Args{})
	}
	for name, c := range map[string]struct {
		change func(b *statetest.Bench)
		want   bool
	}{
		"the first one":                    {func(*statetest.Bench) {}, true},
		"beside one of another key":        {func(b *statetest.Bench) { ask(b, "other") }, true},
		"beside one of its key":            {func(b *statetest.Bench) { ask(b, "key") }, false},
		"after one of its key":             {func(b *statetest.Bench) { ask(b, "key"); b.Ends(nil, nil) }, true},
		"after one of its key has failed":  {func(b *statetest.Bench) { ask(b, "key"); b.Ends(errors.New("no"), nil) }, false},
		"a moment before it may try again": {func(b *statetest.Bench) { ask(b, "key"); b.Ends(errors.New("no"), nil); b.Later(state.AgainAfter - 1) }, false},
		"once it may try again":            {func(b *statetest.Bench) { ask(b, "key"); b.Ends(errors.New("no"), nil); b.Later(state.AgainAfter) }, true},
	} {
		b := statetest.New(t, 1)
		c.change(b)
		if got := ask(b, "key"); got != c.want {
			t.Errorf("%s: it begins: %v", name, got)
		}
	}
}

// TestRoom checks how many tasks run at once, and that tasks of users, who may stop their processes for as long as they
// like, keep no place from the sidecar's own, nor all places from other users.
func TestRoom(t *testing.T) {
	own := func(b *statetest.Bench, n int) {
		for i := range n {
			b.Ask(nil, fmt.Sprint("own ", i), state.KindLimits, msg.Task{Command: msg.ReadLimits{}}, state.Args{})
		}
	}
	users := func(b *statetest.Bench, uids, each int) {
		for i := range uids * each {
			b.Ask(nil, fmt.Sprint("user ", i), state.KindShape, msg.Task{Command: msg.Update{As: 2000 + uint32(i/each)}}, state.Args{})
		}
	}
	for name, c := range map[string]struct {
		change            func(b *statetest.Bench)
		room, holds, user bool // for a task, one about a hold, and one of user 1000
	}{
		"nothing is under way":          {func(*statetest.Bench) {}, true, true, true},
		"seven":                         {func(b *statetest.Bench) { own(b, 7) }, true, true, true},
		"eight: no more holds":          {func(b *statetest.Bench) { own(b, 8) }, true, false, true},
		"fifteen":                       {func(b *statetest.Bench) { own(b, 15) }, true, false, true},
		"sixteen: no more":              {func(b *statetest.Bench) { own(b, 16) }, false, false, true},
		"63 of users":                   {func(b *statetest.Bench) { users(b, 9, 7) }, true, true, true},
		"64 of users: no newcomer":      {func(b *statetest.Bench) { users(b, 8, 8) }, true, true, false},
		"seven of this user":            {func(b *statetest.Bench) { theirs(b, 7) }, true, true, true},
		"eight of this user":            {func(b *statetest.Bench) { theirs(b, 8) }, true, true, false},
		"47 of others, one of this one": {func(b *statetest.Bench) { theirs(b, 1); users(b, 46, 1) }, true, true, true},
		"48: the rest is for newcomers": {func(b *statetest.Bench) { theirs(b, 1); users(b, 47, 1) }, true, true, false},
	} {
		b := statetest.New(t, 1)
		c.change(b)
		if room, holds, user := b.Work.Room(), b.Work.RoomForHolds(), b.Work.RoomFor(1000); room != c.room || holds != c.holds || user != c.user {
			t.Errorf("%s: room %v, for holds %v, for the user %v", name, room, holds, user)
		}
		for len(b.Work.Pending) > 0 {
			b.Ends(nil, nil)
			for id := range b.Work.Pending {
				b.Work.Last = id
			}
		}
		if !b.Work.Room() || !b.Work.RoomFor(1000) || !b.Work.RoomForHolds() {
			t.Errorf("%s: places are lost", name)
		}
	}
}

// theirs begins tasks that run processes of user 1000.
func theirs(b *statetest.Bench, n int) {
	for i := range n {
		b.Ask(nil, fmt.Sprint("theirs ", i), state.KindShape, msg.Task{Command: msg.Update{As: 1000}}, state.Args{})
	}
}

// TestFailed checks the pause after an action that has failed some times before.
func TestFailed(t *testing.T) {
	for name, c := range map[string]struct {
		before int
		err    error
		want   time.Duration
		fails  bool // it counts for give_up
	}{
		"the first time":          {0, errors.New("no"), 500 * time.Millisecond, true},
		"the second":              {1, errors.New("no"), time.Second, true},
		"the tenth":               {9, errors.New("no"), 256 * time.Second, true},
		"the eleventh":            {10, errors.New("no"), state.MostPause, true},
		"the thousandth":          {999, errors.New("no"), state.MostPause, true},
		"as often as can be":      {math.MaxInt - 1, errors.New("no"), state.MostPause, true},
		"Slurm is away":           {0, slurmctl.ErrUnreachable, 500 * time.Millisecond, false},
		"Slurm is away for long":  {999, slurmctl.ErrUnreachable, 30 * time.Second, false},
		"its database is away":    {999, slurmctl.ErrNoSlurmdbd, 30 * time.Second, false},
		"a command took too long": {999, context.DeadlineExceeded, 30 * time.Second, false},
	} {
		b := statetest.New(t, 1)
		j := b.Evolving(1, 1, "1@1m", time.Hour)
		j.Failures = c.before
		j.Failed("grow", c.err, b.Now, b.Wall)
		if got := j.RetryAt.Sub(b.Now); got != c.want || j.Failures != c.before+1 || j.Failing.IsZero() == c.fails {
			t.Errorf("%s: a pause of %v, want %v; failing since %v", name, got, c.want, j.Failing)
		}
	}
}

// TestJobVerbs checks what a job with a plan of three steps has next, and when.
func TestJobVerbs(t *testing.T) {
	at := func(second int64) string {
		return fmt.Sprint(statetest.Start.Add(time.Duration(second)*time.Second).Unix() - statetest.Second)
	}
	for name, c := range map[string]struct {
		change             func(b *statetest.Bench, j *state.Job)
		next, due, planned string
		last               bool
	}{
		"queued":                  {func(_ *statetest.Bench, j *state.Job) { j.State, j.Step = row.Queued, 0 }, "n1", at(0), "n[1-3]", false},
		"queued without a plan":   {func(b *statetest.Bench, j *state.Job) { j.State, j.Step = row.Queued, 0; b.Plans(j) }, "", "", "", false},
		"in its first step":       {nil, "n[1-3]", "", "n[1-3]", false},
		"it waits for the second": {func(b *statetest.Bench, j *state.Job) { b.Waits(j) }, "n[1-3]", at(60), "n[1-3]", false},
		"it waits for the third":  {func(b *statetest.Bench, j *state.Job) { j.Step = 2; b.Waits(j) }, "n2", at(120), "n[1-3]", false},
		"in its last step":        {func(_ *statetest.Bench, j *state.Job) { j.Step = 3 }, "", "", "n2", true},
		"its promise has lapsed":  {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-60 n1") }, "", "", "n1", false},
		"it waits without a plan": {func(b *statetest.Bench, j *state.Job) { b.Plans(j); b.Waits(j) }, "", "", "", false},
	} {
		b := statetest.New(t, 3)
		j := b.Evolving(1, 1, "1@1m,3@1m,1@1m", time.Hour)
		b.Runs(j, "n1")
		b.Plans(j, "0-60 n1", "60-120 n[1-3]", "120-180 n2")
		if c.change != nil {
			c.change(b, j)
		}
		next, due := "", ""
		if p := j.Next(); p != nil {
			next = slurmctl.CompressNodes(p.Nodes)
		}
		if !j.Due().IsZero() {
			due = fmt.Sprint(j.Due().Unix() - statetest.Second)
		}
		planned := slurmctl.CompressNodes(slices.Sorted(slices.Values(j.Planned())))
		if next != c.next || due != c.due || planned != c.planned || j.Last() != c.last {
			t.Errorf("%s: next on %q, due at %q, planned on %q, last %v", name, next, due, planned, j.Last())
		}
	}
}

// TestRecordOf checks which record a settled task changes: none of another poll.
func TestRecordOf(t *testing.T) {
	b := statetest.New(t, 1)
	j := b.Evolving(1, 1, "1@1m", time.Hour)
	shown := b.Stock(9, 1, 1, time.Hour)
	for name, c := range map[string]struct {
		job  *state.Job
		seen time.Time
		id   slurmctl.JobID
		want *slurmctl.Job // nil: one that nobody reads
	}{
		"the job's own":              {j, time.Time{}, 1, &j.Record},
		"one of this poll":           {j, b.Seen.Taken, 9, shown},
		"of no job":                  {nil, b.Seen.Taken, 9, shown},
		"one of a poll before":       {j, b.Seen.Taken.Add(-1), 9, nil},
		"one that Slurm has lost":    {j, b.Seen.Taken, 8, nil},
		"of no job, without a poll.": {nil, time.Time{}, 9, nil},
	} {
		got := b.RecordOf(c.job, &state.Pending{Args: state.Args{Seen: c.seen}}, c.id)
		if c.want != nil && got != c.want || c.want == nil && (got == shown || got == &j.Record || got.ID != c.id) {
			t.Errorf("%s: %p %+v", name, got, got)
		}
	}
}

// TestRecordBesideAttempt checks that a settled task changes no record that an attempt may be reading.
func TestRecordBesideAttempt(t *testing.T) {
	b := statetest.New(t, 1)
	b.Stock(9, 1, 1, time.Hour)
	attempt, limit := b.Seen.Copied(), time.Minute
	b.Tries.Underway = 1
	state.Wrote(b.RecordOf(nil, &state.Pending{Args: state.Args{Seen: b.Seen.Taken}}, 9), slurmctl.JobUpdate{TimeLimit: limit})
	if got := b.Seen.ByID[9].TimeLimit; got != limit || b.Seen.Jobs[0].TimeLimit != limit {
		t.Errorf("the snapshot has %v", got)
	}
	if got := attempt.ByID[9].TimeLimit; got != time.Hour || attempt.Jobs[0].TimeLimit != time.Hour {
		t.Errorf("the attempt's snapshot has %v", got)
	}
}

// TestStorePlan checks that a plan is saved only if it has changed.
func TestStorePlan(t *testing.T) {
	for name, c := range map[string]struct {
		plan []string
		want bool
	}{
		"the same":          {[]string{"0-60 n1", "60-120 n[1-2]"}, false},
		"another second":    {[]string{"0-60 n1", "60-121 n[1-2]"}, true},
		"another node":      {[]string{"0-60 n1", "60-120 n[1,3]"}, true},
		"a step fewer":      {[]string{"0-60 n1"}, true},
		"none":              {nil, true},
		"the order of some": {[]string{"0-60 n1", "60-120 n2,n1"}, true},
	} {
		b := statetest.New(t, 3)
		j := b.Evolving(1, 1, "1@1m,2@1m", time.Hour)
		b.Plans(j, "0-60 n1", "60-120 n[1-2]")
		b.SavePlans()
		changes := b.Tries.Changed
		if b.Plans(j, c.plan...); b.Unsaved[j] != c.want || (b.Tries.Changed != changes) != c.want {
			t.Errorf("%s: to be saved: %v", name, b.Unsaved[j])
		}
	}
}

// TestDue: a step is due at the first time that cannot wait for a poll, and decisions may differ at the first time of all.
func TestDue(t *testing.T) {
	now := time.Unix(100, 0)
	m := msg.Moments{Wake: now.Add(msg.MostWake)}
	for name, reached := range map[string]bool{"now": m.Due(now, now), "this second": m.DueSecond(100, 100), "a second ago": m.Reached(now, now.Add(-time.Second))} {
		if !reached || !m.Next.IsZero() {
			t.Errorf("%s: reached %v, noted %v", name, reached, m.Next)
		}
	}
	if m.Due(now, now.Add(5*time.Second)) || m.DueSecond(100, 103) || m.Reached(now, now.Add(time.Second)) {
		t.Error("a coming time is reached")
	}
	if m.Next != now.Add(time.Second) || m.Wake != now.Add(3*time.Second) {
		t.Errorf("next %v, wake %v", m.Next, m.Wake)
	}
}
