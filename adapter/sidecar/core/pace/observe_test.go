package pace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// seen returns an observation: a job runs on n1, n2 does not respond, and n1 has a hold of job 7.
func seen(at time.Time) msg.Observation {
	return msg.Observation{Begun: at, Jobs: []slurmctl.Job{{ID: 9, State: slurmctl.Running, NodeList: []string{"n1"}, StartTime: at, EndTime: at.Add(time.Hour)}},
		Nodes: []slurmctl.Node{{Name: "n10", State: "idle"}, {Name: "n2", State: "idle", Flags: "*"}, {Name: "n1", State: "allocated", CPUsAlloc: 4}},
		Reservations: []slurmctl.Reservation{{Name: "evo_7_2_1", Nodes: []string{"n1"}, Start: at.Add(time.Minute), End: at.Add(time.Hour), Flags: msg.HoldFlags},
			{Name: "evo_8_2_1", Nodes: []string{"n1"}}}} // the site's, with such a name
}

// TestNewSnapshot checks what follows from an observation: the order of nodes, which are in use, and whose holds are there.
func TestNewSnapshot(t *testing.T) {
	b := statetest.New(t, 1)
	b.Snapshot = nil
	s := NewSnapshot(b.Core, seen(b.Now))
	if s.Nodes[1].Name != "n2" || s.Index["n10"] != 2 || !s.InUse["n1"] || len(s.InUse) != 1 || s.ByID[9] != &s.Jobs[0] {
		t.Errorf("%+v", s)
	}
	if len(s.Holds) != 1 || s.Holds["evo_7_2_1"] != (state.OwnName{Job: 7, Step: 2, Attempt: 1}) || len(s.Holders) != 1 || !s.Holders[7] || s.LeftToSlurm {
		t.Errorf("holds %v of %v", s.Holds, s.Holders)
	}
	b.Snapshot = s
	same, other := seen(b.Now), seen(b.Now)
	same.Nodes, other.Nodes = slices.Clone(s.Nodes), slices.Clone(s.Nodes[:2])
	b.Power.On, b.Power.Denied = true, b.Now.Add(time.Second)
	if n := NewSnapshot(b.Core, same); n.Layout != s.Layout || !n.LeftToSlurm {
		t.Errorf("the same nodes: layout %d after %d, left to Slurm: %v", n.Layout, s.Layout, n.LeftToSlurm)
	}
	if n := NewSnapshot(b.Core, other); n.Layout == s.Layout {
		t.Error("other nodes have the same layout")
	}
}

// TestSnapshotChanges checks what changes a snapshot before the next poll, and that the observation stays as it was.
func TestSnapshotChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(b *statetest.Bench)
		inUse, idle string        // nodes
		later       time.Duration // of the job's end
	}{
		"nothing":           {func(*statetest.Bench) {}, "n1", "n10", 0},
		"nodes given back":  {func(b *statetest.Bench) { GivenBack(b.Core, []string{"n1", "n3"}) }, "", "n10", 0},
		"the clock was set": {func(b *statetest.Bench) { ClockSet(b.Core, time.Minute) }, "n1", "n10", -time.Minute},
		"a contacted node": {func(b *statetest.Bench) {
			b.Shrunk["n2"] = state.Miscount{Asked: b.Now}
			ExcuseContacted(b.Core, b.Snapshot)
		}, "n1", "n2 n10", 0},
		"a poll of the nodes": {func(b *statetest.Bench) {
			NodesSeen(b.Core, msg.NodesSeen{Begun: b.Now, Nodes: []slurmctl.Node{{Name: "n1", State: "idle"}, {Name: "n2", State: "mixed", CPUsAlloc: 1}, {Name: "n3", State: "idle"}}})
		}, "n2", "n1 n10", 0},
		"a poll that failed": {func(b *statetest.Bench) {
			NodesSeen(b.Core, msg.NodesSeen{Err: slurmctl.ErrUnreachable, Nodes: []slurmctl.Node{{Name: "n1", State: "idle"}}})
		}, "n1", "n10", 0},
		"the same in virtual time": {func(b *statetest.Bench) { Same(b.Core, b.Now.Add(time.Second), b.Now.Add(time.Second)) }, "n1", "n10", 0},
	} {
		b := statetest.New(t, 1)
		in := seen(b.Now)
		b.Snapshot = NewSnapshot(b.Core, in)
		c.change(b)
		s, inUse, idle := b.Snapshot, state.SortedKeys(b.Snapshot.InUse), []string{}
		for _, n := range s.Nodes {
			if n.State == "idle" && n.Flags == "" {
				idle = append(idle, n.Name)
			}
		}
		if strings.Join(inUse, " ") != c.inUse || strings.Join(idle, " ") != c.idle {
			t.Errorf("%s: in use %v, idle %v", name, inUse, idle)
		}
		if end := in.Begun.Add(time.Hour + c.later); !s.ByID[9].EndTime.Equal(end) || !s.Reservations["evo_7_2_1"].End.Equal(end) {
			t.Errorf("%s: the job ends %v, want %v", name, s.ByID[9].EndTime, end)
		}
		if passed := s.Taken.Sub(in.Begun); (passed == time.Second) != (name == "the same in virtual time") {
			t.Errorf("%s: taken %v later", name, passed)
		}
		if in.Nodes[1].Flags != "*" || in.Nodes[2].CPUsAlloc != 4 || !in.Jobs[0].StartTime.Equal(in.Begun) {
			t.Errorf("%s: the observation has changed", name)
		}
	}
}
