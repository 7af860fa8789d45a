package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
)

// bin is the folder of the commands, built once.
var bin string

func TestMain(m *testing.M) {
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "-buildvcs=false", "github.com/evoslurm/evoslurm/plugins/cmd/strategytest", "./evosdemo")
}

// text returns what has been written to a file so far.
func text(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func outFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A short scenario on a real Slurm: every srun inside the jobs finds the nodes
// that were requested, in both drive modes and at the peak sizes.
func TestJobsMeasureWhatTheyAskedFor(t *testing.T) {
	jobs := []Job{
		stock("stock", 1, 0, "2@3s"),
		evolving("grows", 0, 0, "1@3s,4@3s"),
		evolving("shrinks", 1, 0, "3@3s,1@3s"),
	}
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		t.Run(string(drive), func(t *testing.T) {
			shortTemp(t)
			out := outFile(t)
			l, err := openLab(t.Context(), Options{Bin: bin, Nodes: 8, Drive: drive})
			t.Cleanup(func() {
				if t.Failed() {
					log, _ := os.ReadFile(l.path("log", "evoslurmd.log"))
					t.Logf("%s\nevoslurmd's log:\n%s", text(t, out), log)
				}
				if err := l.close(false); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			s := &plain{out: out}
			for _, rigid := range []bool{false, true} {
				o, err := runPhase(t.Context(), l, s, Options{Drive: drive, Jobs: jobs, Out: out}, rigid)
				if err != nil {
					t.Fatal(err)
				}
				if !o.leftovers.None() {
					t.Errorf("left behind: %s", o.leftovers)
				}
				for _, r := range o.jobs {
					if r.endState != "COMPLETED" || r.trace.end.IsZero() {
						t.Errorf("%s ended %s, trace %+v", r.Name, r.endState, r.trace)
					}
					want := r.Profile
					if rigid {
						want = r.rigid()
					}
					if len(r.trace.steps) != len(want) {
						t.Fatalf("%s had %d steps, want %d", r.Name, len(r.trace.steps), len(want))
					}
					for i, step := range r.trace.steps {
						if len(step.first.nodes) != want[i].Nodes || len(step.last.nodes) != want[i].Nodes {
							t.Errorf("%s: in step %d answered %v, then %v, want %d nodes", r.Name, i+1, step.first.nodes, step.last.nodes, want[i].Nodes)
						}
					}
					if r.Evolving && !rigid && (r.drive != string(drive) || len(r.planned) != len(r.Profile)) {
						t.Errorf("%s ran in drive mode %s by the plan %v", r.Name, r.drive, r.planned)
					}
				}
			}
			for _, want := range []string{"evolving: 1@3s,4@3s", "grows grows from 1 to 4 nodes", "shrinks shrinks from 3 to 1 node", "rigid: 4 nodes", "ended"} {
				if !strings.Contains(text(t, out), want) {
					t.Errorf("no %q among the events", want)
				}
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	out, temp := outFile(t), shortTemp(t) // the test's own folder is not in the demo's
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Bin: bin, Nodes: 8, Drive: drivemode.Merge, Out: out, Plain: true, Jobs: []Job{evolving("endless", 0, 0, "1@1h,2@1h")}})
	}()
	for !strings.Contains(text(t, out), "endless starts on 1 node") {
		select {
		case err := <-done:
			t.Fatalf("it ended by itself: %v\n%s", err, text(t, out))
		case <-t.Context().Done():
			t.Fatal("the test ran out of time")
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	empty(t, temp)
}

func TestCommandsNotBuilt(t *testing.T) {
	bin, temp := t.TempDir(), shortTemp(t)
	err := Run(t.Context(), Options{Bin: bin, Nodes: 8, Drive: drivemode.Merge, Out: outFile(t)})
	if err == nil || !strings.Contains(err.Error(), "must be built (make) or installed first") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	empty(t, temp)
}

// shortTemp returns a temporary folder for the demo with a path short enough for Unix
// sockets, which the test's own may not be.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v (%v)", left, err)
	}
}
