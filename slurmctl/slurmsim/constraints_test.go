package slurmsim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// rackFeatures lists the features of eight nodes.
var rackFeatures = map[string]string{"n[1-2]": "rack1", "n[3-4]": "rack1,fast", "n[5-6]": "rack2", "n[7-8]": "rack2,fast"}

var rackModel = slurmsim.Options{NodeList: rackNodes()}

func rackNodes() (nodes []slurmctl.Node) {
	for i, name := range numbered(1, 8) {
		n := slurmctl.Node{Name: name, CPUs: 4, Memory: 1000, Weight: 1, Features: []string{fmt.Sprint("rack", 1+i/4)}}
		if i%4 > 1 {
			n.Features = append(n.Features, "fast")
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func rackCluster(t *testing.T) *slurmtest.Cluster {
	extra := map[string]string{}
	for nodes, list := range rackFeatures {
		extra[nodes] = "Feature=" + list
	}
	return slurmtest.Start(t, slurmtest.Options{NodeExtra: extra})
}

var constraintFeatures = []feature{
	{"constraints that cannot be", func(w *world) {
		for _, text := range []string{"[rack1|rack2", "rack1&(fast", "((rack1))", "[rack1]&[rack2|fast]"} {
			if _, err := w.submit(slurmsim.Job{Nodes: 1, Constraint: text}); err == nil || !strings.Contains(err.Error(), "Invalid feature specification") {
				w.Errorf("%s: %v", text, err)
			}
		}
	}},
	{"jobs with constraints start on the same nodes", func(w *world) {
		model, seed := modelOf(w.T, rackModel), rand.Uint64()
		w.Logf("seed %d", seed)
		chance := rand.New(rand.NewPCG(seed, 0))
		for range 10 {
			names := numbered(1, 8)
			chance.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			busy := names[:chance.IntN(3)]
			job := slurmsim.Job{Nodes: 1 + chance.IntN(2), Constraint: []string{"[rack1|rack2]", "[rack2|rack1]", "[rack1|rack2]&fast", "fast&(rack1|rack2)", "rack2|(rack1&fast)", "rack1&fast|rack2", "[rack1*2&rack2*1]"}[chance.IntN(7)]}
			switch {
			case strings.HasSuffix(job.Constraint, "]&fast"):
				job.Nodes = 1
			case strings.Contains(job.Constraint, "*"):
				job.Nodes = 3
			}
			real, modelled := w.among(busy, job), model.among(busy, job)
			if !slices.Equal(real, modelled) {
				w.Errorf("%d nodes with %s beside %v: %v, in the model %v", job.Nodes, job.Constraint, busy, real, modelled)
			}
		}
	}},
	{"a job waits for one alternative", func(w *world) {
		first := w.start(slurmsim.Job{Nodes: 4, NodeList: []string{"n1", "n2", "n5", "n6"}})
		w.until(first, slurmctl.Running)
		either := w.start(slurmsim.Job{Nodes: 3, Constraint: "[rack1|rack2]"})
		w.until(either, slurmctl.Pending, "Resources")
		any := w.start(slurmsim.Job{Nodes: 2, Constraint: "rack1|rack2"})
		w.stays(either, slurmctl.Pending)
		w.must(w.Cancel(w.ctx, any))
		w.must(w.Cancel(w.ctx, first))
		for _, n := range w.until(either, slurmctl.Running).NodeList { // which three depends on whose epilog ended first
			if !slices.Contains(numbered(1, 4), n) {
				w.Errorf("it is on %s, which has another feature", n)
			}
		}
	}},
	{"a job waits for its nodes of each feature", func(w *world) {
		first := w.start(slurmsim.Job{Nodes: 3, NodeList: []string{"n5", "n6", "n7"}})
		w.until(first, slurmctl.Running)
		each := w.start(slurmsim.Job{Nodes: 3, Constraint: "[rack1*1&rack2*2]"})
		w.until(each, slurmctl.Pending, "Resources")
		w.stays(each, slurmctl.Pending)
		w.must(w.Cancel(w.ctx, first))
		list := w.until(each, slurmctl.Running).NodeList
		rack2 := slices.DeleteFunc(slices.Clone(list), func(n string) bool { return slices.Contains(numbered(1, 4), n) })
		if len(list) != 3 || len(rack2) != 2 {
			w.Errorf("it is on %v", list)
		}
	}},
}
