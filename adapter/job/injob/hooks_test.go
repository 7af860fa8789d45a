package injob

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

func TestHooks(t *testing.T) {
	var out bytes.Buffer
	h := Hooks{Output: &out, Environ: []string{"PATH=/usr/bin:/bin", "EVO_STEP=1", "MINE=x"}, Hooks: request.Hooks{
		Grow:   `echo "$EVO_EVENT in $EVO_STEP: $EVO_ARRIVED of $EVO_NODELIST, $MINE"`,
		Shrink: `echo "$EVO_EVENT: $EVO_LEAVING, then $EVO_NEXT_NODES"`,
		Step:   `echo "$EVO_EVENT $EVO_STEP: $EVO_ARRIVED/$EVO_LEFT"`,
	}}
	check := func(err error, want string) {
		t.Helper()
		if err != nil || out.String() != want {
			t.Errorf("%v; printed %q, want %q", err, out.String(), want)
		}
		out.Reset()
	}
	two := allocation(2, &api.Coming{Nodes: 1}, "n1", "n2", "n3")
	check(h.Begun(t.Context(), two, []string{"n1"}), "grow in 2: n[2-3] of n[1-3], x\nstep 2: n[2-3]/\n")
	check(h.Leaving(t.Context(), two, []string{"n2", "n3"}), "shrink: n[2-3], then 1\n")
	check(h.Leaving(t.Context(), two, nil), "")
	check(h.Begun(t.Context(), allocation(3, nil, "n1"), []string{"n1", "n2", "n3"}), "step 3: /n[2-3]\n")
	check(h.Begun(t.Context(), api.Allocation{Job: 12, Done: true}, []string{"n1"}), "")
	check(Hooks{}.Begun(t.Context(), two, nil), "")

	h.Hooks, h.Time = request.Hooks{Grow: "exec sleep 1000", Step: "/no/such/command"}, 100*time.Millisecond
	err := h.Begun(t.Context(), two, nil)
	if err == nil || !strings.Contains(err.Error(), "--on-grow: ended after 100ms") || !strings.Contains(err.Error(), "--on-step: exit status 127") {
		t.Errorf("what hangs and what is missing: %v", err)
	}
}

// beginning is a sidecar that knows when a job has begun.
type beginning int64

func (b beginning) Job(context.Context, uint32) (api.Job, error) {
	return api.Job{ID: 12, Start: time.Unix(int64(b), 0)}, nil
}

// TestHooksOnce checks that hooks run once per change, whichever processes ask, at the same time or
// repeatedly.
func TestHooksOnce(t *testing.T) {
	var out safeBuffer
	address := "test:" + t.TempDir()
	t.Cleanup(func() { forgetHooks(address, 12) })
	one := allocation(1, &api.Coming{Step: 2, Nodes: 3}, "n1")
	three := allocation(2, &api.Coming{Step: 3, Nodes: 1}, "n1", "n2", "n3")
	last := allocation(3, nil, "n1")
	run := beginning(1)
	hooks := func(a api.Allocation, offer int64) Hooks {
		h := Hooks{Output: &out, Environ: os.Environ(), Hooks: request.Hooks{
			Grow: "sleep 0.2; echo grow $EVO_ARRIVED", Shrink: "echo shrink $EVO_LEAVING", Step: "echo step $EVO_STEP $EVO_ARRIVED/$EVO_LEFT; exit 3"}}
		return h.For(t.Context(), run, address, a, offer)
	}
	printed := func(want string) {
		t.Helper()
		out.mu.Lock()
		defer out.mu.Unlock()
		if got := out.b.String(); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		out.b.Reset()
	}
	fails := func(err error) {
		t.Helper()
		if err == nil || err.Error() != "--on-step: exit status 3" {
			t.Error(err)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for range 3 { // evosctl next, evosrun --follow, and another
		wg.Go(func() {
			h := hooks(one, 0)
			ok(h.Leaving(t.Context(), one, nil))
			fails(h.Begun(t.Context(), three, []string{"n1"}))
		})
	}
	wg.Wait()
	printed("grow n[2-3]\nstep 2 n[2-3]/\n")
	fails(hooks(one, 0).Begun(t.Context(), three, nil)) // who comes later learns of it
	ok(hooks(three, 0).Undone().Begun(t.Context(), three, nil))
	printed("")

	// By an offer; then the step ends, with one leaving node already announced to the hook, and
	// another in its place.
	two := allocation(2, nil, "n1", "n2")
	ok(hooks(three, 7).Leaving(t.Context(), three, []string{"n3"}))
	ok(hooks(three, 7).Leaving(t.Context(), three, []string{"n3"}))
	ok(hooks(three, 7).Arrived(t.Context(), two, NodesOf(three)))
	ok(hooks(three, 0).Leaving(t.Context(), three, []string{"n2"}))
	ok(hooks(three, 0).Leaving(t.Context(), three, []string{"n2", "n3"}))
	printed("shrink n3\nshrink n2\nshrink n3\n")

	// A process killed as the step ended has not run the hooks of the next step, and no hook runs
	// twice.
	fails(hooks(last, 0).Leaving(t.Context(), last, nil))
	printed("step 3 /n[2-3]\n")
	ok(hooks(three, 0).Begun(t.Context(), three, []string{"n1"}))
	printed("")

	run = 2 // requeued
	fails(hooks(one, 0).Begun(t.Context(), three, []string{"n1"}))
	printed("grow n[2-3]\nstep 2 n[2-3]/\n")
	ok(hooks(last, 0).Begun(t.Context(), api.Allocation{Job: 12, Done: true}, nil))
	if files, _ := filepath.Glob(filepath.Join(meetDir(), "*"+meetName(address, 12)+"*")); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

// TestHookGoesOn checks that a hook continues when its starter is gone, and that a repeated caller
// waits for it.
func TestHookGoesOn(t *testing.T) {
	dir := t.TempDir()
	address := "test:" + dir
	t.Cleanup(func() { forgetHooks(address, 12) })
	a := allocation(1, &api.Coming{Nodes: 1}, "n1", "n2")
	h := Hooks{Environ: append(os.Environ(), "DIR="+dir), Hooks: request.Hooks{Shrink: "echo begun >>$DIR/out; while [ ! -e $DIR/go ]; do sleep 0.05; done; echo ended >>$DIR/out"}}
	h = h.For(t.Context(), beginning(1), address, a, 0)
	text := func() string { b, _ := os.ReadFile(dir + "/out"); return string(b) }
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- h.Leaving(ctx, a, []string{"n2"}) }()
	for end := time.Now().Add(time.Minute); text() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || len(first) > 0 {
			t.Fatal("the hook does not begin")
		}
	}
	cancel()
	if err := <-first; !errors.Is(err, errGoesOn) {
		t.Error(err)
	}
	go func() { first <- h.Leaving(t.Context(), a, []string{"n2"}) }()
	select {
	case err := <-first:
		t.Errorf("it is not waited for: %v", err)
	case <-time.After(3 * lockPause):
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil || text() != "begun\nended\n" {
		t.Errorf("%v; it printed %q", err, text())
	}
}
