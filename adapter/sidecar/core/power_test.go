package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func powered(t *testing.T, saving string) *state.Power {
	t.Helper()
	p := &state.Power{}
	values := map[string]string{}
	if saving != "" {
		values = map[string]string{"ResumeProgram": "/r", "SuspendProgram": "/s", "SuspendTime": "300 sec", "SuspendTimeout": "30 sec", "ResumeTimeout": "60 sec"}
	}
	p.SetSaving(slurmctl.Config{Values: values})
	return p
}

func oneNode(flags string, at time.Time) *state.Snapshot {
	n := slurmctl.Node{Name: "n1", State: "idle", Flags: flags}
	if flags == "down~" {
		n.State, n.Flags = "down", "~"
	}
	return &state.Snapshot{Taken: at, Nodes: []slurmctl.Node{n}, Index: map[string]int{"n1": 0}}
}

// TestPowerReady: by when a node that is off can be had.
func TestPowerReady(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for flags, want := range map[string]time.Duration{
		"":  0,
		"-": 0,
		"~": 70 * time.Second,  // as soon as it is asked: ResumeTimeout, and Slurm looks every 10 s
		"#": 70 * time.Second,  // it may have begun now
		"%": 110 * time.Second, // SuspendTimeout first
		"!": 110 * time.Second,
	} {
		p, s := powered(t, "on"), oneNode(flags, now)
		p.Watch(s)
		if got := time.Unix(p.Ready(s.Nodes[0], now), 0).Sub(now); got != want {
			t.Errorf("%q: ready after %v, want %v", flags, got, want)
		}
		if off := powered(t, ""); flags != "" && flags != "-" && off.Ready(s.Nodes[0], now) != planner.Forever {
			t.Errorf("%q where Slurm saves no power: not usable", flags)
		}
	}

	p := powered(t, "on")
	at := func(flags string, after, want time.Duration) {
		t.Helper()
		s := oneNode(flags, now.Add(after))
		p.Watch(s)
		if got := time.Unix(p.Ready(s.Nodes[0], s.Taken), 0).Sub(now); got != want {
			t.Errorf("%q after %v: ready after %v, want %v", flags, after, got, want)
		}
	}
	// the time does not move on with every poll
	at("%", 0, 110*time.Second)
	at("%", 20*time.Second, 110*time.Second)
	at("~", 40*time.Second, 110*time.Second)
	at("~", 50*time.Second, 120*time.Second)
	p.Asked["n1"] = now.Add(50 * time.Second)
	at("~", 60*time.Second, 120*time.Second)
	at("#", 61*time.Second, 131*time.Second)
	at("#", 100*time.Second, 131*time.Second)
	at("", 110*time.Second, 110*time.Second)
	if len(p.Asked) != 0 || len(p.Since) != 0 {
		t.Errorf("a node that is up is remembered: %v %v", p.Asked, p.Since)
	}

	// one that does not come up
	at("#", 200*time.Second, 270*time.Second)
	if failed := p.Watch(oneNode("down~", now.Add(270*time.Second))); !slices.Equal(failed, []string{"n1"}) {
		t.Errorf("failed: %v", failed)
	}
	if failed := p.Watch(oneNode("down~", now.Add(271*time.Second))); failed != nil {
		t.Errorf("told twice: %v", failed)
	}

	// a sidecar that may not: Slurm switches it on for the job
	p = powered(t, "on")
	p.Denied = now.Add(time.Hour)
	at("~", 0, 0)
	at("#", time.Second, 71*time.Second)
}

// TestPowerOccupancy: nodes that are off are free later, not never.
func TestPowerOccupancy(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := statetest.NewCore(config.Default(), now)
	c.Power = *powered(t, "on")
	s := oneNode("~", now)
	hold.WatchPower(c, s)
	if got := follow.Foreign(c, s, now.Unix()).Window([]int{0}, msg.Rank{}); !slices.Equal(got, []planner.NodeBusy{{Node: 0, Start: 0, End: 70}}) {
		t.Errorf("a node that is off is busy %v", got)
	}
	if slurm.Free(s, []string{"n1"}) {
		t.Error("a node that is off is free at once")
	}
	c.Power.Denied = now.Add(time.Hour)
	if hold.WatchPower(c, s); !slurm.Free(s, []string{"n1"}) {
		t.Error("it is not free for Slurm to switch on")
	}
	if words := hold.Switching(s, []string{"n1"}); !strings.Contains(words, "switched on") {
		t.Errorf("in words: %q", words)
	}
}

