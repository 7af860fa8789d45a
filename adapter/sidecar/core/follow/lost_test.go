package follow

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestLostNodes checks which nodes a job lost because a node failed. It has n1 and n2, and by a companion n3 and n4.
func TestLostNodes(t *testing.T) {
	had := []msg.Part{{ID: 1, Nodes: []string{"n1", "n2"}}, {ID: 2, Nodes: []string{"n3", "n4"}}}
	part := func(id slurmctl.JobID, list string) msg.Part {
		nodes, err := slurmctl.ExpandNodes(list)
		if err != nil {
			t.Fatal(err)
		}
		return msg.Part{ID: id, Nodes: nodes}
	}
	for name, c := range map[string]struct {
		has         []msg.Part
		node, state string
		want        string
	}{
		"all is there":                          {had, "n3", "down", ""},
		"the base job went on without it":       {[]msg.Part{part(1, "n1"), had[1]}, "n2", "down", "n2"},
		"it does not answer":                    {[]msg.Part{part(1, "n1"), had[1]}, "n2", "allocated*", "n2"},
		"the companion ended":                   {had[:1], "n4", "down*", "n[3-4]"},
		"the companion ended, and a new one":    {[]msg.Part{had[0], part(3, "n3")}, "n4", "down", "n4"},
		"the companion went on without it":      {[]msg.Part{had[0], part(2, "n3")}, "n4", "down", "n4"},
		"the user cancelled the companion":      {had[:1], "n4", "idle", ""},
		"the user shrank the job":               {[]msg.Part{part(1, "n1"), had[1]}, "n2", "idle", ""},
		"the user shrank it, another is down":   {[]msg.Part{part(1, "n1"), had[1]}, "n3", "down", ""},
		"the user shrank it off a drained node": {[]msg.Part{part(1, "n1"), had[1]}, "n2", "drained", ""},
	} {
		s := &state.Snapshot{Index: map[string]int{c.node: 0}, Nodes: []slurmctl.Node{{Name: c.node, State: c.state}}}
		if last := len(c.state) - 1; c.state[last] == '*' {
			s.Nodes[0].State, s.Nodes[0].Flags = c.state[:last], "*"
		}
		if got := slurmctl.CompressNodes(lostNodes(s, had, c.has)); got != c.want {
			t.Errorf("%s: lost %q, want %q", name, got, c.want)
		}
	}
}
