package slurmtest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestSelectLinear(t *testing.T) {
	cpus := func(selectType string) string {
		c := Start(t, Options{Nodes: 1, SelectType: selectType})
		return run(t, c, c.Users()[0], "srun", "-n1", "sh", "-c", "echo $SLURM_JOB_CPUS_PER_NODE")
	}
	if linear, tres := cpus("linear"), cpus("cons_tres"); linear != "4" || tres != "1" {
		t.Errorf("a task gets %s CPUs of a node with linear and %s with cons_tres, want 4 and 1", linear, tres)
	}
}

func TestPrologFlagsContain(t *testing.T) {
	c := Start(t, Options{Nodes: 2, PrologFlags: "Contain"})
	job := run(t, c, c.Users()[0], "sbatch", "--parsable", "-N2", "--wrap", "srun sleep 600")
	eventually(t, "the job has an extern step", func() bool {
		return slices.Contains(strings.Fields(run(t, c, Root, "squeue", "-h", "-s", "-o", "%i")), job+".extern")
	})
	run(t, c, c.Users()[0], "scancel", job)
	clean(t, c)
}

// TestConfiguration checks how Slurm reads the options.
func TestConfiguration(t *testing.T) {
	c := Start(t, Options{
		Nodes: 4, CPUs: 2, MemoryMB: 500,
		PriorityType:        "multifactor",
		PermitJobExpansion:  true,
		SchedulerParameters: "bf_interval=7,defer",
		NodeExtra:           map[string]string{"n[1-2]": "Feature=big", "n2,n[4]": "RealMemory=600 Weight=5"},
		Partitions: []Partition{
			{Name: "small", Nodes: "n[3-4]", MaxTime: "30"},
			{Name: "all", Default: true, Extra: "OverSubscribe=EXCLUSIVE"},
		},
		ExtraConf: "KillWait=9\n# a comment\n\nMinJobAge=77\n",
	})
	nodes := run(t, c, Root, "sinfo", "-h", "-N", "-p", "all", "-o", "%N %c %m %f %w")
	if want := "n1 2 500 big 1\nn2 2 600 big 5\nn3 2 500 (null) 1\nn4 2 600 (null) 5"; nodes != want {
		t.Errorf("nodes are\n%s\nwant\n%s", nodes, want)
	}
	partitions := run(t, c, Root, "sinfo", "-h", "-o", "%P %l %N %h")
	if want := "small 30:00 n[3-4] NO\nall* infinite n[1-4] EXCLUSIVE"; partitions != want {
		t.Errorf("partitions are\n%s\nwant\n%s", partitions, want)
	}
	config := func(name string) string {
		for line := range strings.Lines(run(t, c, Root, "scontrol", "show", "config")) {
			if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == name {
				return strings.TrimSpace(value)
			}
		}
		return "missing"
	}
	check := func(name, want string) {
		t.Helper()
		if got := config(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	check("PriorityType", "priority/multifactor")
	check("KillWait", "9 sec")
	check("MinJobAge", "77 sec")
	check("SchedulerParameters", "bf_interval=7,defer,permit_job_expansion,batch_sched_delay=1,sched_interval=1,sched_min_interval=100000")
	must.OK(t, c.SetSchedulerParameters(t.Context(), "disable_job_shrink"))
	check("SchedulerParameters", "disable_job_shrink,permit_job_expansion,"+shortIntervals)
	if err := c.Reconfigure(t.Context(), func(o *Options) {
		o.SlurmIntervals, o.PermitJobExpansion, o.SchedulerParameters = true, false, ""
	}); err != nil {
		t.Fatal(err)
	}
	check("SchedulerParameters", "(null)")
	if got := config("SLURM_VERSION"); got != c.Version() {
		t.Errorf("Version is %q, Slurm's is %q", c.Version(), got)
	}
}

// TestOwnFiles checks GRES with links as devices, a program named in slurm.conf, and a node that
// reports a boot.
func TestOwnFiles(t *testing.T) {
	c := Start(t, Options{
		Nodes:     2,
		NodeExtra: map[string]string{"n1": "Gres=gpu:2"},
		Files: map[string]string{
			"gres.conf": "AutoDetect=off\nNodeName=n1 Name=gpu File=@DIR@/gpu[0-1]\n",
			"prolog.sh": "#!/bin/sh\nexec touch @DIR@/state/prolog-ran\n",
		},
		Links:     map[string]string{"gpu0": "/dev/zero", "gpu1": "/dev/zero"},
		ExtraConf: "GresTypes=gpu\nPrologSlurmctld=@DIR@/prolog.sh\n",
	})
	if out := run(t, c, c.Users()[0], "srun", "--gpus=2", "sh", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"); out != "n1 0,1" {
		t.Errorf("a job with 2 GPUs prints %q", out)
	}
	if _, err := os.Stat(c.Dir() + "/state/prolog-ran"); err != nil {
		t.Errorf("PrologSlurmctld: %v", err)
	}
	if err := c.Reconfigure(t.Context(), func(o *Options) { o.SchedulerParameters = "defer" }); err != nil {
		t.Error(err)
	}
	must.OK(t, c.StopNode(t.Context(), "n2"))
	must.OK(t, c.StartNode(t.Context(), "n2", "-b"))
	clean(t, c)
}

func TestBadOptions(t *testing.T) {
	full := t.TempDir()
	for want, o := range map[string]Options{
		"Options.Nodes is -1":          {Nodes: -1},
		"not empty":                    {Dir: full + "/.."},
		"too long a path":              {Dir: "/tmp/" + strings.Repeat("x", 80)},
		"is not Name=value":            {NodeExtra: map[string]string{"n1": "big"}},
		"twice":                        {NodeExtra: map[string]string{"n1": "Weight=1", "n[1-2]": "Weight=2"}},
		"n9 is not within n[1-8]":      {NodeExtra: map[string]string{"n9": "Weight=1"}},
		"x1 is not within n[1-8]":      {Partitions: []Partition{{Name: "p", Nodes: "x1"}}},
		"slurmd n1 ended at its start": {Nodes: 1, ExtraConf: "SlurmdSpoolDir=/dev/null/%n"},
		"slurmctld ended at its start: exit status 1\n--- slurmctld.log": {ExtraConf: "SchedulerType=sched/nonsense"},
	} {
		c, err := Boot(t.Context(), o)
		if err == nil {
			c.Stop(t.Context())
			t.Errorf("%+v boots", o)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestExpandNodes(t *testing.T) {
	for list, want := range map[string][]int{
		"n1": {1}, "n[1-3]": {1, 2, 3}, "n[1-2,7],n9": {1, 2, 7, 9}, "n10,n[3]": {10, 3}, "ALL": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	} {
		if got, err := expandNodes(list, 10); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v; want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"x", "n", "n0", "n11", "n[1-", "n[2-1]", "n[1]n2", "n1-2-3", "n[]", "m1"} {
		if got, err := expandNodes(list, 10); err == nil {
			t.Errorf("%q is %v, want an error", list, got)
		}
	}
}

func TestMissingPackagesAreNamed(t *testing.T) {
	if pkgs := Missing(); len(pkgs) != 0 {
		t.Fatalf("packages %v are missing on this machine: nothing here can pass", pkgs)
	}
	saved := accountingParts
	defer func() { accountingParts = saved }()
	accountingParts = []part{{"slurmdbd", []string{"/nowhere/slurmdbd"}}, {"mariadb-server", []string{"/nowhere/a", "/nowhere/*/b"}}, {"mariadb-server", []string{"/nowhere/c"}}}
	if err := checkInstalled(false); err != nil {
		t.Errorf("without accounting: %v", err)
	}
	_, err := Boot(t.Context(), Options{Accounting: true})
	if want := "apt-get install -y --no-install-recommends slurmdbd mariadb-server"; err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Boot says %v, want one line that ends in %q", err, want)
	}
}
