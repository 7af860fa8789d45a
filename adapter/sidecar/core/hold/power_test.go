package hold

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestPowerOccupancy: nodes that are off are free later, not never.
func TestPowerOccupancy(t *testing.T) {
	b := statetest.New(t, 1)
	c, s, now := b.Core, b.Seen, b.Now
	c.Power.SetSaving(statetest.SavesPower)
	s.Nodes[0].Flags = "~"
	WatchPower(c, s)
	if got := refit.Foreign(c, s, now.Unix()).Window([]int{0}, msg.Rank{}); !slices.Equal(got, []planner.NodeBusy{{Node: 0, Start: 0, End: 70}}) {
		t.Errorf("a node that is off is busy %v", got)
	}
	if slurm.Free(s, []string{"n1"}) {
		t.Error("a node that is off is free at once")
	}
	c.Power.Denied = now.Add(time.Hour)
	if s = pace.NewSnapshot(c, msg.Observation{Begun: now, Nodes: s.Nodes}); !slurm.Free(s, []string{"n1"}) {
		t.Error("it is not free for Slurm to switch on")
	}
	if words := Switching(s, []string{"n1"}); !strings.Contains(words, "switched on") {
		t.Errorf("in words: %q", words)
	}
}

func powered(t *testing.T, saving string) *state.Power {
	t.Helper()
	p := &state.Power{}
	if p.SetSaving(slurmctl.Config{}); saving != "" {
		p.SetSaving(statetest.SavesPower)
	}
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
		watchPower(p, s)
		if got := time.Unix(slurm.PowerReady(p, s.Nodes[0], now), 0).Sub(now); got != want {
			t.Errorf("%q: ready after %v, want %v", flags, got, want)
		}
		if off := powered(t, ""); flags != "" && flags != "-" && slurm.PowerReady(off, s.Nodes[0], now) != planner.Forever {
			t.Errorf("%q where Slurm saves no power: not usable", flags)
		}
	}

	p := powered(t, "on")
	at := func(flags string, after, want time.Duration) {
		t.Helper()
		s := oneNode(flags, now.Add(after))
		watchPower(p, s)
		if got := time.Unix(slurm.PowerReady(p, s.Nodes[0], s.Taken), 0).Sub(now); got != want {
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
	if failed := watchPower(p, oneNode("down~", now.Add(270*time.Second))); !slices.Equal(failed, []string{"n1"}) {
		t.Errorf("failed: %v", failed)
	}
	if failed := watchPower(p, oneNode("down~", now.Add(271*time.Second))); failed != nil {
		t.Errorf("told twice: %v", failed)
	}

	// a sidecar that may not: Slurm switches it on for the job
	p = powered(t, "on")
	p.Denied = now.Add(time.Hour)
	at("~", 0, 0)
	at("#", time.Second, 71*time.Second)
}

// TestSwitched checks which nodes of a hold are switched on, and which are kept on. Nodes take 70 s to come up, and the
// sidecar asks 15 s before that.
func TestSwitched(t *testing.T) {
	for name, c := range map[string]struct {
		flags  string
		in     time.Duration // until the hold begins
		change func(b *statetest.Bench)
		want   string
	}{
		"on, and unused":               {"", time.Hour, nil, "keep"},
		"on, and kept on just now":     {"", time.Hour, func(b *statetest.Bench) { b.Power.Kept["n1"] = b.Now.Add(-150*time.Second + 1) }, ""},
		"on, and kept on a while ago":  {"", time.Hour, func(b *statetest.Bench) { b.Power.Kept["n1"] = b.Now.Add(-150 * time.Second) }, "keep"},
		"off, a moment too early":      {"~", 85*time.Second + time.Second, nil, "waits"},
		"off, just in time":            {"~", 85 * time.Second, nil, "switch waits"},
		"off, and overdue":             {"~", -time.Hour, nil, "switch waits"},
		"off, and asked already":       {"~", time.Minute, func(b *statetest.Bench) { b.Power.Asked["n1"] = b.Now }, "waits"},
		"coming up":                    {"#", time.Minute, nil, "waits"},
		"going off":                    {"%", time.Minute, nil, "waits"},
		"a job has it":                 {"", time.Minute, func(b *statetest.Bench) { b.Seen.InUse["n1"] = true }, ""},
		"it is drained":                {"~", time.Minute, func(b *statetest.Bench) { b.Seen.Nodes[0].State = "drained" }, ""},
		"Slurm does not show the node": {"~", time.Minute, func(b *statetest.Bench) { delete(b.Seen.Index, "n1") }, ""},
	} {
		b := statetest.New(t, 2)
		b.Power.SetSaving(statetest.SavesPower)
		b.Seen.Nodes[0].Flags = c.flags
		if c.change != nil {
			c.change(b)
		}
		off, on, waits := toSwitch(&b.Power, b.Seen, state.Hold{Nodes: []string{"n1", "n2"}, Start: b.Now.Add(c.in).Unix()}, []string{"n1"}, b.Now, 0)
		var got []string
		if len(off) > 0 {
			got = append(got, "switch")
		}
		if len(on) > 0 {
			got = append(got, "keep")
		}
		if waits {
			got = append(got, "waits")
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
