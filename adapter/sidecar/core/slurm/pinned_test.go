package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestPinned checks which nodes a job cannot give back, once slurmctld takes another one for that of its script.
func TestPinned(t *testing.T) {
	for name, c := range map[string]struct {
		mode, shown string // the drive mode, and the batch host that Slurm shows
		nodes       string
		pinned      string
		needs       int
		profile     string // with room for the pinned nodes
		heeds       bool   // the plan n[1-3], n2 leaves it these nodes
	}{
		"Slurm is right":             {"merge", "n2", "n[1-3]", "", 3, "3@1m,1@1m", true},
		"Slurm says nothing":         {"merge", "", "n[1-3]", "", 3, "3@1m,1@1m", true},
		"Slurm is wrong":             {"merge", "n1", "n[1-3]", "n1", 3, "3@1m,2@1m", false},
		"wrong, and it has only two": {"companion", "n1", "n[1-2]", "n1", 3, "3@1m,2@1m", false},
		"a node that it has not":     {"merge", "n9", "n[1-3]", "", 3, "3@1m,1@1m", true},
		"a chain":                    {"chain", "n1", "n[1-3]", "", 3, "3@1m,1@1m", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(1, 1, "3@1m,1@1m", time.Hour)
			j.Drive = c.mode
			state.SetMode(b.Core, j)
			b.Runs(j, c.nodes)
			b.Plans(j, "0-60 n[1-3]", "60-120 n2")
			j.BatchHost, j.Record.BatchHost = "n2", c.shown
			if at := Pinned(j); at != c.pinned {
				t.Errorf("%q is pinned, want %q", at, c.pinned)
			}
			if n := Needs(j); n != c.needs {
				t.Errorf("it needs %d nodes, want %d", n, c.needs)
			}
			if p := Floored(j).String(); p != c.profile {
				t.Errorf("its profile is %s, want %s", p, c.profile)
			}
			if HeedsPinned(j) != c.heeds {
				t.Errorf("its plan leaves it these nodes: %v", !c.heeds)
			}
			if why := WhyBound(j, []string{"n2"}); why != "n2 runs the batch script" {
				t.Errorf("n2 is bound: %q", why)
			}
			if bound := WhyBound(j, []string{"n1", "n3"}) != ""; bound != (c.pinned == "n1") {
				t.Errorf("n1 and n3 are bound: %v", bound)
			}
			nodes := []string{"n3", "n1", "n2"}
			BoundFirst(j, nodes)
			want := "n2 n1 n3"
			if got := strings.Join(nodes, " "); got != want {
				t.Errorf("it gives back last %s, want %s", got, want)
			}
		})
	}
}

// TestHeedsPinned checks when a job whose node n1 is pinned, beside n2 of its script, need not be planned again.
func TestHeedsPinned(t *testing.T) {
	for name, c := range map[string]struct {
		profile, coming string
		want            bool
	}{
		"the plan leaves it both nodes":     {"3@1m,2@1m", "60-120 n[1-2]", true},
		"the plan takes the pinned one":     {"3@1m,2@1m", "60-120 n[2-3]", false},
		"its profile has no room for both":  {"3@1m,1@1m", "60-120 n[1-2]", false},
		"its step has room for more nodes":  {"3@1m,4@1m", "60-120 n[1-4]", true},
		"its promise has lapsed, with room": {"3@1m,2@1m", "", true},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(1, 1, c.profile, time.Hour)
		b.Runs(j, "n[1-3]")
		j.BatchHost, j.Record.BatchHost = "n2", "n1"
		if b.Plans(j, "0-60 n[1-3]"); c.coming != "" {
			b.Plans(j, "0-60 n[1-3]", c.coming)
		}
		if HeedsPinned(j) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}
