package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// live is a trace of five minutes, for four nodes.
const live = `; MaxNodes: 4
11 0 -1 300 2 -1 -1 2 900 -1 1 1 -1 -1 0 -1 -1 -1
12 10 -1 200 3 -1 -1 3 900 -1 1 1 -1 -1 0 -1 -1 -1
13 20 -1 0 3 -1 -1 3 900 -1 5 1 -1 -1 0 -1 -1 -1
14 30 -1 100 1 -1 -1 1 900 -1 1 1 -1 -1 0 -1 -1 -1
15 40 -1 100 4 -1 -1 4 900 -1 1 1 -1 -1 0 -1 -1 -1
`

// TestInjectExtract injects jobs into a real Slurm at 20 times their speed, extracts them, and
// compares them job by job with a simulation.
func TestInjectExtract(t *testing.T) {
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4, Accounting: true})
	for _, kv := range cluster.Env() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	file, fast, real, simulated := filepath.Join(dir, "live.swf"), filepath.Join(dir, "fast.swf"), filepath.Join(dir, "real.swf"), filepath.Join(dir, "simulated.swf")
	must.OK(t, os.WriteFile(file, []byte(live), 0o600))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if status := evosim.Run(ctx, newCommand(), args, strings.NewReader(""), &out, &errs); status != 0 {
			t.Fatalf("%q: %d: %s", args, status, errs.String())
		}
		return out.String()
	}
	if text := run("trace", "inject", "--time=20", file); !strings.HasPrefix(text, "4 jobs submitted in ") {
		t.Errorf("inject: %s", text)
	}
	var got trace.Trace
	for {
		run("trace", "extract", "--injected", "--nodes=4", "-o", real)
		f, err := os.Open(real)
		must.OK(t, err)
		got, err = trace.Read(f)
		f.Close()
		must.OK(t, err)
		ended := 0
		for _, j := range got.Jobs {
			if j.Status == 1 {
				ended++
			}
		}
		if ended == 4 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v", got.Jobs)
		}
		time.Sleep(time.Second)
	}
	for i, want := range []struct{ number, size, least int64 }{{11, 2, 15}, {12, 3, 10}, {14, 1, 5}, {15, 4, 5}} {
		if j := got.Jobs[i]; j.Number != want.number || j.Processors != want.size || int64(j.Run) < want.least-1 || j.Limit < 60 {
			t.Errorf("%+v, want %+v", j, want)
		}
	}
	// All arrive before the first has ended: the same order as with EASY, which is what Slurm does.
	run("trace", "scale", "--time=20", "-o", fast, file)
	run("baseline", "-o", simulated, fast)
	if text := run("trace", "diff", "--list=-1", simulated, real); !strings.HasPrefix(text, "4 jobs in both, 0 in the first alone, 0 in the second alone\n") {
		t.Error(text)
	} else {
		t.Log(text)
	}
}

// TestInjectDry: what is submitted, and what cannot be.
func TestInjectDry(t *testing.T) {
	dir := t.TempDir()
	file, evolving, bad := filepath.Join(dir, "live.swf"), filepath.Join(dir, "evolving.json"), filepath.Join(dir, "malleable.json")
	must.OK(t, os.WriteFile(file, []byte(live), 0o600))
	must.OK(t, os.WriteFile(evolving, []byte(`{"nodes":4,"jobs":[{"id":"a","profile":[{"duration":60,"nodes":1},{"duration":64,"nodes":3}],"expand_limit":2}]}`), 0o600))
	must.OK(t, os.WriteFile(bad, []byte(`{"nodes":4,"jobs":[{"id":"a","profile":[{"duration":60,"nodes":2}],"malleable":{"min":1,"max":3}}]}`), 0o600))
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		return evosim.Run(t.Context(), newCommand(), append([]string{"trace", "inject", "--dry-run"}, args...), strings.NewReader(""), &out, &out), out.String()
	}
	const want = "1.5 s: sbatch --nodes=1 --time=2 --parsable --job-name=evotrace-14 --exclusive --chdir=/ --output=/dev/null --partition=p: exec sleep 5.000\n"
	if status, text := run("--time=20", "--cpus-per-node=2", "--partition=p", file); status != 0 || !strings.Contains(text, want) || !strings.Contains(text, "1 jobs that never ran are left out") {
		t.Errorf("%d: %s", status, text)
	}
	const through = "0.0 s: evosbatch --profile=1@20s,2@21s --expand-limit=2 --parsable --job-name=evotrace-1 --exclusive --chdir=/ --output=/dev/null: sleep 20; eval \"$(evosctl next)\"; sleep 21; eval \"$(evosctl next)\"\n"
	if status, text := run("--time=3", "--cpus-per-node=2", evolving); status != 0 || text != through {
		t.Errorf("%d: %s, want %s", status, text, through)
	}
	if status, text := run("--rigid", evolving); status != 0 || !strings.Contains(text, "sbatch --nodes=3 ") {
		t.Errorf("%d: %s", status, text)
	}
	if status, text := run(bad); status != 2 || !strings.Contains(text, "is malleable; --rigid submits it at its largest size") {
		t.Errorf("%d: %s", status, text)
	}
	if status, text := run("--time=0", file); status != 2 || !strings.Contains(text, "--time=0: must be above 0") {
		t.Errorf("%d: %s", status, text)
	}
}
