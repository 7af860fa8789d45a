package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSwitches(t *testing.T) {
	b := statetest.New(t, 8)
	tree := slurmctl.Topology{Switches: []slurmctl.Switch{{Name: "a", Above: 2, Nodes: []string{"n1", "n2", "n3"}}, {Name: "b", Above: 2, Nodes: []string{"n3", "n4", "n9"}}, {Name: "top", Above: -1}}}
	if got := SwitchesOf(b.Core, b.Seen, []int{0, 1, 4}); got != nil {
		t.Errorf("without a topology: %+v", got)
	}
	b.Seen.Switches, b.Core.Topology = nil, tree
	if got := SwitchesOf(b.Core, b.Seen, []int{0, 1, 2}); got != nil {
		t.Errorf("on one switch: %+v", got)
	}
	weight := b.Seen.Nodes[0].Weight
	want := &planner.Switches{Leaf: []int{0, 0, 1, 3}, Above: []int{2, 2, -1, -1}, Weight: slices.Repeat([]int{weight}, 4)}
	if diff := cmp.Diff(want, SwitchesOf(b.Core, b.Seen, []int{0, 2, 3, 4})); diff != "" {
		t.Error(diff)
	}
	names := []string{"n1", "n4", "n5", "n2", "n6", "n7"}
	NearFirst(b.Core, b.Seen, []string{"n4"}, names)
	if want := []string{"n4", "n5", "n6", "n7", "n1", "n2"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// TestLayoutChanged checks when the configuration, and with it the topology, is read again.
func TestLayoutChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, s *state.Snapshot)
		want   bool
	}{
		"the same nodes":          {func(*statetest.Bench, *state.Snapshot) {}, false},
		"other nodes":             {func(_ *statetest.Bench, s *state.Snapshot) { s.Layout++ }, true},
		"the first poll":          {func(b *statetest.Bench, s *state.Snapshot) { s.Layout++; b.Snapshot = nil }, false},
		"a site without topology": {func(b *statetest.Bench, s *state.Snapshot) { s.Layout++; b.SlurmConfig.Values = nil }, false},
	} {
		b := statetest.New(t, 4)
		b.SlurmConfig.Values = map[string]string{"TopologyPlugin": "topology/tree"}
		b.Snapshot, b.ConfigRead = b.Seen, b.Now
		s := *b.Seen
		c.change(b, &s)
		WatchLayout(b.Core, &s)
		if got := b.ConfigRead.IsZero(); got != c.want {
			t.Errorf("%s: read again %v, want %v", name, got, c.want)
		}
	}
}

// TestFabrics checks that a job gets only nodes below one topmost switch: n6 is below none.
func TestFabrics(t *testing.T) {
	b := statetest.New(t, 8)
	leaf := func(above int, nodes ...string) slurmctl.Switch { return slurmctl.Switch{Above: above, Nodes: nodes} }
	b.Core.Topology = slurmctl.Topology{Switches: []slurmctl.Switch{leaf(3, "n1"), leaf(3, "n2", "n3"), leaf(-1, "n3", "n4", "n5", "n7", "n8"), leaf(-1)}}
	b.Seen.Nodes[0].Features, b.Seen.Nodes[3].Features = []string{"a"}, []string{"a"}
	for _, c := range []struct {
		features, param string
		want            [][]int
	}{
		{"", "", [][]int{{3, 4, 6, 7}, {0, 1, 2}}},
		{"a", "", [][]int{{0}, {3}}},
		{"", "TopoOptional", [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}},
	} {
		b.Core.SlurmConfig.Values, b.Seen.Eligibles = map[string]string{"TopologyParam": c.param}, nil
		WatchLayout(b.Core, b.Seen)
		r := &slurmctl.Job{Partition: "main", Features: c.features}
		got, err := EligibleTogether(b.Seen, r, nil)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%+v: %v\n%s", c, err, diff)
		}
	}
	b.Core.Topology.Switches[2].Above, b.Core.Topology.Switches[0].Nodes = 3, []string{"n1", "n6"}
	b.Core.SlurmConfig.Values = nil
	if WatchLayout(b.Core, b.Seen); b.Seen.Fabric != nil {
		t.Errorf("all below one: %v", b.Seen.Fabric)
	}
}

// TestInBlocks: n7 and n8 are outside of all blocks.
func TestInBlocks(t *testing.T) {
	b := statetest.New(t, 8)
	b.Core.Topology = slurmctl.Topology{Blocks: true, Switches: []slurmctl.Switch{{Name: "a", Above: -1, Nodes: statetest.Names(1, 3)}, {Name: "b", Above: -1, Nodes: statetest.Names(4, 6)}}}
	WatchLayout(b.Core, b.Seen)
	if got := b.Seen.Switches.Blocks; got == nil || got.Count != 2 || got.Size != 3 {
		t.Errorf("%+v", got)
	}
	if got := inBlocks(b.Seen, []int{1, 3, 6}); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("%v", got)
	}
	if got := inBlocks(b.Seen, []int{6, 7}); !slices.Equal(got, []int{6, 7}) {
		t.Errorf("outside: %v", got)
	}
	for want, nodes := range map[string][]string{"n4 n6": {"n1", "n4", "n6"}, "n1": {"n1"}, "n1 n2": {"n1", "n2", "n4"}, "n1 n9": {"n1", "n9"}} {
		if got := strings.Join(FirstPart(b.Core, b.Seen, nodes), " "); got != want {
			t.Errorf("of %v first %s", nodes, got)
		}
	}
}
