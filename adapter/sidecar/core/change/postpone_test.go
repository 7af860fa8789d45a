package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// asks tries a growth of a job and returns what comes of it: its nodes and which waiting jobs it makes later, or the refusal.
func asks(t testing.TB, b *statetest.Bench, j *state.Job, g api.Grow) (tried state.TriedTarget, text string) {
	target, err := Target(b.Core, j, &api.ChangeRequest{ID: "1", Grow: &g})
	if err != nil {
		t.Fatal(err)
	}
	if tried = TryChange(b.Core, b.Seen, j, target); tried.Refused != "" {
		return tried, tried.Refused
	}
	text = fmt.Sprint(len(tried.Plan[j.Step].Nodes))
	for _, one := range tried.Later {
		text += fmt.Sprintf(", job %d by %ds", one.Job, one.Seconds)
	}
	return tried, text
}

// TestPostponing: job 1 has two of eight nodes and asks for two more until 10:00. Stock job 5 has four until 5:01, and a
// waiting job of six nodes could start then.
func TestPostponing(t *testing.T) {
	waits := func(b *statetest.Bench) *slurmctl.Job {
		r := b.Stock(9, 10, 6, time.Hour)
		r.UID = 1000
		return r
	}
	took := func(b *statetest.Bench, of row.GrowDelayOf, since time.Time, amount int64) {
		b.Delays.Grown[of] = row.GrowDelay{GrowDelayOf: of, Since: since, Amount: amount}
	}
	user, job := row.GrowDelayOf{User: true, ID: 1000}, row.GrowDelayOf{ID: 9}
	for name, c := range map[string]struct {
		budget time.Duration
		change func(b *statetest.Bench)
		want   string
	}{
		"no budget":              {0, func(b *statetest.Bench) { waits(b) }, "in the way: others' jobs"},
		"within the budget":      {10 * time.Minute, func(b *statetest.Bench) { waits(b) }, "4, job 9 by 299s"},
		"just within the budget": {299 * time.Second, func(b *statetest.Bench) { waits(b) }, "4, job 9 by 299s"},
		"beyond the budget": {298 * time.Second, func(b *statetest.Bench) { waits(b) },
			"in the way: others' jobs; with it, job 9 would start 4m59s later, and growths may make it 4m58s later (grow_delay)"},
		"another's job has no name":      {time.Minute, func(b *statetest.Bench) { waits(b).UID = 7 }, "with it, another's job would start 4m59s later"},
		"some of the budget is taken":    {10 * time.Minute, func(b *statetest.Bench) { took(b, job, waits(b).SubmitTime, 301) }, "4, job 9 by 299s"},
		"more of it is taken":            {10 * time.Minute, func(b *statetest.Bench) { took(b, job, waits(b).SubmitTime, 302) }, "growths may make it 4m58s later"},
		"an earlier job of that number":  {10 * time.Minute, func(b *statetest.Bench) { took(b, job, waits(b).SubmitTime.Add(-time.Hour), 600) }, "4, job 9 by 299s"},
		"max_delay is less":              {10 * time.Minute, func(b *statetest.Bench) { waits(b); b.Config.MaxDelay = time.Minute }, "growths may make it 1m0s later"},
		"max_delay of its partition":     {10 * time.Minute, func(b *statetest.Bench) { waits(b); b.Config.MaxDelays = []string{"partition:main=2m"} }, "growths may make it 2m0s later"},
		"the user's share is just there": {10 * time.Minute, func(b *statetest.Bench) { waits(b); took(b, user, b.Now, 8*600-6*299) }, "4, job 9 by 299s"},
		"the user's share is taken": {10 * time.Minute, func(b *statetest.Bench) { waits(b); took(b, user, b.Now.Add(-shareFor+time.Second), 8*600-6*299+1) },
			"; it would take 1794 node-seconds from waiting jobs, and the growths of user may take 1793 more until an hour has passed without such a growth (grow_delay)"},
		"it was taken an hour ago": {10 * time.Minute, func(b *statetest.Bench) { waits(b); took(b, user, b.Now.Add(-shareFor), 8*600) }, "4, job 9 by 299s"},
		"a job behind it":          {0, func(b *statetest.Bench) { waits(b).Priority = 0 }, "4"},
		"an evolving job": {10 * time.Minute, func(b *statetest.Bench) {
			b.Plans(b.Evolving(9, 10, "6@10m", time.Hour), "301-901 n[3-8]")
		}, "4, job 9 by 299s"},
		"an evolving job, beyond": {time.Minute, func(b *statetest.Bench) {
			b.Plans(b.Evolving(9, 10, "6@10m", time.Hour), "301-901 n[3-8]")
		}, "with it, job 9 would start 4m59s later, and growths may make it 1m0s later"},
		"a promise never moves": {time.Hour, func(b *statetest.Bench) { promised(b, "500-900 n[4-8]") }, "in the way: job 2"},
		"a job that would start only after a maintenance": {time.Hour, func(b *statetest.Bench) {
			waits(b)
			b.Reserve("maintenance", time.Hour+350*time.Second, 2*time.Hour, 3, 8)
		}, "with it, job 9 would start 3h0m49s later"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 8)
			b.Config.Margin, b.Config.StockJobs, b.Config.GrowDelay = 0, 100, c.budget
			j := b.Evolving(1, 1, "2@10m", time.Hour)
			b.Runs(j, "n[1-2]")
			b.Plans(j, "0-600 n[1-2]")
			j.Record.Comment = "evo:v2;p=2@10m;;"
			b.Show(j)
			b.StockRuns(5, "n[3-6]", 5*time.Minute)
			c.change(b)
			tried, got := asks(t, b, j, api.Grow{Nodes: 2})
			if !strings.Contains(got, c.want) || tried.Refused == "" && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if len(b.Effects) > 0 && slices.ContainsFunc(b.Effects, func(e msg.Effect) bool { _, is := e.(msg.SaveGrowDelay); return is }) {
				t.Error("an attempt has booked something")
			}
		})
	}
}

