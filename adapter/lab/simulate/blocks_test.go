package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestStartsOnBlocks checks in random states that a job is planned now if Slurm would start it, and on nodes that Slurm accepts.
func TestStartsOnBlocks(t *testing.T) {
	seed, now := rand.Uint64(), 0
	for end := seed + 2000; seed != end; seed++ {
		chance := rand.New(rand.NewPCG(seed, 0))
		o := blockSite(t, chance, seed%3 == 0)
		network := networkOf(o)
		pool := planner.Pool{Nodes: o.Nodes, Switches: network}
		var busy []string
		for _, i := range chance.Perm(o.Nodes)[:chance.IntN(o.Nodes)] {
			busy = append(busy, fmt.Sprintf("n%d", i+1))
			pool.Busy = append(pool.Busy, planner.NodeBusy{Node: i, End: 3600})
		}
		want := 1 + chance.IntN(o.Nodes-len(busy))
		profile := planner.Profile{{Duration: 60, Nodes: want}, {Duration: 60, Nodes: want + chance.IntN(o.Nodes-len(busy)-want+1)}}
		pool.Jobs = []planner.PoolJob{{Job: planner.Job{Profile: profile}, Driver: planner.Lowest}}
		theirs, taken := startsBeside(t, o, busy, want)
		if !taken {
			continue
		}
		strategy, _ := planner.StrategyByName("noX")
		planned, err := pool.Plan(strategy)
		if err != nil {
			t.Fatal(err)
		}
		about := fmt.Sprintf("seed %d: %d nodes beside %s on %+v: planned %+v, and Slurm starts it on", seed, want, slurmctl.CompressNodes(busy), o.Topology, planned[0])
		largest := network.Blocks.Size * slices.Max(network.Blocks.Levels)
		switch starts := planned[0].Unfit == "" && planned[0].Start == 0; {
		case starts:
			now++
			if got := startsWithin(t, o, planned[0].Nodes[0]); got != want {
				t.Fatal(about, got, "of these")
			}
			for i, part := range grown(network, planned[0].Nodes) {
				if got := startsWithin(t, o, part, nodeNames(part)...); got != len(part) {
					t.Fatal(about, got, "of", part, "for part", i, "of its growth")
				}
			}
		case theirs != nil && want <= largest && network.Weight == nil: // others may wait for blocks that Slurm can fill
			t.Fatal(about, theirs)
		}
	}
	if now < 300 {
		t.Errorf("only %d jobs start", now)
	}
}

// blockSite returns a site with blocks.
func blockSite(t *testing.T, chance *rand.Rand, weights bool) slurmsim.Options {
	o := slurmsim.Options{Nodes: 4 + chance.IntN(24)}
	size, lists := someBlocks(chance, o.Nodes)
	var err error
	if o.Topology, err = blocks([]string{fmt.Sprint(size)}, lists); err != nil {
		t.Fatal(err)
	}
	for _, of := range []int{2, 4} {
		if chance.IntN(2) == 0 {
			o.Topology.Levels = append(o.Topology.Levels, of)
		}
	}
	for n := 1; weights && n <= o.Nodes; n++ {
		o.NodeList = append(o.NodeList, slurmctl.Node{Name: fmt.Sprintf("n%d", n), CPUs: 1, Weight: 1 + chance.IntN(2)})
	}
	return o
}

// networkOf returns the blocks as the core passes them on.
func networkOf(o slurmsim.Options) *planner.Switches {
	s := &planner.Switches{Blocks: &planner.Blocks{Count: len(o.Topology.Switches), Size: o.Topology.BlockSize, Levels: append([]int{1}, o.Topology.Levels...)}}
	for i, block := range o.Topology.Switches {
		s.Above, s.Leaf = append(s.Above, -1), append(s.Leaf, slices.Repeat([]int{i}, len(block.Nodes))...)
	}
	for _, node := range o.NodeList {
		s.Weight = append(s.Weight, node.Weight)
	}
	return s
}

// grown returns the nodes of a growth by base blocks: each is a job of its own, which names its nodes.
func grown(network *planner.Switches, steps [][]int) map[int][]int {
	parts := map[int][]int{}
	for _, n := range steps[len(steps)-1] {
		if !slices.Contains(steps[0], n) {
			parts[network.Leaf[n]] = append(parts[network.Leaf[n]], n)
		}
	}
	return parts
}

func nodeNames(nodes []int) (names []string) {
	for _, n := range nodes {
		names = append(names, fmt.Sprintf("n%d", n+1))
	}
	return names
}

// startsWithin returns how many nodes the model's Slurm gives a job that needs all of some nodes, and may name them, while the
// others are closed, as by its hold.
func startsWithin(t *testing.T, o slurmsim.Options, nodes []int, named ...string) int {
	var others []int
	for n := range o.Nodes {
		if !slices.Contains(nodes, n) {
			others = append(others, n)
		}
	}
	got, _ := startsBeside(t, o, nodeNames(others), len(nodes), named...)
	return len(got)
}

// startsBeside returns the nodes that the model's Slurm gives a job beside one on each of the busy nodes, or nil; and whether it takes the job at all.
func startsBeside(t *testing.T, o slurmsim.Options, busy []string, nodes int, named ...string) (on []string, taken bool) {
	c := slurmsim.New(o)
	defer c.Close()
	job := slurmsim.Job{Nodes: nodes, Script: "#!", Lasts: time.Hour, TimeLimit: 2 * time.Hour}
	for _, name := range busy {
		one := job
		one.Nodes, one.NodeList = 1, []string{name}
		if _, err := c.Submit(one); err != nil {
			t.Fatal(err)
		}
	}
	c.Sleep(5 * time.Second)
	job.NodeList = named
	id, err := c.Submit(job)
	if err != nil {
		return nil, false
	}
	c.Sleep(5 * time.Second)
	j, _ := c.Record(id)
	return j.NodeList, true
}
