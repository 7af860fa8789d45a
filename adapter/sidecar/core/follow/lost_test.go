package follow

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// two is a running job that has n1 and n2, and by a companion n3 and n4.
func two(b *statetest.Bench) *state.Job {
	j := b.Evolving(1, 100, "4@10m,1@10m", 30*time.Minute)
	j.State, j.Step = row.Running, 1
	j.Held = []msg.Part{{ID: 1, Nodes: statetest.Nodes("n[1-2]")}, {ID: 2, Nodes: statetest.Nodes("n[3-4]")}}
	return j
}

// TestLostNodes checks which nodes a job lost because a node failed, by what the poll shows that shows its other nodes, and by later polls.
func TestLostNodes(t *testing.T) {
	part := func(id slurmctl.JobID, list string) msg.Part { return msg.Part{ID: id, Nodes: statetest.Nodes(list)} }
	base, companion := part(1, "n[1-2]"), part(2, "n[3-4]")
	for name, c := range map[string]struct {
		has         []msg.Part
		node, state string
		want        string
	}{
		"all is there":                          {[]msg.Part{base, companion}, "n3", "down", ""},
		"the base job went on without it":       {[]msg.Part{part(1, "n1"), companion}, "n2", "down", "n2"},
		"it does not answer":                    {[]msg.Part{part(1, "n1"), companion}, "n2", "allocated*", "n2"},
		"the companion ended":                   {[]msg.Part{base}, "n4", "down*", "n[3-4]"},
		"the companion ended, and a new one":    {[]msg.Part{base, part(3, "n3")}, "n4", "down", "n4"},
		"the companion went on without it":      {[]msg.Part{base, part(2, "n3")}, "n4", "down", "n4"},
		"the user cancelled the companion":      {[]msg.Part{base}, "n4", "idle", ""},
		"the user shrank the job":               {[]msg.Part{part(1, "n1"), companion}, "n2", "idle", ""},
		"the user shrank it, another is down":   {[]msg.Part{part(1, "n1"), companion}, "n3", "down", ""},
		"the user shrank it off a drained node": {[]msg.Part{part(1, "n1"), companion}, "n2", "drained", ""},
	} {
		for when, c2 := range map[string]struct {
			after time.Duration
			lost  bool
		}{"at once": {0, true}, "a poll later": {time.Second, true}, "at last": {openFor, true}, "too late": {openFor + time.Second, false}} {
			b := statetest.New(t, 5)
			j := two(b)
			fails := func() {
				n := &b.Seen.Nodes[b.Seen.Index[c.node]]
				n.State = c.state
				if last := len(c.state) - 1; c.state[last] == '*' {
					n.State, n.Flags = c.state[:last], "*"
				}
			}
			polls := func() { failedLater(b.Core, b.Seen, j) }
			if c2.after == 0 {
				fails()
			}
			nodesChanged(b.Core, b.Seen, j, c.has)
			j.Held = c.has
			polls()
			if c2.after > 0 {
				b.Seen.Taken = b.Seen.Taken.Add(c2.after)
				fails()
			}
			polls()
			want := c.want
			if !c2.lost {
				want = ""
			}
			if got := slurmctl.CompressNodes(j.LostSince(1)); got != want {
				t.Errorf("%s, %s: lost %q, want %q", name, when, got, want)
			}
			j.EnterStep(2, b.Now)
			if polls(); len(j.LostSince(2)) > 0 {
				t.Errorf("%s, %s: lost %v again", name, when, j.LostSince(2))
			}
		}
	}
}

// TestLostTwice checks that nodes which left together may fail one after the other, and count for the step that the job is in then.
func TestLostTwice(t *testing.T) {
	b := statetest.New(t, 4)
	j := two(b)
	has := []msg.Part{{ID: 1, Nodes: statetest.Nodes("n1")}, {ID: 2, Nodes: statetest.Nodes("n3")}}
	nodesChanged(b.Core, b.Seen, j, has)
	j.Held = has
	for step, name := range []string{"n4", "n2"} {
		j.EnterStep(step+1, b.Now)
		b.Seen.Nodes[b.Seen.Index[name]].State = "down"
		failedLater(b.Core, b.Seen, j)
		failedLater(b.Core, b.Seen, j)
		if got := slurmctl.CompressNodes(j.LostSince(step + 1)); got != name {
			t.Errorf("in step %d it lost %q, want %s", step+1, got, name)
		}
	}
	if len(j.Left) > 0 {
		t.Errorf("%v are still open", j.Left)
	}
}

// TestLostByRequeue checks that a job which Slurm put back into the queue in its second step learns which node failed, if a poll shows
// that only later, and an earlier loss with it, and only by its first call.
func TestLostByRequeue(t *testing.T) {
	b := statetest.New(t, 4)
	j := two(b)
	j.EnterStep(2, b.Now)
	nodesChanged(b.Core, b.Seen, j, j.Held[:1])
	j.Held = j.Held[:1]
	requeued(b.Core, j)
	for _, name := range []string{"n4", "n2"} {
		b.Seen.Nodes[b.Seen.Index[name]].State = "down"
	}
	failedLater(b.Core, b.Seen, j)
	if got := slurmctl.CompressNodes(j.LostSince(1)); got != "n[2-4]" || j.Restarts != 1 || len(j.LostSince(2)) > 0 {
		t.Errorf("lost %q and %v, restarted %d times", got, j.LostSince(2), j.Restarts)
	}
}
