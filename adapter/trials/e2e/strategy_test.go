package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestStrategyCommands: an operator changes strategies; a user may look; a sidecar
// that is killed leaves no plugin behind.
func TestStrategyCommands(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{}, nil)
	folder := s.Dir + "/strategies"
	s.must(os.Mkdir(folder, 0o755))
	for _, args := range [][]string{
		{"go", "build", "-o", folder, "../../../plugins/cmd/klein", "../../../plugins/cmd/search"},
		{"cp", "-r", "../../../plugins/python/asap", "../../../plugins/python/evostrategy", folder},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	file := s.Dir + "/evoslurm.yaml"
	text, err := os.ReadFile(file)
	s.must(err)
	s.must(os.WriteFile(file, append(text, "strategies: {dir: "+folder+"}\n"...), 0o644))
	s.stop(syscall.SIGTERM)
	s.start()
	root := func(args ...string) string { // as the administrator, on the Unix socket
		t.Helper()
		cmd := exec.Command(bin+"/evosctl", append([]string{"strategy"}, args...)...)
		cmd.Env = append(os.Environ(), "EVOSLURM_CONFIG="+file, "EVOSLURM_API=unix://"+s.Dir+"/run/api.sock")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "failed: " + string(out)
		}
		return string(out)
	}
	expect := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in\n%s", part, got)
			}
		}
	}
	id := s.submit("--profile=1@5m,3@5m", "--wrap", "sleep 600")
	s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
	expect(root("list"), "STRATEGY", "noX*", "in use", "asap", "plugin", "rigid", "built in")
	expect(root("use", "klein", "--set", "expand_limit=1.5"), "klein (plugin, version 1)", "in use", "by root", "expand_limit=1.5", "default 2", "SHA-256", "Protocol: 3")
	expect(root("use", "asap"), "asap (plugin", "Protocol: 1")
	expect(root("use", "nonsense"), "failed", "there is no strategy")
	expect(root("use", "klein", "--set", "expand_limit=0"), "failed", "want 1 or more")
	expect(root("use", "klein", "--set", "x"), "failed", "NAME=VALUE")
	queued := s.submit("--profile=8@5m", "--wrap", "sleep 600")
	s.eventually("the second job is planned", func() bool { return len(s.job(queued).Plan) == 1 })
	expect(root("try", "search", "--set", "seed=7"), "asap (in use)", "search seed=7 (tried)", "makespan", "1")
	expect(root("show", "asap"), "State:    in use", "Faults:   0")
	expect(root("reload"), "asap*")
	if out, errs, err := s.As(1, "evosctl", "strategy", "list"); err != nil || !strings.Contains(out, "asap*") {
		t.Errorf("a user's list: %v %s%s", err, out, errs)
	}
	for _, args := range [][]string{{"use", "noX"}, {"reload"}, {"try", "noX"}} {
		if out, errs, err := s.As(1, "evosctl", append([]string{"strategy"}, args...)...); err == nil || !strings.Contains(errs, "operators") {
			t.Errorf("a user's %v: %v %s%s", args, err, out, errs)
		}
	}
	if got := s.status().Strategy; got != "asap" {
		t.Errorf("the status has %s", got)
	}
	var listed []api.Strategy
	s.must(json.Unmarshal([]byte(root("list", "--json")), &listed))

	// no process is left behind, however the sidecar ends
	if n := len(below(s.daemon.Process.Pid)); n == 0 {
		t.Error("no plugin runs")
	}
	tree := below(s.daemon.Process.Pid)
	s.stop(syscall.SIGKILL)
	s.eventually("the plugin is gone after kill -9", func() bool {
		for _, pid := range tree {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
	if left, err := exec.Command("pgrep", "--full", folder).Output(); err == nil {
		t.Errorf("left behind: %s", left)
	}
	s.start()
	s.eventually("the sidecar is back", func() bool { return s.job(id).State == "running" })
	expect(root("list"), "asap*") // as it was put in use
	expect(root("show", "asap"), "by root", "the configuration has noX")
	expect(root("use", "--configured"), "noX (built in", "in use", "by root")
	expect(root("use", "--configured", "klein"), "failed", "neither a name")
	expect(root("use"), "failed", "or --configured")
	expect(root("use", "klein"), "in use")
	tree = below(s.daemon.Process.Pid)
	s.stop(syscall.SIGTERM)
	for _, pid := range tree {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left behind after SIGTERM", pid)
		}
	}
}

// below returns the processes that come of pid.
func below(pid int) []int {
	out, _ := exec.Command("pgrep", "--parent", strconv.Itoa(pid)).Output() // status 1: there is none
	var all []int
	for _, field := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(append(all, child), below(child)...)
		}
	}
	return all
}
