package slurmsim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// blocksConf has blocks of different sizes; n27 and n28 are outside of all.
const blocksConf = `BlockName=b0 Nodes=n[1-5]
BlockName=b1 Nodes=n[6-9]
BlockName=b2 Nodes=n[10-14]
BlockName=b3 Nodes=n[15-18]
BlockName=b4 Nodes=n[19-22]
BlockName=b5 Nodes=n[23-26]
`

// blockModel has nodes of more weight on b0, b3, and b4.
func blockModel(levels ...int) slurmsim.Options {
	o := slurmsim.Options{Topology: slurmctl.Topology{Blocks: true, BlockSize: 4, Levels: levels, Switches: []slurmctl.Switch{
		{Name: "b0", Above: -1, Nodes: numbered(1, 5)}, {Name: "b1", Above: -1, Nodes: numbered(6, 9)}, {Name: "b2", Above: -1, Nodes: numbered(10, 14)},
		{Name: "b3", Above: -1, Nodes: numbered(15, 18)}, {Name: "b4", Above: -1, Nodes: numbered(19, 22)}, {Name: "b5", Above: -1, Nodes: numbered(23, 26)}}}}
	for _, name := range numbered(1, 28) {
		weight := 1
		if slices.Contains([]string{"n3", "n18", "n19", "n20"}, name) {
			weight = 7
		}
		o.NodeList = append(o.NodeList, slurmctl.Node{Name: name, CPUs: 4, Memory: 1000, Weight: weight})
	}
	return o
}

func blockCluster(sizes string) func(*testing.T) *slurmtest.Cluster {
	return func(t *testing.T) *slurmtest.Cluster {
		return slurmtest.Start(t, slurmtest.Options{Nodes: 28, ExtraConf: "TopologyPlugin=topology/block",
			Files: map[string]string{"topology.conf": blocksConf + "BlockSizes=" + sizes + "\n"}, NodeExtra: map[string]string{"n3,n[18-20]": "Weight=7"}})
	}
}

// startsOnBlocks compares on which nodes random jobs start beside others with the model.
func (w *world) startsOnBlocks(levels ...int) {
	model, seed := w.like(blockModel(levels...)), rand.Uint64()
	w.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for range 14 {
		names := numbered(1, 26)
		chance.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		busy := chance.IntN(14)
		job := slurmsim.Job{Nodes: 1 + chance.IntN(26-busy)}
		if chance.IntN(4) == 0 {
			few := 1 + chance.IntN(min(2, job.Nodes))
			job.NodeList = names[busy : busy+few]
		}
		modelled := model.beside(names[:busy], job, 0)
		patience := 4 * time.Second
		if len(modelled) > 0 {
			patience = time.Minute
		}
		if real := w.beside(names[:busy], job, patience); !slices.Equal(real, modelled) {
			w.Errorf("%d nodes beside %s, with %v: %s, and %s in the model", job.Nodes, slurmctl.CompressNodes(names[:busy]), job.NodeList,
				slurmctl.CompressNodes(real), slurmctl.CompressNodes(modelled))
		}
	}
}

// blockFeatures returns what is tried on a site whose larger blocks are made of so many base blocks.
func blockFeatures(levels ...int) []feature {
	return []feature{
		{"blocks are shown", func(w *world) {
			got, err := w.Topology(w.ctx)
			w.must(err)
			cfg, err := w.Config(w.ctx)
			w.must(err)
			if want := blockModel(levels...).Topology; !cfg.HasTopology() || fmt.Sprint(got) != fmt.Sprint(want) {
				w.Errorf("%v, want %v", got, want)
			}
		}},
		{"jobs start on blocks, or wait", func(w *world) { w.startsOnBlocks(levels...) }},
		{"nodes outside of all blocks are for jobs that may have no others", func(w *world) {
			if got := w.beside(numbered(1, 26), slurmsim.Job{Nodes: 2}, time.Minute); !slices.Equal(got, numbered(27, 28)) {
				w.Errorf("beside jobs on all blocks: %v", got)
			}
			if got := w.beside(numbered(1, 25), slurmsim.Job{Nodes: 2}, 4*time.Second); got != nil {
				w.Errorf("beside a free node in a block: %v", got)
			}
		}},
		{"jobs that could never start are refused", func(w *world) {
			outside := "Requested topology configuration"
			if w.since("26.05") {
				outside = "Requested node configuration"
			}
			w.refuses(2, []string{"n26", "n27"}, outside)
			w.refuses(2, []string{"n1", "n26"}, "Requested node configuration")
			w.refuses(27, nil, "Requested node configuration")
		}},
		{"a job of one node gets no node outside of all blocks, and from 26.05 on any", (*world).oneNodeOnBlocks},
		{"from 26.05 on, Slurm searches again without a node", func(w *world) { w.searchesAgain(levels...) }},
		{"Slurm gives up at a base block without a free node", func(w *world) {
			busy, nodes := numbered(6, 9), 9
			if levels[0] == 4 {
				busy, nodes = numbered(1, 5), 18
			}
			modelled := w.like(blockModel(levels...)).beside(busy, slurmsim.Job{Nodes: nodes}, 0)
			if got := w.beside(busy, slurmsim.Job{Nodes: nodes}, 6*time.Second); !slices.Equal(got, modelled) {
				w.Errorf("%s, and %s in the model", slurmctl.CompressNodes(got), slurmctl.CompressNodes(modelled))
			}
			if levels[0] == 4 && modelled != nil {
				w.Errorf("the model starts it on %s", slurmctl.CompressNodes(modelled))
			}
		}},
		{"a job larger than the largest block gets some sets of nodes, and not others", func(w *world) {
			for free, starts := range largeJobs[levels[0]] {
				only, err := slurmctl.ExpandNodes(free)
				w.must(err)
				patience := 6 * time.Second
				if starts {
					patience = time.Minute
				}
				busy := slices.DeleteFunc(numbered(1, 26), func(name string) bool { return slices.Contains(only, name) })
				if got := w.beside(busy, slurmsim.Job{Nodes: len(only)}, patience); (got != nil) != starts {
					w.Errorf("with %s free, it starts on %q, want %v", free, slurmctl.CompressNodes(got), starts)
				}
			}
		}},
	}
}

