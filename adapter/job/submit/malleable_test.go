package submit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// still is a cluster that only tells what it has.
type still struct {
	version string
	values  map[string]string
	dead    bool
}

func (c still) Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	if c.dead {
		return nil, nil, slurmctl.ErrUnreachable
	}
	var nodes []slurmctl.Node
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"} {
		nodes = append(nodes, slurmctl.Node{Name: name})
	}
	names, _ := slurmctl.ExpandNodes("n[1-8]")
	return nodes, []slurmctl.Partition{
		{Name: "main", Default: true, Nodes: names, DefaultTime: 30 * time.Minute, MaxTime: slurmctl.Unlimited},
		{Name: "short", Nodes: names[:3], DefaultTime: slurmctl.Unlimited, MaxTime: 20 * time.Minute},
		{Name: "endless", Nodes: names, DefaultTime: slurmctl.Unlimited, MaxTime: slurmctl.Unlimited, MaxNodes: 5},
	}, nil
}

func (c still) Config(context.Context) (slurmctl.Config, error) {
	return slurmctl.Config{Version: c.version, Values: c.values}, nil
}
func (still) Licenses(context.Context) ([]slurmctl.LicenseStock, error) { return nil, nil }
func (still) Topology(context.Context) (slurmctl.Topology, error)       { return slurmctl.Topology{}, nil }
func (still) Cancel(context.Context, ...slurmctl.JobID) error           { return nil }
func (still) Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return nil, nil
}
func (still) BatchScript(context.Context, slurmctl.JobID) (string, error) { return "", nil }

