package view

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestCheck checks that each broken invariant of a job is found, and named.
func TestCheck(t *testing.T) {
	for want, breaks := range map[string]func(b *statetest.Bench, j *state.Job){
		"": func(*statetest.Bench, *state.Job) {},
		"job 1 (ended, step 1): is among those that have not ended":                               func(_ *statetest.Bench, j *state.Job) { j.State = row.Ended },
		"job 1 (queued, step 1): a step goes on only of a job that runs":                          func(_ *statetest.Bench, j *state.Job) { j.State = row.Queued },
		"job 1 (running, step 4): there are 3 steps":                                              func(_ *statetest.Bench, j *state.Job) { j.Step = 4 },
		"job 1 (waiting, step 3): waits after its last step":                                      func(b *statetest.Bench, j *state.Job) { j.Step = 3; b.Waits(j) },
		"job 1 (running, step 1): the plan has 2 steps":                                           func(_ *statetest.Bench, j *state.Job) { j.Plan = j.Plan[:2] },
		"job 1 (running, step 1): has another row of the drive table than its mode and site have": func(_ *statetest.Bench, j *state.Job) { j.Drive = "chain" },
		"job 1 (running, step 1): is not found by its base job":                                   func(b *statetest.Bench, j *state.Job) { delete(b.ByID, 1) },
		"job 1 (running, step 1): step 2 is planned to begin 60 s before step 1 ends":             func(_ *statetest.Bench, j *state.Job) { j.Plan[0].End += 60 },
		"job 1 (running, step 1): step 2 is planned on 2 nodes":                                   func(_ *statetest.Bench, j *state.Job) { j.Plan[1].Nodes = j.Plan[1].Nodes[:2] },
		"job 1 (running, step 1): step 2 is planned on a node twice": func(b *statetest.Bench, j *state.Job) {
			b.Plans(j, "0-600 n[1-2]", "600-1200 n[1-3,3]", "1200-1800 n1")
		},
		"job 1 is among the ended ones, running": func(b *statetest.Bench, j *state.Job) { b.Active, b.Ended = nil, []*state.Job{j} },
	} {
		t.Run(want, func(t *testing.T) {
			b, j := statetest.Growing(t)
			breaks(b, j)
			got := ""
			if err := Check(b.Core); err != nil {
				got = err.Error()
			}
			if got != want && (want == "" || !strings.Contains(got, want)) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestClashes checks which promises of the same node to two jobs count.
func TestClashes(t *testing.T) {
	for name, c := range map[string]struct {
		plan []string
		want string // the node
	}{
		"other nodes":               {[]string{"0-600 n8", "600-1200 n[5-7]"}, ""},
		"the same time":             {[]string{"0-600 n8", "600-1200 n[4-6]"}, "n4"},
		"later":                     {[]string{"0-1200 n8", "1200-1300 n[4-6]"}, ""},
		"earlier by a margin":       {[]string{"0-1199 n8", "1199-1300 n[4-6]"}, ""},
		"earlier by more than that": {[]string{"0-1100 n8", "1100-1300 n[4-6]"}, "n4"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := statetest.Growing(t)
			other := b.Evolving(2, 1, "1@10m,3@10m", time.Hour)
			b.Runs(other, "n8")
			b.Plans(other, c.plan...)
			got := ""
			for _, clash := range Clashes(b.Core) {
				got += clash.Node
			}
			if got != c.want {
				t.Errorf("clash at %q, want %q", got, c.want)
			}
		})
	}
}
