package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestReleases checks from when on a plan may count on the nodes of a stock job, in seconds from now.
func TestReleases(t *testing.T) {
	const never = planner.Forever
	for name, c := range map[string]struct {
		state  slurmctl.JobState
		limit  time.Duration
		left   time.Duration // until Slurm's end time; noEnd: Slurm shows none
		margin time.Duration
		want   int64
	}{
		"it ends in a minute":                  {slurmctl.Running, time.Hour, time.Minute, 5 * time.Second, 65},
		"without a margin, a second later":     {slurmctl.Running, time.Hour, time.Minute, 0, 61},
		"it ends now":                          {slurmctl.Running, time.Hour, 0, 0, 1},
		"it has overrun for an hour":           {slurmctl.Running, time.Hour, -time.Hour, 5 * time.Second, 5},
		"it is completing":                     {slurmctl.Completing, time.Hour, time.Minute, 5 * time.Second, 5},
		"it is completing without a limit":     {slurmctl.Completing, slurmctl.Unlimited, noEnd, 0, 1},
		"it has no limit":                      {slurmctl.Running, slurmctl.Unlimited, time.Minute, 5 * time.Second, never},
		"Slurm shows no end":                   {slurmctl.Running, time.Hour, noEnd, 5 * time.Second, never},
		"it is suspended, its end moves along": {slurmctl.Suspended, time.Hour, time.Minute, 5 * time.Second, never},
	} {
		b := statetest.New(t, 1)
		b.Config.Margin = c.margin
		r := &slurmctl.Job{State: c.state, TimeLimit: c.limit}
		if c.left != noEnd {
			r.EndTime = b.Now.Add(c.left)
		}
		got := Releases(b.Core, r, b.Now.Unix())
		if got != never {
			got -= b.Now.Unix()
		}
		if got != c.want {
			t.Errorf("%s: after %d s, want %d", name, got, c.want)
		}
	}
}

const noEnd = time.Duration(-1 << 62)

// TestNodesThatCannotBeUsed checks until when a node without a job is out of use, in seconds from now.
func TestNodesThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench)
		want   int64 // -1: it can be used now
	}{
		"idle":                         {func(*statetest.Bench) {}, -1},
		"drained":                      {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "drained" }, planner.Forever},
		"not responding":               {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "*" }, planner.Forever},
		"slurmctld was restarted":      {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "unknown" }, 2},
		"and gets no answer from it":   {func(b *statetest.Bench) { b.Seen.Nodes[0].State, b.Seen.Nodes[0].Flags = "unknown", "*" }, planner.Forever},
		"allocated to no job":          {func(b *statetest.Bench) { b.Leaked = []string{"n1"} }, planner.Forever},
		"Slurm started nothing there":  {func(b *statetest.Bench) { b.Suspect["n1"] = b.Now.Add(40 * time.Second) }, 40},
		"that was long ago":            {func(b *statetest.Bench) { b.Suspect["n1"] = b.Now.Add(-time.Second) }, -1},
		"another node is suspect":      {func(b *statetest.Bench) { b.Suspect["n2"] = b.Now.Add(time.Minute) }, -1},
		"off":                          {func(b *statetest.Bench) { b.Power.SetSaving(statetest.SavesPower); b.Seen.Nodes[0].Flags = "~" }, 70},
		"off, and nothing switches on": {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "~" }, planner.Forever},
		"off, and drained nevertheless": {func(b *statetest.Bench) {
			b.Power.SetSaving(statetest.SavesPower)
			b.Seen.Nodes[0].State, b.Seen.Nodes[0].Flags = "drained", "~"
		}, planner.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 1)
			c.change(b)
			o := msg.NewOccupancy(1, b.Now.Unix())
			AddNodes(b.Core, o, b.Seen)
			got := int64(-1)
			for _, busy := range o.Busy[0] {
				got = busy.End
			}
			if got != c.want {
				t.Errorf("until %d, want %d", got, c.want)
			}
		})
	}
}

// TestLinksLeaveGaps checks what a chain keeps from others: the nodes of its links, and nothing between them.
func TestLinksLeaveGaps(t *testing.T) {
	b := statetest.New(t, 3)
	b.Config.Margin = 5 * time.Second
	j := b.Evolving(1, 1, "1@1m,2@1m", time.Hour)
	j.Drive = "chain"
	state.SetMode(b.Core, j)
	b.Runs(j, "n1")
	b.Plans(j, "0-60 n1", "100-160 n[2-3]")
	for now, want := range map[int64]string{0: "0-65 | 100-165 | 100-165", 90: "0-95 | 100-165 | 100-165"} { // at 90 s the first link overruns
		o := msg.NewOccupancy(3, statetest.Second)
		AddLinks(b.Core, o, b.Seen, j, statetest.Second+now)
		var nodes []string
		for _, busy := range o.Busy {
			var spans []string
			for _, at := range busy {
				spans = append(spans, fmt.Sprintf("%d-%d", at.Start, at.End))
			}
			nodes = append(nodes, strings.Join(spans, " "))
		}
		if got := strings.Join(nodes, " | "); got != want {
			t.Errorf("after %d s: %s, want %s", now, got, want)
		}
	}
}
