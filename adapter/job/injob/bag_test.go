package injob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMain is also the program that a crew starts on its nodes.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerFlag {
		os.Exit(Main("evosrun", "", os.Args[1:]))
	}
	os.Exit(m.Run())
}

// summary reads how a bag stands.
func summary(t *testing.T, dir string) bag.Summary {
	t.Helper()
	s, err := bag.Read(dir)
	if err != nil {
		return bag.Summary{}
	}
	return s.Summary(s.Moment())
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return string(b)
}

// printed checks what each task has printed, and returns how many ran on each node.
func printed(t *testing.T, dir string, tasks int) map[string]int {
	t.Helper()
	nodes := map[string]int{}
	for i := 1; i <= tasks; i++ {
		words := strings.Fields(text(t, filepath.Join(dir, "out", fmt.Sprint(i))))
		if len(words) != 5 || words[1] != fmt.Sprint(i) || words[2] != words[1] {
			t.Errorf("task %d printed %q", i, words)
			continue
		}
		nodes[words[4]]++
	}
	return nodes
}

// All tasks of a bag end, on nodes that come and go.
func TestBag(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(req api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1", "n3") }}
	dir := filepath.Join(t.TempDir(), "bag")
	_, _, end := following(t, f, "--tasks=1-60", "--bag="+dir, "--drain-time=10s", "--", "sh", "-c", `sleep 0.2; echo task $0 $EVO_TASK_ID on $EVO_NODE; test $0 != 13`)
	f.eventually("some are done", func() bool { return summary(t, dir).Done > 5 })
	f.mu.Lock()
	f.offer = append(f.offer, api.Offer{ID: 1, Kind: "shrink", Mandatory: true, Nodes: 1, NodeList: "n2", Seconds: 60})
	f.mu.Unlock()
	if status := end(); status != tasksFailed {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
	s := summary(t, dir)
	if s.Done != 59 || s.Failed != 1 || s.Running+s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if nodes := printed(t, dir, 60); nodes["n1"] == 0 || nodes["n2"] == 0 || nodes["n3"] == 0 {
		t.Errorf("they ran on %v", nodes)
	}
	for _, want := range []string{"task 13 failed: exit status 1\n", "59 of 60 tasks done, 1 failed\n"} {
		if !strings.Contains(f.out.String(), want) {
			t.Errorf("it did not print %q, but\n%s", want, f.out.String())
		}
	}
	if again, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(again) != 60 {
		t.Errorf("%d files, %v", len(again), err)
	}
}

// A leader that is ended leaves a bag with which the next one goes on.
func TestBagResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	args := []string{"--tasks=1-40", "--bag=" + dir, "--drain-time=5s", "--", "sh", "-c", "sleep 0.2; echo $EVO_TASK"}
	f := &fake{has: allocation(1, nil, "n1")}
	_, signals, end := following(t, f, args...)
	f.eventually("some are done", func() bool { return summary(t, dir).Done > 5 })
	signals <- syscall.SIGTERM
	if status := end(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	if s := summary(t, dir); s.Done < 6 || s.Done == 40 || s.Running != 0 {
		t.Fatalf("%+v", s)
	}
	f = &fake{has: allocation(1, nil, "n2")}
	_, _, end = following(t, f, args...)
	if status := end(); status != 0 {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
	f = &fake{has: allocation(1, nil, "n2")}
	_, _, end = following(t, f, args...)
	if status := end(); status != 0 || f.launched() > 0 {
		t.Errorf("status %d with nothing to do, and %d workers", status, f.launched())
	}
}