// TestLongerLimit: time limits are raised by whole minutes, never lowered, and not beyond
// the partition's or into a reservation of others.
func TestLongerLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := &slurmctl.Job{TimeLimit: 10 * time.Minute, EndTime: now.Add(5 * time.Minute), Partition: "main", NodeList: []string{"n1", "n2"}}
	for _, c := range []struct{ end, longest, limit, latest time.Duration }{
		{4 * time.Minute, slurmctl.Unlimited, 10 * time.Minute, 5 * time.Minute},
		{5*time.Minute + time.Second, slurmctl.Unlimited, 12 * time.Minute, 7 * time.Minute},
		{time.Hour, slurmctl.Unlimited, 67 * time.Minute, 62 * time.Minute},
		{time.Hour, 20 * time.Minute, 20 * time.Minute, 15 * time.Minute},
		{time.Hour, 8 * time.Minute, 10 * time.Minute, 5 * time.Minute}, // an administrator gave it more
	} {
		limit, latest := act.LongerLimit(r, now.Add(c.end), c.longest)
		if limit != c.limit || latest.Sub(now) != c.latest {
			t.Errorf("%+v: limit %v, ends after %v", c, limit, latest.Sub(now))
		}
	}
	s := &state.Snapshot{Taken: now, Partitions: map[string]slurmctl.Partition{"main": {Name: "main", MaxTime: time.Hour}},
		Reservations: map[string]slurmctl.Reservation{
			"evo_7_2_1": {Name: "evo_7_2_1", Start: now.Add(6 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n1"}},
			"elsewhere": {Name: "elsewhere", Start: now.Add(6 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n9"}},
			"past":      {Name: "past", Start: now.Add(-time.Hour), End: now, Nodes: []string{"n1"}},
		}}
	if longest, why := act.LongestLimit(s, r, nil); longest != time.Hour || why != "MaxTime of partition main" {
		t.Errorf("%v (%s)", longest, why)
	}
	s.Reservations["maint"] = slurmctl.Reservation{Name: "maint", Start: now.Add(12 * time.Minute), End: now.Add(time.Hour), Nodes: []string{"n2", "n3"}}
	if longest, why := act.LongestLimit(s, r, nil); longest != 17*time.Minute || why != "reservation maint" {
		t.Errorf("%v (%s)", longest, why)
	}
	s.Reservations["begun"] = slurmctl.Reservation{Name: "begun", Start: now.Add(-time.Minute), End: now.Add(time.Hour), Nodes: []string{"n1"}}
	if longest, why := act.LongestLimit(s, r, nil); longest > r.TimeLimit || why != "reservation begun" {
		t.Errorf("%v (%s) where others' time has begun", longest, why)
	}
}

// TestTooShort: a job whose limit cannot be as long as its plan says which step cannot begin.
func TestTooShort(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	j := &state.Job{Job: &row.Job{Step: 1}, Plan: []msg.PlannedStep{{Start: at.Unix()}, {Start: at.Unix() + 60}, {Start: at.Unix() + 120, End: at.Unix() + 180}}}
	act.TooShort(j, at.Add(3*time.Minute), at.Add(100*time.Second), "MaxTime of partition main", func(t time.Time) string { return t.Format(time.TimeOnly) })
	want := "its plan ends at " + at.Add(3*time.Minute).Format(time.TimeOnly) + ", after the latest time limit possible, " +
		at.Add(100*time.Second).Format(time.TimeOnly) + " (MaxTime of partition main); step 3 cannot begin"
	if j.Short != want || j.LastEnd != at.Unix()+100 {
		t.Errorf("%q, want %q", j.Short, want)
	}
}

// TestTooShortBare: if a site forbids changes of running jobs, a job's limit is not raised, and the
// running job reports that its plan ends later.
func TestTooShortBare(t *testing.T) {
	for _, bare := range []bool{false, true} {
		b := newBench(t, 4)
		b.MayUpdate(!bare)
		j := b.Evolving(1, 1, "1@5m,2@5m", 10*time.Minute)
		j.State, j.Step, j.Extend = row.Running, 1, true
		j.Record.State, j.Record.NodeList, j.Record.EndTime = slurmctl.Running, []string{"n1"}, b.s.Taken.Add(10*time.Minute)
		j.Held = []msg.Part{{ID: 1, Step: 1, Nodes: []string{"n1"}}}
		start := b.s.Taken.Unix()
		j.Plan = []msg.PlannedStep{{Start: start, End: start + 600, Nodes: []string{"n1"}}, {Start: start + 600, End: start + 900, Nodes: []string{"n1", "n2"}}}
		list := act.ShortParts(b.Core, b.s, j)
		if raised := len(list) == 1 && list[0].Limit >= 15*time.Minute; raised == bare {
			t.Errorf("bare=%v: limits raised: %v", bare, list)
		}
		if told := strings.Contains(j.Short, "Account=") && strings.Contains(j.Short, "step 2 cannot begin"); told != bare {
			t.Errorf("bare=%v: it reports %q", bare, j.Short)
		}
	}
}
