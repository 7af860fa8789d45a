package slurm

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// seen adds a job of a user to a poll, which ended some seconds before, or still runs.
func seen(b *statetest.Bench, id int, uid uint32, s slurmctl.JobState, ended int) *slurmctl.Job {
	r := b.StockRuns(id, "n1", time.Hour)
	r.UID, r.State, r.EndTime = uid, s, b.Seen.Taken.Add(-time.Duration(ended)*time.Second)
	return r
}

// TestLearnEpilogs checks what two polls teach about a partition, whose job was seen first, and a job that is COMPLETING now.
func TestLearnEpilogs(t *testing.T) {
	const completing, running = slurmctl.Completing, slurmctl.Running
	for name, c := range map[string]struct {
		before slurmctl.JobState
		ended  int               // seconds before the first poll
		after  slurmctl.JobState // "": it is gone
		gap    time.Duration
		want   string
	}{
		"it completed":                      {completing, 10, "", 4 * time.Second, "12"},
		"it has ended":                      {completing, 10, "COMPLETED", 4 * time.Second, "12"},
		"it was requeued":                   {completing, 10, slurmctl.Pending, 4 * time.Second, "12"},
		"it still completes":                {completing, 10, completing, 4 * time.Second, "not known"},
		"nothing was seen of it":            {running, 0, "", 4 * time.Second, "0"},
		"it still runs":                     {running, 0, running, 4 * time.Second, "not known"},
		"polls are too far apart":           {completing, 10, "", 31 * time.Second, "not known"},
		"just near enough":                  {completing, 10, "", 30 * time.Second, "25"},
		"the clock was set back":            {completing, 10, "", -time.Second, "not known"},
		"it ends in the future":             {completing, -60, "", 4 * time.Second, "0"},
		"it completes for hours":            {completing, 9000, "", 4 * time.Second, "300"},
		"it was pending, and was cancelled": {slurmctl.Pending, 10, "", 4 * time.Second, "not known"},
	} {
		b := statetest.New(t, 2)
		seen(b, 5, 1000, c.before, c.ended)
		before := *b.Seen
		next := *b.Seen
		next.Taken, next.ByID = before.Taken.Add(c.gap), map[slurmctl.JobID]*slurmctl.Job{}
		if c.after != "" {
			next.ByID[5] = &slurmctl.Job{ID: 5, State: c.after}
		}
		LearnEpilogs(b.Core, &before, &next)
		got := "not known"
		if seconds, known := epilogSeconds(b.Core, "main"); known {
			got = fmt.Sprint(seconds)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestEpilogShares checks that no user makes the epilogs of a partition longer than those of others.
func TestEpilogShares(t *testing.T) {
	for _, c := range []struct {
		took []int // seconds, of the last job of each user
		want int64
	}{
		{[]int{9}, 9},
		{[]int{2, 300}, 2},
		{[]int{2, 3, 300}, 3},
		{[]int{2, 3, 4, 300}, 4},
		{[]int{2, 3, 4, 5, 6, 7, 8, 300}, 7},
		{[]int{300, 300, 300, 300, 2}, 300},
	} {
		b := statetest.New(t, 1)
		for uid, took := range c.took {
			for range 50 {
				learnEpilog(b.Core, "main", uint32(uid), time.Duration(took)*time.Second)
			}
		}
		if got, _ := epilogSeconds(b.Core, "main"); got != c.want {
			t.Errorf("%v: %d, want %d", c.took, got, c.want)
		}
	}
}

// TestEpilogsBounded checks that neither users nor partitions make the record grow, and that an average follows.
func TestEpilogsBounded(t *testing.T) {
	b := statetest.New(t, 1)
	for i := range 5000 {
		learnEpilog(b.Core, fmt.Sprint("p", i), 1, time.Second)
		learnEpilog(b.Core, "p0", uint32(i), time.Second)
	}
	if len(b.Epilogs) != 256 || len(b.Epilogs["p0"].Users) != 16 {
		t.Errorf("%d partitions, %d users", len(b.Epilogs), len(b.Epilogs["p0"].Users))
	}
	for i, want := range []int64{1, 6, 10, 13} { // towards 21 s
		if got, _ := epilogSeconds(b.Core, "p1"); got != want {
			t.Errorf("after %d jobs: %d, want %d", i, got, want)
		}
		learnEpilog(b.Core, "p1", 1, 21*time.Second)
	}
}

// TestEpilogsKept checks that an outcome is saved once, restored, and deleted with its partition.
func TestEpilogsKept(t *testing.T) {
	b := statetest.New(t, 1)
	saves := func(exists bool) int {
		b.Effects = nil
		keepEpilogs(b.Core, func(string) bool { return exists })
		return len(b.Effects)
	}
	learnEpilog(b.Core, "main", 1, 7*time.Second)
	if first, second := saves(true), saves(true); first != 1 || second != 0 {
		t.Errorf("saved %d and %d times", first, second)
	}
	again := statetest.New(t, 1)
	RestoreEpilogs(again.Core, []row.Epilog{{Partition: "main", Seconds: 7}})
	if got, _ := epilogSeconds(again.Core, "main"); got != 7 {
		t.Errorf("restored %d", got)
	}
	if n := saves(false); n != 1 || len(b.Epilogs) != 0 {
		t.Errorf("deleted %d times, %v is left", n, b.Epilogs)
	}
}

// TestReleasesAfterEpilog checks when the nodes of a job are free in a partition where that takes 20 s, in seconds from now.
func TestReleasesAfterEpilog(t *testing.T) {
	for name, c := range map[string]struct {
		state slurmctl.JobState
		ended int // seconds ago
		want  int64
	}{
		"it has just ended":      {slurmctl.Completing, 0, 20},
		"it ended a while ago":   {slurmctl.Completing, 15, 5},
		"it takes longer":        {slurmctl.Completing, 20, 2},
		"it takes much longer":   {slurmctl.Completing, 2000, 2},
		"it ends in ten seconds": {slurmctl.Running, -10, 30},
	} {
		b := statetest.New(t, 1)
		b.Config.Margin = 2 * time.Second
		learnEpilog(b.Core, "main", 1, 20*time.Second)
		if got := Releases(b.Core, seen(b, 5, 1000, c.state, c.ended), b.Now.Unix()) - b.Now.Unix(); got != c.want {
			t.Errorf("%s: after %d s, want %d", name, got, c.want)
		}
	}
	b := statetest.New(t, 1)
	learnEpilog(b.Core, "other", 1, 20*time.Second)
	if got := Releases(b.Core, seen(b, 5, 1000, slurmctl.Completing, 0), b.Now.Unix()) - b.Now.Unix(); got != max(Margin(b.Core), 1) {
		t.Errorf("another partition counts: %d", got)
	}
}
