package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestStartsOnBlocks checks in random states that a job is planned now if Slurm would start it, and on nodes that Slurm accepts.
func TestStartsOnBlocks(t *testing.T) {
	seed, now := rand.Uint64(), 0
	for end := seed + 3000; seed != end; seed++ {
		chance := rand.New(rand.NewPCG(seed, 0))
		o := blockSite(t, chance, seed%3 == 0)
		network := networkOf(o)
		inside := len(network.Leaf)
		pool := planner.Pool{Nodes: inside, Switches: network}
		var busy []string
		for _, i := range chance.Perm(inside)[:chance.IntN(inside)] {
			busy = append(busy, fmt.Sprintf("n%d", i+1))
			pool.Busy = append(pool.Busy, planner.NodeBusy{Node: i, End: 3600})
		}
		want := 1 + chance.IntN(inside-len(busy))
		pool.Jobs = []planner.PoolJob{{Job: planner.Job{Profile: planner.Profile{{Duration: 60, Nodes: want}}}, Driver: planner.Lowest}}
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
			if got := startsWithin(t, o, planned[0].Nodes[0], inside); got != want {
				t.Fatal(about, got, "of these")
			}
		case theirs != nil && want <= largest && network.Weight == nil: // others may wait for blocks that Slurm can fill
			t.Fatal(about, theirs)
		}
	}
	if now < 500 {
		t.Errorf("only %d jobs start", now)
	}
}

// blockSite returns a site with blocks; its last nodes may be outside of all.
func blockSite(t *testing.T, chance *rand.Rand, weights bool) slurmsim.Options {
	o := slurmsim.Options{Nodes: 4 + chance.IntN(24)}
	sizes, lists, _ := strings.Cut(someBlocks(chance, o.Nodes), "/")
	var err error
	if o.Topology, err = blocks(strings.Split(sizes, ","), strings.Split(lists, "/")); err != nil {
		t.Fatal(err)
	}
	for n := 1; weights && n <= o.Nodes; n++ {
		o.NodeList = append(o.NodeList, slurmctl.Node{Name: fmt.Sprintf("n%d", n), CPUs: 1, Weight: 1 + chance.IntN(2)})
	}
	return o
}

// networkOf returns the blocks as the core passes them on: without the nodes outside of all.
func networkOf(o slurmsim.Options) *planner.Switches {
	s := &planner.Switches{Blocks: &planner.Blocks{Count: len(o.Topology.Switches), Size: o.Topology.BlockSize, Levels: append([]int{1}, o.Topology.Levels...)}}
	for i, block := range o.Topology.Switches {
		s.Above, s.Leaf = append(s.Above, -1), append(s.Leaf, slices.Repeat([]int{i}, len(block.Nodes))...)
	}
	for n := range min(len(o.NodeList), len(s.Leaf)) {
		s.Weight = append(s.Weight, o.NodeList[n].Weight)
	}
	return s
}

// someBlocks makes base blocks of one to four nodes, and larger ones of them.
func someBlocks(chance *rand.Rand, nodes int) string {
	size := 1 + chance.IntN(3)
	sizes, lists := fmt.Sprint(size), []string(nil)
	for _, by := range []int{2, 4} {
		if chance.IntN(2) == 0 {
			sizes += fmt.Sprintf(",%d", by*size)
		}
	}
	for first := 1; first+size-1 <= nodes; {
		last := min(first+size-1+chance.IntN(2), nodes)
		lists = append(lists, fmt.Sprintf("n[%d-%d]", first, last))
		first = last + 1
	}
	return sizes + "/" + strings.Join(lists, "/")
}

// startsWithin returns how many nodes the model's Slurm gives a job that needs all of some nodes, while the others inside of the
// blocks are closed, as by its hold.
func startsWithin(t *testing.T, o slurmsim.Options, nodes []int, inside int) int {
	var others []string
	for n := range inside {
		if !slices.Contains(nodes, n) {
			others = append(others, fmt.Sprintf("n%d", n+1))
		}
	}
	got, _ := startsBeside(t, o, others, len(nodes))
	return len(got)
}

// startsBeside returns the nodes that the model's Slurm gives a job beside one on each of the busy nodes, or nil; and whether it takes the job at all.
func startsBeside(t *testing.T, o slurmsim.Options, busy []string, nodes int) (on []string, taken bool) {
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
	id, err := c.Submit(job)
	if err != nil {
		return nil, false
	}
	c.Sleep(5 * time.Second)
	j, _ := c.Record(id)
	return j.NodeList, true
}
