package slurmsim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// resourceModel is a cluster where memory counts, four nodes have GPUs, limits are enforced, and
// the jobs of an urgent partition preempt others.
var resourceModel = slurmsim.Options{Accounting: true, PermitJobExpansion: true, ConsumeMemory: true, DefMemPerCPU: 100, Enforce: true,
	Preempt: "partition_prio", PreemptMode: "REQUEUE",
	Partitions: []slurmsim.Partition{
		{Partition: slurmctl.Partition{Name: "main", Default: true, Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute}, Tier: 1, PreemptMode: "REQUEUE"},
		{Partition: slurmctl.Partition{Name: "urgent", Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute}, Tier: 10, PreemptMode: "OFF"},
	},
	NodeList: gpuNodes()}

func gpuNodes() (nodes []slurmctl.Node) {
	for i := range 8 {
		n := slurmctl.Node{Name: fmt.Sprintf("n%d", i+1), CPUs: 4, Memory: 1000, Weight: 1}
		if i < 4 {
			n.GRES = "gpu:2"
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func resourceCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10 PriorityTier=1 PreemptMode=REQUEUE"},
			{Name: "urgent", Extra: "DefaultTime=10 PriorityTier=10 PreemptMode=OFF"}},
		NodeExtra: map[string]string{"n[1-4]": "Gres=gpu:2"},
		Files:     map[string]string{"gres.conf": slurmtest.GPUs(t, "n[1-4]", 2)},
		ExtraConf: `
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
AccountingStorageEnforce=associations,limits,qos
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
`})
}

func mib(n int64) *int64 { return &n }

var resourceFeatures = []feature{
	{"memory is shared out", func(w *world) {
		first := w.start(slurmsim.Job{Nodes: 1, CPUs: 1, MemoryPerNode: mib(600), NodeList: []string{"n6"}})
		w.until(first, slurmctl.Running)
		w.until(w.start(slurmsim.Job{Nodes: 1, CPUs: 1, MemoryPerNode: mib(300), NodeList: []string{"n6"}}), slurmctl.Running)
		second := w.start(slurmsim.Job{Nodes: 1, CPUs: 1, MemoryPerNode: mib(600), NodeList: []string{"n6"}})
		w.until(second, slurmctl.Pending, "Resources")
		if j := w.job(first); j.MinMemory != 600 {
			w.Errorf("memory %d", j.MinMemory)
		}
		if j := w.job(w.start(slurmsim.Job{Nodes: 1, CPUs: 2})); j.MinMemory != 200 {
			w.Errorf("memory by default %d", j.MinMemory)
		}
		w.must(w.Cancel(w.ctx, first))
		w.until(second, slurmctl.Running)
	}},
	{"generic resources are shared out", func(w *world) {
		gpu := []slurmctl.GRES{{Name: "gpu", Count: 2}}
		for range 4 {
			id := w.start(slurmsim.Job{Nodes: 1, CPUs: 1, GRES: gpu})
			if j := w.until(id, slurmctl.Running); !strings.Contains(j.TRESPer, "gpu:2") {
				w.Errorf("TRESPer %q", j.TRESPer)
			}
		}
		w.until(w.start(slurmsim.Job{Nodes: 1, CPUs: 1, GRES: gpu}), slurmctl.Pending, "Resources")
		if _, err := w.submit(slurmsim.Job{Nodes: 1, CPUs: 1, GRES: []slurmctl.GRES{{Name: "abacus", Count: 1}}}); err == nil {
			w.Error("a resource that there is not is taken")
		}
	}},
	{"limits of a user", func(w *world) {
		defer w.bound(slurmsim.Bound{})
		who := slurmsim.Bound{Account: "proj", User: w.user.Name}
		b := who
		b.MaxJobs = 1
		w.bound(b)
		first := w.start(slurmsim.Job{Nodes: 1})
		w.until(first, slurmctl.Running)
		second := w.start(slurmsim.Job{Nodes: 1})
		w.until(second, slurmctl.Pending, "AssocMaxJobsLimit")
		_, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1})
		if limit, limited := slurmctl.Limited(err); !limited || limit != "AssocMaxJobsLimit" {
			w.Errorf("an allocation: %v", err)
		}
		b = who
		b.GrpNodes = 3
		w.bound(b)
		w.until(second, slurmctl.Running)
		large := w.start(slurmsim.Job{Nodes: 2})
		w.until(large, slurmctl.Pending, "AssocGrpNodeLimit")
		cfg, err := w.Config(w.ctx)
		w.must(err)
		l, err := w.Limits(w.ctx, cfg)
		w.must(err)
		never := l.Never(slurmctl.Subject{User: w.user.Name, UID: w.user.UID, Account: "proj", QOS: "normal", Partition: "main"}, slurmctl.Need{Peak: 4, Least: 1})
		if len(never) != 1 || !strings.Contains(never[0], "may have 3 in all (GrpTRES=node=3)") {
			w.Errorf("what can never be: %q", never)
		}
		b = who
		b.MaxSubmit = 3
		w.bound(b)
		if _, err := w.submit(slurmsim.Job{Nodes: 1}); !errors.Is(err, slurmctl.ErrLimit) {
			w.Errorf("one job too many: %v", err)
		}
	}},
	{"an urgent partition takes nodes from another", func(w *world) {
		low := w.start(slurmsim.Job{Nodes: 8})
		w.until(low, slurmctl.Running)
		equal := w.start(slurmsim.Job{Nodes: 1})
		w.until(equal, slurmctl.Pending, "Resources")
		urgent := w.start(slurmsim.Job{Nodes: 2, Partition: "urgent"})
		w.until(urgent, slurmctl.Running)
		if j := w.job(low); j.State != slurmctl.Pending {
			w.Errorf("the job in its way is %s", j.State)
		}
		cfg, err := w.Config(w.ctx)
		w.must(err)
		l, err := w.Limits(w.ctx, cfg)
		w.must(err)
		if p := l.Preemption(); !p.Yields("main", "normal", "urgent", "normal") || p.Yields("urgent", "normal", "main", "normal") {
			w.Error("who yields to whom is not told")
		}
		another := w.start(slurmsim.Job{Nodes: 8, Partition: "urgent"})
		w.until(another, slurmctl.Pending, "Resources")
	}},
	{"a merge that Slurm refuses for no reason is not the site's doing", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 1, NodeList: []string{"n1"}})
		w.until(base, slurmctl.Running)
		k, err := w.allocate(slurmctl.AllocateRequest{Nodes: 1, NodeList: []string{"n2"}, Exclusive: true, ExpandJob: base})
		w.must(err)
		w.until(k.ID, slurmctl.Running)
		w.is("a merge of GPUs", w.Merge(w.ctx, k.ID), slurmctl.ErrUnspecified)
		if w.WantsAccount() {
			w.Error("the client takes it for a plugin's refusal")
		}
		w.must(w.Cancel(w.ctx, k.ID, base))
		w.must(w.restart()) // Slurm keeps expanders that it could not merge COMPLETING
	}},
}
