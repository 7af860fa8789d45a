package hold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"pgregory.net/rapid"
)

const sharesNow = 1_800_000_000

// sharesCore returns a core that has seen a cluster of 16 nodes: partition main has all, and
// partition half the first eight.
func sharesCore(cfg config.Config) *state.Core {
	var nodes []slurmctl.Node
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("n%d", i+1))
		nodes = append(nodes, slurmctl.Node{Name: names[i], State: "idle"})
	}
	c := state.New(msg.Site{Root: true}, cfg, msg.Strategy{}, time.Unix(sharesNow, 0))
	c.Snapshot = pace.NewSnapshot(c, msg.Observation{Begun: c.Now, Nodes: nodes,
		Partitions: []slurmctl.Partition{{Name: "main", Up: true, Nodes: names}, {Name: "half", Up: true, Nodes: names[:8]}}})
	return c
}

// sharesJob adds a running job, or a queued one.
func sharesJob(c *state.Core, id int, user, partition string, st row.State) *state.Job {
	j := &state.Job{Job: &row.Job{Owned: row.Owned{ID: int64(id), SlurmID: uint32(id), User: user, Account: "acct-" + user, Partition: partition}, Terms: row.Terms{Drive: "merge"}, Life: row.Life{State: st, Step: 1}}}
	state.SetMode(c, j)
	c.Active = append(c.Active, j)
	c.ByID[j.BaseID()] = j
	return j
}

// TestSharesHold: whatever jobs want, no owner has more held than its shares allow, nobody waits
// whose share is unused, and what is not held says why and when.
func TestSharesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config.Default()
		cfg.MaxHolds = rapid.IntRange(1, 12).Draw(t, "max_holds")
		for _, s := range []*config.Shares{&cfg.HoldShares.Job, &cfg.HoldShares.User, &cfg.HoldShares.Account, &cfg.HoldShares.Partition} {
			*s = config.Shares{Reservations: rapid.IntRange(1, 100).Draw(t, "share"), Nodes: rapid.IntRange(1, 100).Draw(t, "share"), NodeHours: rapid.IntRange(1, 100).Draw(t, "share")}
		}
		c := sharesCore(cfg)
		var all []state.Hold
		for id := range rapid.IntRange(1, 8).Draw(t, "jobs") {
			j := sharesJob(c, id+1, rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(t, "user"), "main", row.Running)
			at := int64(sharesNow)
			for step := range rapid.IntRange(1, 5).Draw(t, "steps") {
				at += int64(rapid.IntRange(0, 1500).Draw(t, "seconds"))
				from := rapid.IntRange(0, 15).Draw(t, "from")
				h := state.Hold{Job: j, Step: step + 2, Start: at}
				for n := from; n < min(from+rapid.IntRange(1, 8).Draw(t, "nodes"), 16); n++ {
					h.Nodes = append(h.Nodes, fmt.Sprintf("n%d", n+1))
				}
				h.From = make([]int64, len(h.Nodes))
				all = append(all, h)
			}
		}
		kept := Allowed(c, slices.Clone(all), sharesNow)
		checkShares(t, &cfg, kept)
		for _, j := range c.Active {
			held := slices.ContainsFunc(kept, func(h state.Hold) bool { return h.Job == j })
			if j.Unheld == nil != (len(j.Deferred) == 0) || j.Unheld != nil && (j.Unheld.Key == "" || j.Unheld.By < sharesNow || j.Unheld.Words(c) == "") {
				t.Fatalf("job %d: %v deferred, %+v", j.SlurmID, j.Deferred, j.Unheld)
			}
			if !held && j.Unheld == nil {
				t.Fatalf("job %d has nothing held, and does not say why", j.SlurmID)
			}
		}
	})
}

// checkShares counts by hand.
func checkShares(t *rapid.T, cfg *config.Config, kept []state.Hold) {
	if len(kept) > cfg.MaxHolds {
		t.Fatalf("%d holds, max_holds is %d", len(kept), cfg.MaxHolds)
	}
	type key struct{ scope, of string }
	count, largest, nodes, seconds := map[key]int{}, map[key]int{}, map[key]msg.Set{}, map[key]int64{}
	for _, h := range kept {
		for _, k := range []key{{"job", fmt.Sprint(h.Job.SlurmID)}, {"user", h.Job.User}, {"account", h.Job.Account}, {"partition", ""}} {
			count[k]++
			if h.Start <= sharesNow {
				continue
			}
			if nodes[k] == nil {
				nodes[k] = msg.Set{}
			}
			nodes[k].Add(h.Nodes)
			largest[k] = max(largest[k], len(h.Nodes))
			seconds[k] += int64(len(h.Nodes)) * (h.Start - sharesNow)
		}
	}
	for k, n := range count {
		s := cfg.HoldShares.Of(k.scope)
		if most := max(s.Reservations*cfg.MaxHolds/100, 1); n > most {
			t.Fatalf("%v has %d reservations, and may have %d", k, n, most)
		}
		if most := max(s.Nodes*16/100, 1, largest[k]); len(nodes[k]) > most { // one growth may have any number
			t.Fatalf("%v has %d nodes held, and may have %d", k, len(nodes[k]), most)
		}
		if most := int64(s.NodeHours) * 16 * 3600 / 100; seconds[k] > most {
			t.Fatalf("%v has %d node-seconds held, and may have %d", k, seconds[k], most)
		}
	}
}

