package stock

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSetsBeside checks which stock jobs count beside job 100, in partition a of n1 to n4: at most two, that wait only for
// nodes that it may have, has, or for which it has a hold. Partition b is n5 to n8, c is n3 to n6.
func TestSetsBeside(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"a job in its partition":         {nil, "5 6"},
		"it is planned beside it":        {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-60 n1", "60-120 n[1,7]") }, "1 2"},
		"it has a node beside it":        {func(b *statetest.Bench, j *state.Job) { b.Runs(j, "n7") }, "1 2 5 6"},
		"a hold beside it":               {hold, "1 2 5 6"},
		"a hold of nobody":               {func(b *statetest.Bench, j *state.Job) { hold(b, j); delete(b.ByID, 100) }, "5 6"},
		"its constraint cannot be read":  {func(b *statetest.Bench, j *state.Job) { j.Record.Features = "(("; b.Plans(j, "0-60 n3") }, "5 6"},
		"the first waits for its tasks":  {func(b *statetest.Bench, _ *state.Job) { b.Seen.ByID[5].Reason = "JobArrayTaskLimit" }, "6 7"},
		"the first may have nodes of it": {func(b *statetest.Bench, _ *state.Job) { b.Seen.ByID[1].Partition = "c" }, "1 5"},
	} {
		b := statetest.New(t, 12)
		b.Partition("a", 1, 4)
		b.Partition("b", 5, 8)
		b.Partition("c", 3, 6)
		b.Config.StockJobs = 2
		for i := range 8 {
			b.Stock(i+1, uint64(90-i), 1, time.Hour).Partition = map[bool]string{true: "b", false: "a"}[i < 4]
		}
		j := b.Evolving(100, 1, "1@1m,2@1m", time.Hour)
		j.Record.Partition = "a"
		if c.change != nil {
			c.change(b, j)
		}
		var got []string
		for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix(), slurm.Turn{Tier: math.MinInt}, SetsBeside(b.Core, b.Seen, b.Active)) {
			got = append(got, fmt.Sprint(cand.Record.ID))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// hold gives a job a hold of n8.
func hold(b *statetest.Bench, j *state.Job) {
	b.Reservations["evo_100_2_1"] = slurmctl.Reservation{Name: "evo_100_2_1", Nodes: []string{"n8"}}
	b.Ours = append(b.Ours, state.OwnHold{Name: "evo_100_2_1", Own: state.OwnName{Job: j.BaseID(), Step: 2}})
}

// TestFirst checks how many of a list are kept for each set: four of up to four sets, and equal shares of 16 of more.
func TestFirst(t *testing.T) {
	for _, c := range []struct{ sets, want int }{{1, 4}, {2, 4}, {4, 4}, {5, 3}, {8, 2}, {16, 1}} {
		b := statetest.New(t, 16)
		var list []slurm.Placed
		for i := range c.sets {
			b.Partition(fmt.Sprint("p", i), i+1, i+1)
			j := b.Evolving(100+i, 1, "1@1m,1@1m", time.Hour)
			j.Record.Partition = fmt.Sprint("p", i)
			for k := range 6 {
				list = append(list, slurm.Placed{Candidate: slurm.Candidate{Record: &slurmctl.Job{Partition: j.Record.Partition, Priority: uint64(9 - k)}}})
			}
		}
		got := map[string]int{}
		for _, p := range SetsBeside(b.Core, b.Seen, b.Active).First(list, 4) {
			if got[p.Record.Partition]++; p.Record.Priority < uint64(10-c.want) {
				t.Errorf("%d sets: a job of priority %d is kept", c.sets, p.Record.Priority)
			}
		}
		for i := range c.sets {
			if n := got[fmt.Sprint("p", i)]; n != c.want {
				t.Errorf("%d sets: %d jobs of set %d, want %d", c.sets, n, i, c.want)
			}
		}
	}
}

// TestSetsNeedNoOrder checks that the sets are the same whatever the order of the jobs.
func TestSetsNeedNoOrder(t *testing.T) {
	b := statetest.New(t, 12)
	b.Partition("odd", 1, 12)
	lists := [][]int{{0, 1}, {1, 2}, {4, 5}, {8}, {5, 8}, {10}}
	for range 50 {
		var list []slurm.Candidate
		for _, nodes := range lists {
			list = append(list, slurm.Candidate{Nodes: slices.Clone(nodes), Profile: planner.Profile{{Duration: 1, Nodes: 1}}, Record: &slurmctl.Job{}})
		}
		sets := SetsOf(b.Seen, list)
		if got := len(sets.touched("odd")); got != 3 {
			t.Fatalf("%d sets of %v, want 3", got, lists)
		}
		lists = append(lists[1:], lists[0])
	}
}
