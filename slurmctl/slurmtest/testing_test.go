package slurmtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// fakeTB stands for a test that may fail.
type fakeTB struct {
	testing.TB
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (f *fakeTB) Helper()                    {}
func (f *fakeTB) Name() string               { return "TestFake/a\tb" }
func (f *fakeTB) Context() context.Context   { return context.Background() }
func (f *fakeTB) Failed() bool               { return f.failed }
func (f *fakeTB) Cleanup(do func())          { f.cleanups = append(f.cleanups, do) }
func (f *fakeTB) Logf(s string, args ...any) { fmt.Fprintf(&f.log, s+"\n", args...) }

func TestLogsOfFailedTests(t *testing.T) {
	keep := t.TempDir()
	t.Setenv("SLURMTEST_LOGS", keep)
	for _, failed := range []bool{true, false} {
		f := &fakeTB{TB: t, failed: failed}
		c := Start(f, Options{Nodes: 1})
		for _, do := range f.cleanups {
			do()
		}
		if shown := strings.Contains(f.log.String(), "started on cluster slurmtest"); shown != failed {
			t.Errorf("failed=%v: the controller's log is shown: %v, in %q", failed, shown, f.log.String())
		}
		kept, err := os.ReadFile(keep + "/TestFake_a_b/slurmd.n1.log")
		if failed != (err == nil && len(kept) > 0) {
			t.Errorf("failed=%v: a node's kept log is %q, %v", failed, kept, err)
		}
		checkGone(t, c.Dir())
		if err := os.RemoveAll(keep + "/TestFake_a_b"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClient(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	nodes, _, err := c.Client().Nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Errorf("the client sees nodes %v, %v", nodes, err)
	}
	if got := c.Users()[1].ClientUser(); got.Name != c.Users()[1].Name || got.UID != c.Users()[1].UID || got.Home != c.Users()[1].Home {
		t.Errorf("the client's user is %+v", got)
	}
}
