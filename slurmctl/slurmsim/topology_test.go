package slurmsim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// treeConf has 24 nodes on switches of different sizes.
const treeConf = `SwitchName=r0 Nodes=n[1-5]
SwitchName=r1 Nodes=n[6-9]
SwitchName=r2 Nodes=n[10-16]
SwitchName=r3 Nodes=n[17-24]
SwitchName=a Switches=r[0-1]
SwitchName=b Switches=r[2-3]
SwitchName=top Switches=a,b
`

var treeModel = slurmsim.Options{NodeList: treeNodes(), Topology: slurmctl.Topology{Switches: []slurmctl.Switch{
	{Name: "r0", Above: 4, Nodes: numbered(1, 5)}, {Name: "r1", Above: 4, Nodes: numbered(6, 9)},
	{Name: "r2", Above: 5, Nodes: numbered(10, 16)}, {Name: "r3", Above: 5, Nodes: numbered(17, 24)},
	{Name: "a", Above: 6}, {Name: "b", Above: 6}, {Name: "top", Above: -1}}}}

func numbered(first, last int) (names []string) {
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

func treeNodes() (nodes []slurmctl.Node) {
	for i, name := range numbered(1, 24) {
		nodes = append(nodes, slurmctl.Node{Name: name, CPUs: 4, Memory: 1000, Weight: 1})
		if i+1 == 3 || i+1 >= 20 && i+1 <= 22 {
			nodes[i].Weight = 7
		}
	}
	return nodes
}

func treeCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{Nodes: 24, ExtraConf: "TopologyPlugin=topology/tree",
		Files: map[string]string{"topology.conf": treeConf}, NodeExtra: map[string]string{"n3,n[20-22]": "Weight=7"}})
}

var treeFeatures = []feature{
	{"the topology is shown", func(w *world) {
		got, err := w.Topology(w.ctx)
		w.must(err)
		cfg, err := w.Config(w.ctx)
		w.must(err)
		if !cfg.HasTopology() || fmt.Sprint(got) != fmt.Sprint(treeModel.Topology) {
			w.Errorf("%v", got)
		}
	}},
	{"jobs start on few switches", func(w *world) {
		model, seed := w.like(treeModel), rand.Uint64()
		w.Logf("seed %d", seed)
		chance := rand.New(rand.NewPCG(seed, 0))
		for range 12 {
			names := numbered(1, 24)
			chance.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			busy := chance.IntN(18)
			job := slurmsim.Job{Nodes: 1 + chance.IntN(24-busy)}
			if chance.IntN(4) == 0 {
				job.NodeList = names[busy : busy+1]
			}
			real, modelled := w.among(names[:busy], job), model.among(names[:busy], job)
			if !slices.Equal(real, modelled) {
				w.Errorf("%d nodes beside %s, with %v: %s, and %s in the model", job.Nodes, slurmctl.CompressNodes(names[:busy]), job.NodeList,
					slurmctl.CompressNodes(real), slurmctl.CompressNodes(modelled))
			}
		}
	}},
	{"a job waits for few switches, until an update ends that", func(w *world) {
		small, large := w.start(slurmsim.Job{Nodes: 12, NodeList: slices.Concat(numbered(1, 2), numbered(6, 7), numbered(10, 13), numbered(17, 20))}), slurmsim.Job{Nodes: 5, Switches: 1, SwitchWait: 4 * time.Minute}
		w.until(small, slurmctl.Running)
		two := w.start(slurmsim.Job{Nodes: 7, Switches: 4, SwitchWait: 4 * time.Minute})
		w.until(two, slurmctl.Running)
		w.must(w.Cancel(w.ctx, two))
		one := w.start(large)
		w.stays(one, slurmctl.Pending)
		r, err := w.Request(w.ctx, one, slurmctl.Config{})
		w.must(err)
		if r.Switches != 1 || r.SwitchWait != 4*time.Minute {
			w.Errorf("%+v", r)
		}
		w.must(w.UpdateJob(w.ctx, one, slurmctl.JobUpdate{Switches: 1, StartNow: true}))
		w.until(one, slurmctl.Running)
	}},
}

var fabricModel = slurmsim.Options{Nodes: 6, Topology: slurmctl.Topology{Switches: []slurmctl.Switch{
	{Name: "s0", Above: -1, Nodes: numbered(1, 2)}, {Name: "s1", Above: -1, Nodes: numbered(3, 5)}}}}

// fabricCluster has two switches without a common one; n6 is on none.
func fabricCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{Nodes: 6, ExtraConf: "TopologyPlugin=topology/tree",
		Files: map[string]string{"topology.conf": "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-5]\n"}})
}

var fabricFeatures = []feature{{"jobs get only nodes below one topmost switch", func(w *world) {
	model := w.like(fabricModel)
	for nodes := range 3 {
		job := slurmsim.Job{Nodes: nodes + 1}
		if real, modelled := w.among(nil, job), model.among(nil, job); !slices.Equal(real, modelled) {
			w.Errorf("%d nodes: %s, and %s in the model", job.Nodes, slurmctl.CompressNodes(real), slurmctl.CompressNodes(modelled))
		}
	}
	w.refuses(4, nil, "configuration") // of nodes or of the topology, by release
	w.refuses(2, []string{"n1", "n3"}, "configuration")
	if on6 := (slurmsim.Job{Nodes: 1, NodeList: []string{"n6"}}); !w.since("26.05") {
		w.refuses(1, on6.NodeList, "configuration")
	} else if got := w.among(nil, on6); !slices.Equal(got, on6.NodeList) {
		w.Errorf("a job of one node on no switch: %v", got)
	}
}}}

// among returns the nodes that a job gets beside a job on the busy nodes.
func (w *world) among(busy []string, job slurmsim.Job) []string {
	w.Helper()
	var ids []slurmctl.JobID
	if len(busy) > 0 {
		ids = append(ids, w.start(slurmsim.Job{Nodes: len(busy), NodeList: busy}))
		w.until(ids[0], slurmctl.Running)
	}
	ids = append(ids, w.start(job))
	nodes := w.until(ids[len(ids)-1], slurmctl.Running).NodeList
	w.must(w.Cancel(w.ctx, ids...))
	w.idle()
	return slices.Sorted(slices.Values(nodes))
}

// idle waits until all nodes are idle.
func (w *world) idle() {
	w.Helper()
	w.eventually("idle nodes", func() error {
		all, _, err := w.Nodes(w.ctx)
		if i := slices.IndexFunc(all, func(n slurmctl.Node) bool { return n.State != "idle" }); err == nil && i >= 0 {
			err = fmt.Errorf("%s is %s", all[i].Name, all[i].State)
		}
		return err
	})
	w.sleep(100 * time.Millisecond)
}