// TestPostponedBooks: what growths take is booked for the job and for the user, saved, and forgotten when it no longer counts.
func TestPostponedBooks(t *testing.T) {
	b := statetest.New(t, 8)
	j, r := b.Evolving(1, 1, "2@10m", time.Hour), b.Stock(9, 10, 6, time.Hour)
	r.User = "bob"
	saved := func() (all []string) {
		for _, e := range b.Effects {
			if s, is := e.(msg.SaveGrowDelay); is {
				all = append(all, fmt.Sprintf("%v %d: %d", s.Row.User, s.Row.ID, s.Row.Amount))
			}
		}
		b.Effects = nil
		return all
	}
	shows := func(want string) {
		t.Helper()
		users, jobs := Grown(b.Core)
		if got := fmt.Sprint(users, jobs); got != want {
			t.Errorf("evosctl budget shows %s, want %s", got, want)
		}
	}
	b.Config.GrowDelay = 10 * time.Minute
	shows("[] []")
	for i, want := range []string{"[false 9: 100 true 1000: 600]", "[false 9: 200 true 1000: 1200]"} {
		bookGrowth(b.Core, j, []row.Postponed{{Job: 9, Seconds: 100, Nodes: 6}})
		if got := fmt.Sprint(saved()); got != want {
			t.Errorf("growth %d: %s, want %s", i+1, got, want)
		}
		b.Later(30 * time.Minute)
	}
	shows("[{1000 user 1200 4800 2027-01-15 09:30:00 +0000 UTC}] [{9 bob 200 600}]")
	b.Skew = time.Hour // the clock was set: the job is still the same
	r.SubmitTime = r.SubmitTime.Add(-time.Hour)
	if forgetGrown(b.Core); len(saved()) > 0 {
		t.Error("something is forgotten too early")
	}
	b.Later(30 * time.Minute)
	r.State = slurmctl.Running
	shows("[] []")
	if forgetGrown(b.Core); fmt.Sprint(saved()) != "[false 9: 0 true 1000: 0]" || len(b.Delays.Grown) > 0 {
		t.Errorf("left: %v", b.Delays.Grown)
	}
}

// TestPostponedWithin: however many growths of however many jobs are granted, no waiting job is planned later than the
// budget allows, in all; none of the running jobs' promises moves; and no user takes more than a share.
func TestPostponedWithin(t *testing.T) {
	granted := 0
	rapid.Check(t, func(r *rapid.T) {
		b := statetest.New(t, 12)
		b.Config.Margin, b.Config.StockJobs, b.Config.GrowDelay = 0, 100, time.Duration(rapid.IntRange(0, 900).Draw(r, "budget"))*time.Second
		var growers []*state.Job
		for i := range 3 {
			j := b.Evolving(1+i, 1, "1@30m", 2*time.Hour)
			j.UID = uint32(1000 + i%2)
			b.Runs(j, fmt.Sprintf("n%d", i+1))
			b.Plans(j, fmt.Sprintf("0-1800 n%d", i+1))
			j.Record.Comment = "evo:v2;p=1@30m;;"
			b.Show(j)
			growers = append(growers, j)
		}
		busy := rapid.IntRange(4, 11).Draw(r, "busy")
		b.StockRuns(20, fmt.Sprintf("n[4-%d]", busy), time.Duration(rapid.IntRange(60, 1500).Draw(r, "left"))*time.Second)
		for i := range rapid.IntRange(1, 4).Draw(r, "waiting") {
			b.Stock(30+i, 10, rapid.IntRange(1, 9).Draw(r, "nodes"), time.Duration(rapid.IntRange(60, 3600).Draw(r, "limit"))*time.Second)
		}
		first := refit.Starts(b.Core, b.Seen, growers[0])
		for range rapid.IntRange(1, 5).Draw(r, "growths") {
			j := growers[rapid.IntRange(0, 2).Draw(r, "who")]
			if j.State != row.Running { // its growth is granted
				continue
			}
			tried, _ := asks(t, b, j, api.Grow{Nodes: rapid.IntRange(1, 6).Draw(r, "by"), Min: 1, For: int64(rapid.IntRange(60, 1800).Draw(r, "for"))})
			if tried.Refused != "" {
				continue
			}
			granted += len(tried.Later)
			bookGrowth(b.Core, j, tried.Later)
			MakeChange(b.Core, j, tried.Target, "1")
		}
		budget := int64(b.Config.GrowDelay / time.Second)
		for id, at := range refit.Starts(b.Core, b.Seen, growers[0]) {
			if at-first[id] > budget {
				r.Errorf("job %d starts %d s later, and the budget is %d", id, at-first[id], budget)
			}
		}
		for of, d := range b.Delays.Grown {
			if of.User && d.Amount > 12*budget || !of.User && d.Amount > budget {
				r.Errorf("%+v with a budget of %d", d, budget)
			}
		}
	})
	if granted == 0 {
		t.Error("no growth was granted that makes a job later")
	}
}
