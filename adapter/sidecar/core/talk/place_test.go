package talk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// asked returns a bench with jobs on half of its nodes, and a place that a user has asked for.
func asked(t testing.TB, nodes int) (*statetest.Bench, *state.OpenCall) {
	t.Helper()
	b := statetest.New(t, nodes)
	for i := range min(nodes/2, 500) {
		b.StockRuns(i+1, fmt.Sprintf("n%d", i+1), time.Duration(i+1)*time.Minute)
	}
	var r request.Request
	must.OK(t, r.Set("profile", "2@10m,4@5m"))
	marker, _ := r.Marker()
	b.SlurmConfig.Values = map[string]string{"ClusterName": "a", "SlurmUser": "root(0)"}
	k := &state.OpenCall{Call: msg.Call{ID: 7, UID: 1000, User: "ann", Place: &api.PlacementQuery{ID: "one", Request: marker, Partition: "main", Minutes: 15}}}
	if place(b.Core, k) {
		t.Fatal("an answer without a plan", b.Replies())
	}
	b.Prospects[0].Made = true
	b.Prospects[0].Plan = []msg.PlannedStep{{Start: statetest.Second, End: statetest.Second + 600, Nodes: statetest.Names(nodes-1, nodes)},
		{Start: statetest.Second + 600, End: statetest.Second + 900, Nodes: statetest.Names(nodes-3, nodes)}}
	return b, k
}

// TestPlaceAgain: a question that is repeated is answered from the cache until the next plan or poll, and then by these.
func TestPlaceAgain(t *testing.T) {
	b, k := asked(t, 8)
	p := b.Prospects[0]
	ask := func() string {
		t.Helper()
		if !place(b.Core, k) {
			return "waits"
		}
		return strings.Join(b.Replies(), "")
	}
	first := ask()
	if !strings.Contains(first, "4 of 8 nodes are free") {
		t.Errorf("first: %s", first)
	}
	cached := p.Offer
	if again := ask(); again != first || p.Offer != cached {
		t.Errorf("again: %s, worked out again: %v", again, p.Offer != cached)
	}
	b.StockRuns(9, "n8", time.Hour) // seen in the next poll
	b.Later(time.Second)
	b.Seen.Taken = b.Now
	if next := ask(); !strings.Contains(next, "3 of 8 nodes are free") {
		t.Errorf("after a poll: %s", next)
	}
	plan.TakePlans(b.Core, msg.Planned{Jobs: []msg.PlannedJob{{Job: p.BaseID(), Steps: []msg.PlannedStep{{Start: statetest.Second + 3600, End: statetest.Second + 4515, Nodes: statetest.Names(1, 4)}}}}})
	if next := ask(); next == first || !strings.Contains(next, "to 09:15:00") {
		t.Errorf("after a plan, whose last step is longer by as long as the place is kept: %s", next)
	}
	p.Made = false
	if next := ask(); next != "waits" {
		t.Errorf("before a plan: %s", next)
	}
}

// BenchmarkPlaceAgain compares the first answer of a poll with a repeated one, on 1,000 nodes with 500 jobs.
func BenchmarkPlaceAgain(b *testing.B) {
	for _, again := range []bool{false, true} {
		b.Run(fmt.Sprintf("cached=%v", again), func(b *testing.B) {
			bench, k := asked(b, 1000)
			for b.Loop() {
				if !again {
					bench.Prospects[0].Offer = nil
				}
				place(bench.Core, k)
				bench.Effects = nil
			}
		})
	}
}
