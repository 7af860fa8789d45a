package injob

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// shared is a sidecar for several followers of a job: ending a step twice does nothing, and no
// process may run on nodes that are given back.
type shared struct{ *fake }

func (s shared) Next(ctx context.Context, id uint32, req api.NextRequest) (api.Allocation, error) {
	s.mu.Lock()
	has := s.has
	s.mu.Unlock()
	if req.From < has.Step || has.Done {
		return has, nil
	}
	for _, node := range req.Release {
		if on := s.on(); strings.Contains(on, node) {
			s.t.Errorf("%s is given back with something on it: %s", node, on)
		}
	}
	return s.fake.Next(ctx, id, req)
}

func (s shared) Answer(ctx context.Context, id uint32, req api.AnswerRequest) (api.Answer, error) {
	s.mu.Lock()
	has, said := s.has, len(s.said)
	s.mu.Unlock()
	if said > 0 {
		return api.Answer{Ready: true, Has: &has}, nil
	}
	return s.fake.Answer(ctx, id, req)
}

// beside starts a second follower of the job.
func (f *fake) beside(t *testing.T, address string, args ...string) (end func() int) {
	t.Helper()
	done := make(chan int, 1)
	f.mu.Lock()
	has := f.has
	f.mu.Unlock()
	c := Command{Allocation: has, Args: args, Environ: append(os.Environ(), "STEPS="+f.dir, "SLURMD_NODENAME=n1"), Srun: filepath.Join(f.dir, "srun"), Stdout: &f.out, Stderr: &f.out}
	go func() {
		status, err := c.Follow(context.WithoutCancel(t.Context()), shared{f}, address, f, make(chan os.Signal))
		if err != nil {
			t.Error(err)
		}
		done <- status
	}()
	return func() int {
		t.Helper()
		select {
		case status := <-done:
			return status
		case <-time.After(time.Minute):
			t.Fatalf("the one beside it does not end; it printed\n%s", f.out.String())
			return 0
		}
	}
}

// slowWorker takes its time to end.
const slowWorker = `trap 'sleep 0.5; echo "end slow $EVO_NODE"; exit 0' TERM; echo "start slow $EVO_NODE"; while :; do sleep 0.05; done`

// TestFollowTogether runs two followers: nodes are given back once both have drained them, by the
// one that ends the step, and hooks run once.
func TestFollowTogether(t *testing.T) {
	t.Setenv("EVO_ON_GROW", "echo hook $EVO_EVENT $EVO_ARRIVED")
	t.Setenv("EVO_ON_SHRINK", "echo hook $EVO_EVENT $EVO_LEAVING")
	at := time.Now().Add(2 * time.Second)
	f := &fake{
		has: allocation(1, &api.Coming{Step: 2, Nodes: 3, At: at, Arriving: []string{"n2", "n3"}}, "n1"),
		next: []api.Allocation{
			allocation(2, &api.Coming{Step: 3, Nodes: 1, At: at.Add(3 * time.Second), Leaving: []string{"n2", "n3"}}, "n1", "n2", "n3"),
			allocation(3, &api.Coming{Step: 4, Nodes: 1, At: at.Add(5 * time.Second)}, "n1"),
			allocation(4, nil, "n1"),
		},
	}
	address, signals, end := followingBy(t, f, shared{f}, "--follow", "--drain-time=1s", "sh", "-c", worker)
	slow := f.beside(t, address, "--follow", "--drain-time=1m", "sh", "-c", slowWorker)
	f.eventually("all steps have ended", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.asked) == 3
	})
	f.mu.Lock()
	f.has = api.Allocation{Ready: true, Done: true, Job: 12, Step: 9, Steps: 9} // the last has as well
	f.mu.Unlock()
	if status := slow(); status != 0 {
		t.Errorf("status %d", status)
	}
	select {
	case signals <- syscall.SIGTERM: // it may have heard of it before
	default:
	}
	if status := end(); status != 0 && status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	if got := fmt.Sprint(f.asked); got != "[{1 []} {2 [n2 n3]} {3 []}]" {
		t.Errorf("asked for %s", got)
	}
	out := f.out.String()
	if !strings.Contains(out, "end slow") || strings.Count(out, "hook") != 2 || strings.Contains(out, "evosrun:") {
		t.Errorf("it printed\n%s", out)
	}
	if files, _ := filepath.Glob(filepath.Join(meetDir(), "*"+meetName(address, 12)+"*")); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

// Two followers of a malleable job: one answers, once both have drained.
func TestFollowTogetherOffer(t *testing.T) {
	t.Setenv("EVO_ON_SHRINK", "echo hook $EVO_EVENT $EVO_LEAVING")
	f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1") }}
	address, signals, end := followingBy(t, f, shared{f}, "--follow", "sh", "-c", worker)
	slow := f.beside(t, address, "--follow", "sh", "-c", strings.Replace(slowWorker, "while :", "while [ ! -e $STEPS/over ]", 1))
	f.eventually("two run twice", func() bool { return f.on() == "n1 n1 n2 n2" && strings.Count(f.out.String(), "start") == 4 })
	f.mu.Lock()
	f.offer = []api.Offer{{ID: 1, Ready: true, Kind: "shrink", Nodes: 1, NodeList: "n2", Mandatory: true, Seconds: 3600}}
	f.mu.Unlock()
	f.eventually("it is answered", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.said) > 0 })
	f.eventually("both run on one", func() bool { return f.on() == "n1 n1" })
	must.OK(t, os.WriteFile(f.dir+"/over", nil, 0o600))
	if status := slow(); status != 0 {
		t.Errorf("status %d", status)
	}
	signals <- syscall.SIGTERM
	end()
	if out := f.out.String(); fmt.Sprint(f.said) != "[{1 1}]" || strings.Count(out, "start") != 4 || strings.Count(out, "end") != 3 || strings.Count(out, "hook") != 1 || strings.Contains(out, "evosrun:") {
		t.Errorf("answered %v; it printed\n%s", f.said, out)
	}
}

// A follower that waits for the lock of one that is killed ends the step itself; evosctl next waits like it.
func TestFollowLock(t *testing.T) {
	f := &follower{address: "test:" + t.TempDir()}
	var cancel context.CancelFunc
	f.ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	must.OK(t, os.MkdirAll(meetDir(), 0o700))
	unlock := f.alone("step")
	g := &follower{address: f.address}
	g.ctx = t.Context()
	got := make(chan func(), 1)
	go func() { got <- g.alone("step") }()
	select {
	case <-got:
		t.Error("both have it")
	case <-time.After(3 * lockPause):
		cancel() // as a process that ends
		(<-got)()
	}
	unlock()
	if _, waited := EndAlone(t.Context(), f.address, 0); waited {
		t.Error("it waited without a follower")
	}
	l, _, err := listenForSteps(f.address, 0, "1")
	must.OK(t, err)
	defer l.Close()
	unlock = g.alone("step")
	time.AfterFunc(3*lockPause, unlock)
	end, waited := EndAlone(t.Context(), f.address, 0)
	if end(); !waited {
		t.Error("it ended a step at the same time as a follower")
	}
	os.Remove(lockPath("step", f.address, 0))
}
