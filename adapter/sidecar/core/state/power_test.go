package state_test

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

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
