package stock

import (
	"math"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestStartsAround checks that no start is predicted on a node that is down, nor before a reservation that begins too soon. Nodes of a low
// weight come first.
func TestStartsAround(t *testing.T) {
	b := statetest.NewShared(t, "", "", false)
	b.Seen.Nodes[0].State = "down"
	b.Share(t, 1, "1x10")
	b.Share(t, 2, "1x5")
	o := msg.NewOccupancy(2, b.Now.Unix())
	o.Reserve(1, b.Now.Unix()+7*60, b.Now.Unix()+30*60, "course")
	list := Candidates(b.Core, b.Seen, b.Now.Unix(), slurm.Turn{Tier: math.MinInt}, nil)
	ShareOut(list, len(list))
	if got := Starts(b.Core, b.Seen, o, list); got[0].Start != b.Now.Unix()+30*60 || got[1].Start != b.Now.Unix() {
		t.Errorf("starts %+v from %d on", got, b.Now.Unix())
	}
	b.Seen.Nodes[0].State, b.Seen.Nodes[0].Weight = "idle", 2
	h, _ := newShares(b.Core, b.Seen, msg.NewOccupancy(2, b.Now.Unix()), false)
	if _, on := h.placeOn([]int{0, 1}, 1, b.Now.Unix(), 60, h.shareOf(list[0].Record)); !slices.Equal(on, []int{1}) {
		t.Errorf("on %v", on)
	}
}

// TestStartsBounded checks that work on what users ask for is bounded.
func TestStartsBounded(t *testing.T) {
	b := statetest.NewShared(t, "", "", false)
	for i := range 40 {
		b.Share(t, i+1, "1x10{tasks=2000000000}")
	}
	h, _ := newShares(b.Core, b.Seen, msg.NewOccupancy(2, b.Now.Unix()), false)
	list := Candidates(b.Core, b.Seen, b.Now.Unix(), slurm.Turn{Tier: math.MinInt}, nil)
	ShareOut(list, len(list))
	for i := range list {
		h.start(&list[i], map[slurmctl.JobID][]int64{})
	}
	for n, stretches := range h.nodes {
		if len(stretches) > 40*mostTasks+2 {
			t.Errorf("node %d has %d stretches", n, len(stretches))
		}
	}
	h.looks = mostLooks
	if start, _ := h.placeOn(list[0].Nodes, 1, 0, 60, h.shareOf(list[0].Record)); start < 1<<40 {
		t.Error("it looks further")
	}
}
