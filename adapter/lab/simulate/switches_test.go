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

// TestNoMoreSwitchesThanSlurm checks in random states that a job gets nodes of the same weights as Slurm would give it, and on no
// more leaf switches.
func TestNoMoreSwitchesThanSlurm(t *testing.T) {
	seed := rand.Uint64()
	for end := seed + 300; seed != end; seed++ {
		chance := rand.New(rand.NewPCG(seed, 0))
		nodes := 4 + chance.IntN(20)
		o := slurmsim.Options{Nodes: nodes}
		if err := addSwitches(&o.Topology, strings.Split(someSwitches(chance, nodes), "/")); err != nil {
			t.Fatal(err)
		}
		leaf, index := map[string]int{}, map[string]int{}
		pool := planner.Pool{Nodes: nodes, Switches: &planner.Switches{Leaf: make([]int, nodes), Weight: make([]int, nodes)}}
		kinds := 1 + chance.IntN(3)
		for i := range nodes {
			name := fmt.Sprintf("n%d", i+1)
			index[name], pool.Switches.Weight[i] = i, chance.IntN(kinds)
			if err := eachNode(&o, name, func(n *slurmctl.Node) { n.Weight = pool.Switches.Weight[i] }); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range o.Topology.Switches {
			pool.Switches.Above = append(pool.Switches.Above, s.Above)
			for _, name := range s.Nodes {
				leaf[name], pool.Switches.Leaf[index[name]] = i, i
			}
		}
		var busy []string
		for _, i := range chance.Perm(nodes)[:chance.IntN(nodes)] {
			busy = append(busy, fmt.Sprintf("n%d", i+1))
			pool.Busy = append(pool.Busy, planner.NodeBusy{Node: i, End: planner.Forever})
		}
		want := 1 + chance.IntN(nodes-len(busy))
		pool.Jobs = []planner.PoolJob{{Job: planner.Job{Profile: planner.Profile{{Duration: 60, Nodes: want}}}, Driver: planner.Lowest}}
		strategy, _ := planner.StrategyByName("noX")
		planned, err := pool.Plan(strategy)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := map[int]bool{}, map[int]bool{}
		weights := make([]int, 3) // those that we took more often than Slurm
		for _, n := range planned[0].Nodes[0] {
			ours[pool.Switches.Leaf[n]] = true
			weights[pool.Switches.Weight[n]]++
		}
		chosen := slurmChooses(t, o, busy, want)
		for _, name := range chosen {
			theirs[leaf[name]] = true
			weights[pool.Switches.Weight[index[name]]]--
		}
		if len(chosen) != want || !slices.Equal(weights, make([]int, 3)) || len(ours) > len(theirs) {
			t.Fatalf("seed %d: %d switches for %d nodes beside %s on %v with weights %v, weights differ by %v, and Slurm takes %s",
				seed, len(ours), want, slurmctl.CompressNodes(busy), o.Topology, pool.Switches.Weight, weights, slurmctl.CompressNodes(chosen))
		}
	}
}

// slurmChooses returns the nodes that the model's Slurm gives a job beside one on the busy nodes.
func slurmChooses(t *testing.T, o slurmsim.Options, busy []string, want int) []string {
	c := slurmsim.New(o)
	defer c.Close()
	jobs := []slurmsim.Job{{Nodes: len(busy), NodeList: busy}, {Nodes: want}}
	var id slurmctl.JobID
	for _, job := range slices.DeleteFunc(jobs, func(j slurmsim.Job) bool { return j.Nodes == 0 }) {
		var err error
		job.Script, job.Lasts, job.TimeLimit = "#!", time.Hour, 2*time.Hour
		if id, err = c.Submit(job); err != nil {
			t.Fatal(err)
		}
	}
	c.Sleep(5 * time.Second)
	j, _ := c.Record(id)
	return j.NodeList
}