// TestMalleable checks what is submitted for a malleable job, and the messages.
func TestMalleable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"job.sh":     "#!/bin/sh\ntrue\n",
		"bounds.sh":  "#!/bin/sh\n#EVO --profile=2-4@10m,3-6@30m --size=pow2 --grace=1m\ntrue\n",
		"whole.sh":   "#!/bin/sh\n#EVO --malleable=2-6 --speedup=times.txt\n#SBATCH -t 15\ntrue\n",
		"molds.sh":   "#!/bin/sh\n#EVO --moldable=4@2h,8@1h\ntrue\n",
		"times.txt":  "# nodes, time\n1 10m\n2 5m30s\n4 200s\n",
		"mixed.txt":  "1 1\n2 10m\n",
		"points.txt": strings.Repeat("x", 1) + "\n",
		"large.txt":  strings.Repeat("# nothing\n", 7000),
		"long.sh":    "#!/bin/sh\n#EVO --profile=" + strings.TrimSuffix(strings.Repeat("2-4@10m,1-5@20m,", 80), ",") + "\ntrue\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ words, comment, time, says string }{
		{"--malleable=2-6 -t 60 job.sh", "evo:v2;p=2-6@1h;;", "-t 60", ""},
		{"--malleable=2-6 job.sh", "evo:v2;p=2-6@30m;;", "--time=30", ""},
		{"--malleable=2-3 -p short job.sh", "evo:v2;p=2-3@20m;;", "--time=20", ""},
		{"--malleable=2-3 -p main,short job.sh", "evo:v2;p=2-3@20m;;", "--time=20", ""},
		{"--malleable=3-20 --size=pow2 --grace=45s --speedup=amdahl:0.9 job.sh", "evo:v2;p=4-8@30m;z=pow2;t=45;e=amdahl:0.9;;", "--time=30",
			"warning: it is malleable up to 8, not 16: partition main has 8 for this job"},
		{"--malleable=3-20 --size=multiple:3 -w n[1-5,7-8] -t 10 job.sh", "evo:v2;p=3-6@10m;z=multiple:3;n=n[1-5,7-8];;", "-t 10",
			"warning: it is malleable up to 6, not 18: --nodelist=n[1-5,7-8] names 7 nodes"},
		{"--malleable=5-9 -p endless -t 10 job.sh", "evo:v2;p=5@10m;;", "-t 10", "warning: it runs on 5 nodes, not 9: partition endless has 5 for this job (MaxNodes)"},
		{"--malleable=4-4 job.sh", "evo:v2;p=4@30m;;", "--time=30", ""},
		{"--profile=2-4@10m,5-16@30m job.sh", "evo:v2;p=2-4@10m,5-8@30m;;", "--time=41", "malleable up to 8, not 16"},
		{"bounds.sh", "evo:v2;p=2-4@10m,4@30m;z=pow2;t=60;;", "--time=41", ""},
		{"--size=any --grace=5s bounds.sh", "evo:v2;p=2-4@10m,3-6@30m;t=5;;", "--time=41", ""},
		{"--profile=3@5m bounds.sh", "evo:v2;p=3@5m;;", "--time=6", ""},
		{"--moldable=4@2h bounds.sh", "evo:v2;p=4@2h;;", "--time=121", ""},
		{"--malleable=1-8 bounds.sh", "evo:v2;p=1-8@30m;z=pow2;t=60;;", "--time=30", ""},
		{"--malleable=1-8 molds.sh", "evo:v2;p=1-8@30m;;", "--time=30", ""},
		{"whole.sh", "evo:v2;p=2-6@15m;e=1:1,2:1.8182,4:3;;", "", ""},
		{"--grace=7s --speedup=times.txt long.sh", "evo:v2;script;t=7;e=1:1,2:1.8182,4:3;;", "--time=1-16:01", ""},
		{"--drive=companion --malleable=2-6 job.sh", "evo:v2;p=2-6@30m;d=companion;;", "--time=30", ""},

		{"--malleable=6-2 job.sh", "", "", "the minimum 6 is above the maximum 2"},
		{"--malleable=6 job.sh", "", "", "-MAX missing at the end of \"6\""},
		{"--malleable=5-7 --size=pow2 job.sh", "", "", "there is no power of two within 5-7"},
		{"--malleable=5-7 --size=multiple:4 job.sh", "", "", "there is no multiple of 4 within 5-7"},
		{"--malleable=5-7 --size=multiple:0 job.sh", "", "", "at least 1"},
		{"--malleable=5-7 --size=even job.sh", "", "", "neither any nor pow2 nor multiple:K"},
		{"--malleable=2-4 --profile=2@10m job.sh", "", "", "--malleable and --profile exclude each other"},
		{"--malleable=2-4 --moldable=2@10m,3@5m job.sh", "", "", "--malleable and --moldable exclude each other"},
		{"--size=pow2 --profile=2@10m job.sh", "", "", "--size, --grace and --speedup are of malleable jobs"},
		{"--size=pow2 molds.sh", "", "", "a malleable job cannot be moldable"},
		{"--grace=10s job.sh", "", "", "no evolution profile"},
		{"--grace=10s --max-nodes=4 job.sh", "", "", "no evolution profile"},
		{"--malleable=9-12 job.sh", "", "", "the profile goes up to 9 nodes, but partition main has 8 for this job"},
		{"--malleable=4-5 -p short job.sh", "", "", "partition short has 3 for this job"},
		{"--malleable=2-5 -p endless job.sh", "", "", "give a --time that ends, as the partition has none"},
		{"--malleable=2-5 -t 0 job.sh", "", "", "--time=0: a malleable job is planned for as long as it may run: give a --time that ends"},
		{"--malleable=2-5 -t 50 -p short job.sh", "", "", "partition short allows 20"},
		{"--malleable=2-5 --drive=chain job.sh", "", "", "a chain cannot be malleable"},
		{"--malleable=2-5 --max-nodes=9 job.sh", "", "", "--max-nodes=9: a malleable job makes no claim"},
		{"--malleable=2-5 -N 2-5 job.sh", "", "", "--nodes=2-5: the profile says the nodes, 2 in the first step"},
		{"--malleable=2-5 --grace=11m job.sh", "", "", "--grace=11m: the site allows 10m0s at most (malleable.max_grace)"},
		{"--malleable=2-5 --speedup=amdahl:1.1 job.sh", "", "", "not a number from 0 to 1"},
		{"--malleable=2-5 --speedup=none.txt job.sh", "", "", "--speedup=none.txt: open none.txt: no such file"},
		{"--malleable=2-5 --speedup=mixed.txt job.sh", "", "", "--speedup=mixed.txt: line 2: speed-ups and times are mixed"},
		{"--malleable=2-5 --speedup=points.txt job.sh", "", "", "--speedup=points.txt: line 1: want the nodes"},
		{"--malleable=2-5 --speedup=large.txt job.sh", "", "", "--speedup=large.txt: larger than 64 KiB"},
		{"--malleable=2-4 --comment=" + strings.Repeat("x", 1010) + " job.sh", "", "", "--comment is too long"},
	} {
		var out, errs bytes.Buffer
		cmd := Command{Args: append([]string{"--dry-run"}, strings.Fields(c.words)...), Stdout: &out, Stderr: &errs, Sbatch: "false",
			Cluster: still{version: "24.11.5"}, Defaults: request.Request{ExpandLimit: 1}, MaxGrace: 10 * time.Minute}
		status := cmd.Run(t.Context())
		if !strings.Contains(errs.String(), c.says) || c.says == "" && errs.Len() > 0 {
			t.Errorf("%s: says %q, want %q", c.words, &errs, c.says)
		}
		got := strings.ReplaceAll(out.String(), "'", "")
		if (status == 0) != (c.comment != "") || !strings.Contains(got, c.comment) || !strings.Contains(got, c.time) ||
			!strings.HasPrefix(c.time, "--") && strings.Contains(got, "--time=") {
			t.Errorf("%s: %d, %q\nwant %q, %q", c.words, status, got, c.comment, c.time)
		}
	}
	for says, cluster := range map[string]Cluster{
		"the duration is not known, give --time": still{dead: true},
		"give a --time that ends":                nil,
	} {
		var out, errs bytes.Buffer
		cmd := Command{Args: strings.Fields("--dry-run --malleable=2-4 job.sh"), Stdout: &out, Stderr: &errs, Sbatch: "false", Cluster: cluster}
		if status := cmd.Run(t.Context()); status != 1 || !strings.Contains(errs.String(), says) {
			t.Errorf("%d, %q; want %q", status, &errs, says)
		}
	}
}
