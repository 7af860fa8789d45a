package slurmsim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestReadConf reads parameters that the model knows.
func TestReadConf(t *testing.T) {
	o, err := slurmsim.ReadConf(strings.NewReader(`
ClusterName=a SlurmctldHost=b
KillWait=60 # seconds
SchedulerParameters=bf_window=2880,sched_interval=30,defer,max_rpc_cnt=100
PrologFlags=Alloc,Contain
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=14-0
NodeName=DEFAULT Sockets=2 CoresPerSocket=8 ThreadsPerCore=2
NodeName=a[1-2] RealMemory=5000 Weight=3 Feature=x,y
NodeName=b1 CPUs=4
PartitionName=DEFAULT DefaultTime=30
PartitionName=p Nodes=a[1-2] MaxTime=2-12:00:00 MinNodes=1 MaxNodes=2 PriorityTier=5 OverSubscribe=EXCLUSIVE
PartitionName=q Nodes=ALL Default=YES State=DOWN`))
	if err != nil {
		t.Fatal(err)
	}
	part := func(p slurmctl.Partition, tier int) slurmsim.Partition {
		return slurmsim.Partition{Partition: p, Tier: tier}
	}
	want := slurmsim.Options{KillWait: time.Minute, BackfillInterval: 30 * time.Second, BackfillWindow: 48 * time.Hour, SchedInterval: 30 * time.Second, Defer: true,
		Contain: true, MultifactorAge: 1000, MaxAge: 14 * 24 * time.Hour,
		NodeList: []slurmctl.Node{{Name: "a1", CPUs: 32, Memory: 5000, Weight: 3, Features: []string{"x", "y"}}, {Name: "a2", CPUs: 32, Memory: 5000, Weight: 3, Features: []string{"x", "y"}},
			{Name: "b1", CPUs: 4, Memory: 1, Weight: 1}},
		Partitions: []slurmsim.Partition{
			part(slurmctl.Partition{Name: "p", Up: true, MaxTime: 60 * time.Hour, DefaultTime: 30 * time.Minute, MinNodes: 1, MaxNodes: 2, OverSubscribe: "EXCLUSIVE", Nodes: []string{"a1", "a2"}}, 5),
			part(slurmctl.Partition{Name: "q", Default: true, MaxTime: slurmctl.Unlimited, DefaultTime: 30 * time.Minute}, 1)}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	slurmsim.New(o).Close()
}

// TestReadConfRefuses checks that one error names everything that the model does not know, and what
// is wrong on its line.
func TestReadConfRefuses(t *testing.T) {
	const rest = "NodeName=n1\nPartitionName=p Nodes=n1\n"
	_, err := slurmsim.ReadConf(strings.NewReader("GresTypes=gpu\nFrobnicate=1\nInclude other.conf\nTopologyPlugin=topology/tree\nPriorityWeightQOS=5\nSelectTypeParameters=CR_Core_Memory\n" + rest))
	unknown := new(slurmsim.NotModelled)
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
	want := []string{"Frobnicate", "GresTypes", "Include", "PriorityWeightQOS=5", "SelectTypeParameters=cr_core_memory", "TopologyPlugin=topology/tree"}
	if diff := cmp.Diff(want, unknown.Parameters); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if _, err := slurmsim.ReadConf(strings.NewReader("GresTypes=gpu\n"+rest), "grestypes"); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"NodeName=n[1-\nPartitionName=p\n":               "line 1: ",
		"Licenses=a:0\n" + rest:                          `line 1: Licenses=a:0: "a:0" is no count of a licence`,
		"KillWait=soon\n" + rest:                         "line 1: KillWait=soon: want a number",
		"PartitionName=p\n":                              "there is no NodeName line",
		"NodeName=n1\n":                                  "there is no PartitionName line",
		"NodeName=n1\nPartitionName=p Nodes=n2\n":        "partition p: there is no node n2",
		"NodeName=n1\nNodeName=n1\nPartitionName=p\n":    "line 2: node n1 is there twice",
		rest + "PartitionName=q MaxTime=ages":            "line 3: ",
		rest + "SchedulerParameters=bf_interval=often\n": `line 3: SchedulerParameters=bf_interval=often: bf_interval=often: "often" is no number`,
		rest + `ClusterName="a`:                          "line 3: ClusterName: a quotation mark is missing",
		rest + "ClusterName=a\\":                         "line 3: it goes on after the end",
	} {
		if _, err := slurmsim.ReadConf(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

// FuzzReadConf checks that the model accepts everything that is read.
func FuzzReadConf(f *testing.F) {
	f.Add("NodeName=n[1-4] CPUs=2\nPartitionName=p Nodes=ALL\nSchedulerParameters=bf_interval=0,sched_interval=0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := slurmsim.ReadConf(strings.NewReader(text), "all"); err == nil && len(o.NodeList) < 1000 {
			slurmsim.New(o).Close()
		}
	})
}
