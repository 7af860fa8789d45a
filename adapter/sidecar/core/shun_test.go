package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestShun: idle nodes on which Slurm does not start a job are left alone by that job, as long
// as there are others; a limit says nothing of nodes.
func TestShun(t *testing.T) {
	for _, c := range []struct {
		reason, profile string
		want            []string // the nodes of its first step then
		words           string
	}{
		{"Resources", "2@1m", []string{"n3", "n4"}, ""},
		{"ReqNodeNotAvail, Reserved for maintenance", "2@1m,1@1m", []string{"n3", "n4"}, ""},
		{"Resources", "2@1m,3@1m", nil, "Slurm did not start it: Resources"}, // it needs one of them
		{"AssocGrpNodeLimit", "2@1m", nil, "AssocGrpNodeLimit"},
	} {
		t.Run(c.reason+" "+c.profile, func(t *testing.T) {
			b := newBench(t, 4)
			j := b.evolving(1, 1, c.profile, time.Hour)
			other := b.evolving(2, 0, "1@1m", time.Hour)
			b.plan(b.s)
			if !slices.Equal(j.plan[0].nodes, []string{"n1", "n2"}) {
				t.Fatalf("planned on %v", j.plan[0].nodes)
			}
			j.State, j.record.Reason, j.touched = row.Starting, c.reason, b.s.taken.Add(-2*startWait)
			b.now = b.s.taken
			b.actOn(b.s, j, b.now)
			for _, e := range b.effects {
				if task, ok := e.(Task); ok {
					b.settled(Outcome{Task: task.ID})
				}
			}
			if j.State != row.Queued {
				t.Fatalf("it is %s", j.State)
			}
			if c.want == nil {
				if j.kept == nil || !strings.Contains(j.reason.words(), c.words) || len(j.record.ExcNodes) > 0 {
					t.Errorf("kept back: %+v, %q; leaves %v alone", j.kept, j.reason.words(), j.record.ExcNodes)
				}
				return
			}
			if len(j.plan) > 0 {
				t.Fatal("it could be let go onto the same nodes at once")
			}
			if b.plan(b.s); j.kept != nil || !slices.Equal(j.plan[0].nodes, c.want) {
				t.Errorf("kept back: %+v; planned on %v, want %v", j.kept, j.plan[0].nodes, c.want)
			}
			if slices.Contains(other.record.ExcNodes, "n1") {
				t.Error("others leave them alone, too")
			}
			j.readmit(b.now.Add(shunFor + time.Second))
			if j.see(&slurmctl.Job{ID: 1}); len(j.record.ExcNodes) > 0 {
				t.Errorf("an hour later it leaves %v alone", j.record.ExcNodes)
			}
		})
	}
}
