package e2e_test

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestMergedBeforeScript: Slurm requeues a job with a merged node that comes before the node of its batch script, when that node
// registers again, here within 40 s. A job that gets such a node from the sidecar goes on, since nothing is merged; one that asks
// for merging shows that this Slurm does so.
func TestMergedBeforeScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true, ExtraConf: "SlurmdTimeout=6\n"}, nil)
	run := func(name string, args ...string) string {
		out, err := s.Cluster.Run(t.Context(), slurmtest.Root, name, args...)
		s.must(err)
		return strings.TrimSpace(out)
	}
	stock := func(node string) string {
		out, errs, err := s.As(1, "sbatch", "--parsable", "--exclusive", "--time=20", "--output=/dev/null", "-w", node, "--wrap=sleep 1200")
		if err != nil {
			t.Fatal(err, errs)
		}
		return strings.TrimSpace(out)
	}
	idle := func() string { return run("sinfo", "-h", "-t", "idle", "-o", "%N") }
	low := stock("n1")
	others := []string{stock("n3"), stock("n4")}
	s.eventually("three nodes are taken", func() bool { return idle() == "n2" })
	const script = `until eval "$(evosctl grow 1)" && [ "$EVO_NODES" = 2 ]; do sleep 1; done; sleep 600`
	id := s.submit("--profile=1@15m", "--wrap", script)
	s.eventually("it runs on n2", func() bool { return s.job(id).NodeList == "n2" })
	run("scancel", low)
	s.eventually("it grows", func() bool { return s.job(id).NodeList == "n[1-2]" })
	if drive := s.job(id).Drive; drive != "companion" {
		t.Errorf("it grows by %s, want companion", drive)
	}
	run("scancel", others...)
	s.eventually("two nodes are idle", func() bool { return idle() == "n[3-4]" })

	// The other one: n4 first, then n3.
	high := stock("n3")
	s.eventually("n3 is taken", func() bool { return idle() == "n4" })
	asks := s.submit("--drive=merge", "--profile=1@15m", "--wrap", script)
	s.eventually("it runs on n4", func() bool { return s.job(asks).NodeList == "n4" })
	run("scancel", high)
	s.eventually("Slurm requeues the job that was merged", func() bool {
		return strings.Contains(run("scontrol", "-o", "show", "job", asks), " Restarts=1 ")
	})
	if out := run("scontrol", "-o", "show", "job", id); !strings.Contains(out, " Restarts=0 ") || !strings.Contains(out, "JobState=RUNNING") {
		t.Errorf("the job that was not merged: %s", out)
	}
}
