package slurmctl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseGRES(t *testing.T) {
	for text, want := range map[string][]GRES{
		"":                           nil,
		"(null)":                     nil,
		"N/A":                        nil,
		"NONE":                       nil,
		"gpu":                        {{"gpu", "", 1}},
		"gpu:2":                      {{"gpu", "", 2}},
		"gpu:a100":                   {{"gpu", "a100", 1}},
		"gpu:a100:4(S:0-1),nvme:1":   {{"gpu", "a100", 4}, {"nvme", "", 1}},
		"gpu:a100:2(S:0,2),gpu:v100": {{"gpu", "a100", 2}, {"gpu", "v100", 1}},
		"gres:gpu:2,gres:tok:1":      {{"gpu", "", 2}, {"tok", "", 1}},
		"gres/gpu:a100=2":            {{"gpu", "a100", 2}},
		"gres/gpu=8":                 {{"gpu", "", 8}},
		"gpu:(null):4(IDX:0-3)":      {{"gpu", "", 4}},
		"bandwidth:lustre:no_consume:4G": {
			{"bandwidth", "lustre", 4 << 30}},
		"craynetwork:4": {{"craynetwork", "", 4}},
	} {
		got, err := ParseGRES(text)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{",", "gpu:a:b:c:2", "gpu;x:2", "--gpu:2", "gpu:a b:2"} {
		if got, err := ParseGRES(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // no input crashes it, and the result is safe to pass on
		all, err := ParseGRES(rapid.String().Draw(t, "text"))
		if err == nil && len(all) > 0 && checkGRES(JoinGRES(all)) != nil {
			t.Fatal(all)
		}
	})
}

func TestHasGRES(t *testing.T) {
	for _, c := range []struct {
		node, wanted string
		want         bool
	}{
		{"", "", true},
		{"gpu:4", "", true},
		{"", "gpu:1", false},
		{"gpu:4", "gpu:4", true},
		{"gpu:4", "gpu:5", false},
		{"gpu:a100:2,gpu:v100:2", "gpu:4", true},
		{"gpu:a100:2,gpu:v100:2", "gpu:a100:3", false},
		{"gpu:a100:2,gpu:v100:2", "gpu:3,gpu:a100:2", false},
		{"gpu:a100:2,gpu:v100:2", "gpu:2,gpu:a100:2", true},
		{"gpu:4(S:0-1),nvme:1", "gpu:4,nvme:1", true},
		{"nvme:1", "gpu:1", false},
	} {
		node, err1 := ParseGRES(c.node)
		wanted, err2 := ParseGRES(c.wanted)
		if got := HasGRES(node, wanted); got != c.want || err1 != nil || err2 != nil {
			t.Errorf("%q on %q: %v", c.wanted, c.node, got)
		}
	}
}

func TestGRESPerNode(t *testing.T) {
	for name, c := range map[string]struct {
		r    JobRequest
		want string
		bad  string
	}{
		"nothing":            {},
		"per node":           {r: JobRequest{TRESPerNode: "gres:gpu:2,gres:tok:1"}, want: "gpu:2,tok:1"},
		"per node and job":   {r: JobRequest{TRESPerNode: "gres:gpu:2", TRESPerJob: "gres:gpu:4"}, want: "gpu:2"},
		"per job":            {r: JobRequest{TRESPerJob: "gres:gpu:a100:4"}, want: "gpu:a100:2"},
		"per job, uneven":    {r: JobRequest{TRESPerJob: "gres:gpu:3"}, bad: "does not divide by the 2 nodes"},
		"per task":           {r: JobRequest{TRESPerTask: "gres:gpu:1", TasksPerNode: 3}, want: "gpu:3"},
		"per task, of some":  {r: JobRequest{TRESPerTask: "gres:gpu:1"}, bad: "--ntasks-per-node"},
		"per socket":         {r: JobRequest{TRESPerSocket: "gres:gpu:1"}, bad: "per socket"},
		"not to be read":     {r: JobRequest{TRESPerNode: "gres:gpu;:1"}, bad: "not understood"},
		"the newer notation": {r: JobRequest{TRESPerNode: "gres/gpu:2"}, want: "gpu:2"},
		"a part of a GPU":    {r: JobRequest{TRESPerNode: "gres:shard:1"}, bad: "shard:1 is part of a GPU"},
		"the same, per job":  {r: JobRequest{TRESPerJob: "gres:mps:100"}, bad: "mps:50 is part of a GPU"},
	} {
		got, err := c.r.GRESPerNode(2)
		if JoinGRES(got) != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestMemoryPerCPU checks that no job name or WCKey is mistaken for the field after it.
func TestMemoryPerCPU(t *testing.T) {
	line := func(name, wckey string) string {
		return "JobId=2 JobName=" + name + " UserId=u(5) Account=a QOS=normal WCKey=" + wckey + " JobState=RUNNING CoreSpec=* MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0 Comment= MinMemoryNode=1\n"
	}
	for _, name := range []string{"wrap", "x MinMemoryNode=7M MinTmpDiskNode=0", "a\n JobName=b UserId=", " ", "x JobName=y"} {
		for _, wckey := range []string{"k", "k MinMemoryNode=8M"} {
			if perCPU, err := memoryPerCPU(line(name, wckey), name, wckey); err != nil || !perCPU {
				t.Errorf("name %q, WCKey %q: %v, %v", name, wckey, perCPU, err)
			}
		}
	}
	if _, err := memoryPerCPU(line("a", "k"), "b", "k"); err == nil {
		t.Error("another job's name is taken")
	}
}

func TestDefaultMemory(t *testing.T) {
	cluster := Config{Values: map[string]string{"DefMemPerNode": "UNLIMITED", "DefMemPerCPU": "50"}}
	for text, want := range map[string][2]int64{
		"PartitionName=a DefMemPerCPU=100 MaxMemPerNode=UNLIMITED": {0, 100},
		"PartitionName=a DefMemPerNode=700 MaxMemPerCPU=800":       {700, 0},
		"PartitionName=a DefMemPerNode=UNLIMITED":                  {0, 50},
		"PartitionName=a DefMemPerCPU=0":                           {0, 0},
	} {
		if perNode, perCPU := defaultMemory(text, cluster); [2]int64{perNode, perCPU} != want {
			t.Errorf("%s: %d, %d", text, perNode, perCPU)
		}
	}
}

// TestMoreNodes checks that requests are repeated, and memory only if Slurm would not give the same
// by default.
func TestMoreNodes(t *testing.T) {
	spec := 2
	r := JobRequest{Account: "a", QOS: "q", Partition: "p", WCKey: "*w", Features: "f&g", Network: "sn", CPUsPerTask: 2, TasksPerNode: 2,
		ThreadsPerCore: 1, CoreSpec: &spec, Licenses: "matlab:1"}
	for want, change := range map[string]func(*JobRequest){
		"":                   func(*JobRequest) {},
		"--mem=700M":         func(r *JobRequest) { r.MemoryPerNode = 700 },
		"--mem-per-cpu=300M": func(r *JobRequest) { r.MemoryPerCPU, r.DefaultMemoryPerCPU = 300, 100 },
		"--mem-per-gpu=100M": func(r *JobRequest) { r.MemoryPerGPU, r.DefaultMemoryPerCPU = 100, 100 },
		"--mem=0M":           func(r *JobRequest) { r.DefaultMemoryPerCPU = 100 },
	} {
		r := r
		change(&r)
		args, err := r.More(3, []GRES{{"gpu", "", 4}}).args()
		all := strings.Join(args, " ")
		if err != nil || want != "" && !strings.Contains(all, want) || want == "" && strings.Contains(all, "--mem") || strings.Count(all, "--mem") > 1 {
			t.Errorf("%q: %s (%v)", want, all, err)
		}
		for _, option := range []string{"--nodes=3", "--account=a", "--qos=q", "--partition=p", "--wckey=w", "--constraint=f&g", "--network=sn",
			"--cpus-per-task=2", "--ntasks-per-node=2", "--threads-per-core=1", "--core-spec=2", "--gres=gpu:4"} {
			if !strings.Contains(all, option) {
				t.Errorf("no %s in %s", option, all)
			}
		}
		if strings.Contains(all, "matlab") {
			t.Error("licences are asked for twice")
		}
	}
	r.MemoryPerCPU, r.DefaultMemoryPerCPU = 100, 100
	if args, _ := r.More(1, nil).args(); strings.Contains(strings.Join(args, " "), "--mem") {
		t.Error("the partition's own memory is asked for")
	}
}

func TestCPUsAreNoGRES(t *testing.T) {
	var r JobRequest
	if got := r.tres("cpu=2,gres/gpu:1"); got != "gres/gpu:1" || r.CPUsPerTask != 2 {
		t.Errorf("%q, %d CPUs", got, r.CPUsPerTask)
	}
	if err := setCoreSpec(&r, "3 Threads"); err != nil || r.ThreadSpec == nil || *r.ThreadSpec != 3 || r.CoreSpec != nil {
		t.Error(r, err)
	}
	if before := r; setCoreSpec(&r, "N/A") != nil || !reflect.DeepEqual(before, r) {
		t.Error(r)
	}
}
