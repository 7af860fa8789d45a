package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
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
			j := b.Evolving(1, 1, c.profile, time.Hour)
			other := b.Evolving(2, 0, "1@1m", time.Hour)
			b.plan(b.s)
			if !slices.Equal(j.Plan[0].Nodes, []string{"n1", "n2"}) {
				t.Fatalf("planned on %v", j.Plan[0].Nodes)
			}
			j.State, j.Record.Reason, j.Touched = row.Starting, c.reason, b.s.Taken.Add(-2*adopt.StartWait)
			b.Now = b.s.Taken
			act.ActOn(b.Core, b.s, j, b.Now)
			for _, e := range b.Effects {
				if task, ok := e.(msg.Task); ok {
					settled(b.Core, msg.Outcome{Task: task.ID})
				}
			}
			if j.State != row.Queued {
				t.Fatalf("it is %s", j.State)
			}
			if c.want == nil {
				if j.Kept == nil || !strings.Contains(j.Reason().Words(), c.words) || len(j.Record.ExcNodes) > 0 {
					t.Errorf("kept back: %+v, %q; leaves %v alone", j.Kept, j.Reason().Words(), j.Record.ExcNodes)
				}
				return
			}
			if len(j.Plan) > 0 {
				t.Fatal("it could be let go onto the same nodes at once")
			}
			if b.plan(b.s); j.Kept != nil || !slices.Equal(j.Plan[0].Nodes, c.want) {
				t.Errorf("kept back: %+v; planned on %v, want %v", j.Kept, j.Plan[0].Nodes, c.want)
			}
			if slices.Contains(other.Record.ExcNodes, "n1") {
				t.Error("others leave them alone, too")
			}
			j.Readmit(b.Core, b.Now.Add(act.ShunFor+time.Second))
			if adopt.See(j, &slurmctl.Job{ID: 1}); len(j.Record.ExcNodes) > 0 {
				t.Errorf("an hour later it leaves %v alone", j.Record.ExcNodes)
			}
		})
	}
}