// TestSharesOfAnArray checks that the tasks of an array share what is held with their user's other jobs: however many want
// holds, they have no more than the user's share, and another user's job has its hold.
func TestSharesOfAnArray(t *testing.T) {
	cfg := config.Default()
	cfg.MaxHolds, cfg.HoldShares.User = 20, config.Shares{Reservations: 50, Nodes: 25, NodeHours: 100}
	c := sharesCore(cfg)
	var all []state.Hold
	wants := func(j *state.Job, n int, after int64) {
		all = append(all, state.Hold{Job: j, Step: 2, Start: sharesNow + after, Nodes: []string{fmt.Sprintf("n%d", n%16+1)}, From: []int64{0}})
	}
	for n := range 32 {
		j := sharesJob(c, 100+n, "alice", "main", row.Running)
		j.Array, j.Task = 100, uint32(n)
		wants(j, n, 60)
		wants(j, n, 120)
	}
	other := sharesJob(c, 5, "bob", "main", row.Running)
	wants(other, 15, 600)
	nodes, tasks, others := msg.Set{}, 0, 0
	for _, h := range Allowed(c, all, sharesNow) {
		if h.Job == other {
			others++
			continue
		}
		tasks++
		nodes.Add(h.Nodes)
	}
	if tasks == 0 || tasks > 10 || len(nodes) > 4 || others != 1 {
		t.Errorf("%d holds of tasks on %d nodes, want 1 to 10 on 1 to 4; %d of another user's job, want 1", tasks, len(nodes), others)
	}
}

// TestSharesAreFair: however much one user wants, another user has the first hold.
func TestSharesAreFair(t *testing.T) {
	cfg := config.Default()
	cfg.MaxHolds = 10
	cfg.HoldShares.User = config.Shares{Reservations: 100, Nodes: 100, NodeHours: 100} // nothing but the order is fair
	cfg.HoldShares.Job = cfg.HoldShares.User
	c := sharesCore(cfg)
	greedy, other := sharesJob(c, 1, "alice", "main", row.Running), sharesJob(c, 2, "bob", "main", row.Running)
	var all []state.Hold
	for step := range 30 {
		all = append(all, state.Hold{Job: greedy, Step: step + 2, Start: sharesNow + int64(step)*10, Nodes: []string{"n1"}, From: []int64{0}})
		c.HoldNames[state.HoldKey{1, step + 2}] = fmt.Sprint("evo_1_", step+2, "_1") // and has it already
	}
	for step := range 4 {
		all = append(all, state.Hold{Job: other, Step: step + 2, Start: sharesNow + 3000, Nodes: []string{"n2"}, From: []int64{0}})
	}
	kept := Allowed(c, all, sharesNow)
	mine := slices.DeleteFunc(slices.Clone(kept), func(h state.Hold) bool { return h.Job != other })
	if len(kept) != 10 || len(mine) != 4 {
		t.Errorf("%d holds, %d of the other user; want 10 and 4", len(kept), len(mine))
	}
	if b := greedy.Unheld; b == nil || b.Step != 8 || b.Key != "max_holds" {
		t.Errorf("the greedy user sees %+v", b)
	}
}

// TestSharesOverPartitions: partitions of the same nodes do not double a share.
func TestSharesOverPartitions(t *testing.T) {
	cfg := config.Default()
	cfg.HoldShares.User.Nodes = 50
	c := sharesCore(cfg)
	var all []state.Hold
	for id, partition := range []string{"half", "main"} {
		j := sharesJob(c, id+1, "alice", partition, row.Running)
		h := state.Hold{Job: j, Step: 2, Start: sharesNow + 60}
		for n := range 8 {
			h.Nodes = append(h.Nodes, fmt.Sprintf("n%d", n+1+8*id))
		}
		all = append(all, h)
	}
	if kept := Allowed(c, all, sharesNow); len(kept) != 1 || kept[0].Job.SlurmID != 1 {
		t.Errorf("%d holds: 16 of 16 nodes of partition main are held for a user who may have 8", len(kept))
	}
}

// TestGains: what a plan brings at each step, until when, and when the job had it before.
func TestGains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := &state.Job{Job: &row.Job{Life: row.Life{Step: rapid.IntRange(0, 2).Draw(t, "step")}, Terms: row.Terms{Drive: rapid.SampledFrom([]string{"merge", "chain"}).Draw(t, "drive")}}}
		j.Mode = drivemode.Mode(j.Drive).Means()
		for i := range rapid.IntRange(2, 7).Draw(t, "steps") {
			step := msg.PlannedStep{Start: int64(10 * (i + 1)), End: int64(10 * (i + 2))}
			for n := range 5 {
				if n == 0 || rapid.Bool().Draw(t, "has") {
					step.Nodes = append(step.Nodes, fmt.Sprint("n", n))
				}
			}
			j.Plan = append(j.Plan, step)
		}
		if j.Step > 0 {
			j.Held = []msg.Part{{Nodes: j.Plan[j.Step-1].Nodes}}
		}
		for _, g := range Gained(j) {
			i := g.Step - 1
			end := j.Plan[i].End
			for k := i + 1; j.Mode.CarriesNodes && k < len(j.Plan) && len(msg.Without(g.Nodes, j.Plan[k].Nodes)) == 0; k++ {
				end = j.Plan[k].End
			}
			if g.End != end {
				t.Fatalf("step %d: until %d, want %d", g.Step, g.End, end)
			}
			for k, name := range g.Nodes {
				from := int64(0)
				for before := max(j.Step-1, 0); before < i; before++ {
					if slices.Contains(j.Plan[before].Nodes, name) {
						from = j.Plan[before].End
					}
				}
				if g.From[k] != from {
					t.Fatalf("step %d: %s was the job's until %d, want %d", g.Step, name, g.From[k], from)
				}
			}
		}
	})
}