// largeJobs holds, by of how many base blocks the largest block is made, sets of nodes, and whether Slurm starts a job that
// needs all of them.
var largeJobs = map[int]map[string]bool{
	2: {
		"n[1-2,4-5,10-12,15-16]": true,  // first from b2 and b3
		"n[10-14,21-24]":         false, // first from b2, and then it ends at b3
		"n[10-14,21-25]":         false, // of as many nodes, first from b2, which has more than b4 and b5
		"n[10-14,21-26]":         true,
		"n[1-2,4-5,19-20,23-26]": true, // n19 and n20 are the heaviest
	},
	4: {
		"n[1-2,4-17]":            true,  // within one block of four
		"n[1-2,4-18]":            true,  // the two base blocks after them are too few to count
		"n[1-2,4-14,15-17,21]":   false, // so a node there does not count
		"n[1-9,19-26]":           false,
		"n[1-2,4-7,10-13,19-26]": false,
	},
}

// searchedAgain holds, by of how many base blocks the largest block is made, free nodes, and the size of a job for which Slurm
// finds nodes among them only if it leaves some out.
var searchedAgain = map[int]struct {
	free  string
	nodes int
}{2: {"n[1-4,11-13,15-20,25-26]", 10}, 4: {"n[2-3,7,11-17,19,23-26]", 9}}

// oneNodeOnBlocks checks which node a job of one node gets.
func (w *world) oneNodeOnBlocks() {
	if !w.since("26.05") {
		w.refuses(1, []string{"n27"}, "Requested topology configuration")
		return
	}
	for _, c := range []struct {
		busy, on []string
		want     string
	}{{nil, []string{"n27"}, "n27"}, {numbered(1, 26), nil, "n27"}, {[]string{"n1"}, nil, "n2"}} {
		if got := w.beside(c.busy, slurmsim.Job{Nodes: 1, NodeList: c.on}, time.Minute); !slices.Equal(got, []string{c.want}) {
			w.Errorf("beside %s, with %v: %v, want %s", slurmctl.CompressNodes(c.busy), c.on, got, c.want)
		}
	}
}

// searchesAgain compares with the model what a job gets of the nodes of searchedAgain.
func (w *world) searchesAgain(levels ...int) {
	free, nodes := searchedAgain[levels[0]].free, searchedAgain[levels[0]].nodes
	only, err := slurmctl.ExpandNodes(free)
	w.must(err)
	busy, patience := slices.DeleteFunc(numbered(1, 26), func(name string) bool { return slices.Contains(only, name) }), 6*time.Second
	if w.since("26.05") {
		patience = time.Minute
	}
	modelled, got := w.like(blockModel(levels...)).beside(busy, slurmsim.Job{Nodes: nodes}, 0), w.beside(busy, slurmsim.Job{Nodes: nodes}, patience)
	if !slices.Equal(got, modelled) || (got != nil) != w.since("26.05") {
		w.Errorf("%d nodes of %s: %q, and %q in the model", nodes, free, slurmctl.CompressNodes(got), slurmctl.CompressNodes(modelled))
	}
}

// refuses checks that Slurm refuses a job, and how.
func (w *world) refuses(nodes int, on []string, says string) {
	w.Helper()
	id, err := w.submit(slurmsim.Job{Nodes: nodes, NodeList: on, TimeLimit: time.Minute})
	if err == nil || !strings.Contains(err.Error(), says+" is not available") {
		w.Errorf("%d nodes on %v: %d, %v, want %q", nodes, on, id, err, says)
	}
}

// since reports whether this Slurm is of some release or a later one.
func (w *world) since(release string) bool {
	w.Helper()
	version, err := w.Version(w.ctx)
	w.must(err)
	return version >= release // both begin with YY.MM
}

// like returns a model of some options that is of the same release as this world.
func (w *world) like(o slurmsim.Options) *world {
	w.Helper()
	var err error
	o.Version, err = w.Version(w.ctx)
	w.must(err)
	return modelOf(w.T, o)
}

// beside returns the nodes that a job gets in some time beside a job on each of the busy nodes, nil, or that it is refused.
func (w *world) beside(busy []string, job slurmsim.Job, patience time.Duration) (nodes []string) {
	w.Helper()
	var ids []slurmctl.JobID
	for _, name := range busy {
		ids = append(ids, w.start(slurmsim.Job{Nodes: 1, NodeList: []string{name}}))
	}
	for _, id := range ids {
		w.until(id, slurmctl.Running)
	}
	job.TimeLimit = 20 * time.Minute
	id, err := w.submit(job)
	if err != nil && !strings.Contains(err.Error(), "is not available") {
		w.Fatal(err)
	} else if err != nil {
		if len(ids) > 0 {
			w.must(w.Cancel(w.ctx, ids...))
		}
		w.idle()
		return []string{"refused"}
	}
	for end := w.now().Add(max(patience, 4*time.Second)); nodes == nil && w.now().Before(end); w.sleep(100 * time.Millisecond) {
		if j := w.job(id); j.State == slurmctl.Running {
			nodes = slices.Sorted(slices.Values(j.NodeList))
		}
	}
	w.must(w.Cancel(w.ctx, append(ids, id)...))
	w.idle()
	return nodes
}
