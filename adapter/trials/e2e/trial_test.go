package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// trialPlugin overwrites comments where a file "site" stands beside it, and wants Account= in
// updates where a file "account" does.
const trialPlugin = `
local dir = debug.getinfo(1, "S").source:match("^@(.*/)")
local function overwritten(job)
	local f = io.open(dir .. "site")
	if f ~= nil then
		f:close()
		job.comment = "ours"
	end
	return slurm.SUCCESS
end
function slurm_job_submit(job, parts, uid) return overwritten(job) end
function slurm_job_modify(job, record, parts, uid)
	local f = io.open(dir .. "account")
	if f ~= nil then
		f:close()
		if job.account == nil then return slurm.ERROR end
	end
	return overwritten(job)
end
return slurm.SUCCESS
`

// TestTrial: a user's trial goes through a growth and a shrink, tells what the site does,
// and leaves nothing behind, also when it is interrupted.
func TestTrial(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true, ExtraConf: "JobSubmitPlugins=lua",
		Files: map[string]string{"job_submit.lua": trialPlugin}}, nil)
	clean := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			left, err := s.Cluster.Leftovers(ctx)
			if err == nil && left.None() {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("left: %s (%v)", left, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	expect := func(wanted error, args []string, lines ...string) {
		t.Helper()
		out, errs, err := s.As(0, "evosctl", append([]string{"doctor", "--trial"}, args...)...)
		if fmt.Sprint(err) != fmt.Sprint(wanted) {
			t.Errorf("%q: %v, want %v\n%s%s", args, err, wanted, out, errs)
		}
		squeezed := strings.Join(strings.Fields(out), " ")
		for _, line := range lines {
			if !strings.Contains(squeezed, line) {
				t.Errorf("%q: no %q in\n%s%s", args, line, out, errs)
			}
		}
		clean()
	}
	failed := fmt.Errorf("exit status 1")

	expect(nil, nil, "comment after submission ok as it was written", "updates ok taken as they are", "growth ok 2 nodes", "shrink ok 1 nodes", "drive mode merge",
		"comment after updates ok as it was written", "clean-up ok")
	s.must(os.WriteFile(filepath.Join(s.Cluster.Dir(), "site"), nil, 0o644))
	expect(nil, []string{"-p", "main", "-A", "proj"}, `comment after submission warn the site has overwritten it: "ours"`, "growth ok", "shrink ok", "comment after updates warn")
	expect(failed, []string{"-p", "nowhere"}, "submission fail", "invalid partition")
	expect(failed, []string{"--timeout=1ms"}, "fail")

	cmd := s.Cluster.Command(t.Context(), s.Cluster.Users()[0], filepath.Join(bin, "evosctl"), "doctor", "--trial")
	cmd.Env = append(cmd.Env, s.Env()...)
	var out strings.Builder
	cmd.Stdout = &out
	s.must(cmd.Start())
	deadline := time.Now().Add(patience)
	for { // until its job runs
		left, err := s.Cluster.Leftovers(t.Context())
		if err == nil && !left.None() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no job of the trial: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	s.must(cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); fmt.Sprint(err) != "exit status 1" || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("interrupted: %v\n%s", err, out.String())
	}
	clean()

	s.must(os.WriteFile(filepath.Join(s.Cluster.Dir(), "account"), nil, 0o644))
	expect(nil, nil, "updates warn those without Account= are refused", "growth ok 2 nodes", "shrink ok 1 nodes", "drive mode companion", "clean-up ok")
	s.stop(syscall.SIGTERM)
	expect(failed, nil, "sidecar fail", "start evoslurmd")
}
