package injob

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// fakeSrun runs its command here as if on the given node, and records the process as a step. As
// with srun, a SIGTERM kills the task.
const fakeSrun = `#!/bin/sh
for a; do case $a in --nodelist=*) node=${a#*=};; --jobid=*) job=${a#*=};; --job-name=*) name=${a#*=};; esac; done
while [ "$1" != /bin/sh ]; do shift; done
[ -e $STEPS/refuse ] && exit 1
case $name in *-drain) ;; *) echo $node >>$STEPS/launched;; esac
while [ -e $STEPS/slow-$node ]; do : >$STEPS/starting-$node; sleep 0.05; done
export SLURMD_NODENAME=$node SLURM_JOB_ID=$job SLURM_PROCID=0
exec 3<&0
"$@" <&3 3<&- &
pid=$!
trap 'kill -9 $pid' TERM
echo "$job.$pid $node $name" > $STEPS/$pid.tmp; mv $STEPS/$pid.tmp $STEPS/$pid.step
wait $pid; status=$?
if kill -0 $pid 2>/dev/null; then wait $pid; status=$?; fi
rm $STEPS/$pid.step
exit $status
`

// fake is a sidecar and a Slurm for a follower.
type fake struct {
	t             *testing.T
	dir           string
	mu            sync.Mutex
	has           api.Allocation
	next          []api.Allocation // what comes by Next
	asked         []api.NextRequest
	away          bool // the sidecar does not answer
	offer         []api.Offer
	said          []said
	by            func(api.AnswerRequest) api.Allocation // what the job has by an answer
	lost, signals int                                    // how many signals Slurm loses, and how many there were
	out           safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (f *fake) Allocation(ctx context.Context, _ uint32) (api.Allocation, error) {
	for {
		f.mu.Lock()
		has, away := f.has, f.away
		f.mu.Unlock()
		if !away {
			return has, nil
		}
		select {
		case <-ctx.Done():
			return has, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (f *fake) Next(_ context.Context, _ uint32, req api.NextRequest) (api.Allocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req)
	if len(f.next) == 0 {
		return api.Allocation{}, fmt.Errorf("nothing comes next")
	}
	f.has, f.next = f.next[0], f.next[1:]
	return f.has, nil
}

func (f *fake) Job(context.Context, uint32) (api.Job, error) {
	return api.Job{ID: 12, State: "running"}, nil
}

func (f *fake) Offer(ctx context.Context, _ uint32, q api.OfferQuery) (api.Offer, error) {
	for {
		f.mu.Lock()
		if f.by == nil {
			f.mu.Unlock()
			return api.Offer{}, api.Errorf(api.ErrConflict, "job 12 is not malleable")
		}
		for _, o := range f.offer {
			if o.ID > q.After {
				f.mu.Unlock()
				return o, nil
			}
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return api.Offer{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// said is an answer to an offer.
type said struct {
	offer int64
	nodes int
}

func (f *fake) Answer(_ context.Context, _ uint32, req api.AnswerRequest) (api.Answer, error) {
	on := f.on()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, said{req.Offer, req.Accept})
	for _, o := range f.offer {
		if o.ID != req.Offer {
			continue
		}
		for _, node := range GivenBack(o, req.Accept) {
			if strings.Contains(on, node) {
				f.t.Errorf("%s is given back with something on it: %s", node, on)
			}
		}
	}
	if req.Accept == 0 {
		return api.Answer{Ready: true}, nil
	}
	f.has = f.by(req)
	has := f.has
	return api.Answer{Ready: true, Has: &has}, nil
}

func (f *fake) Steps(context.Context, ...slurmctl.JobID) (steps []slurmctl.Step, err error) {
	files, _ := filepath.Glob(f.dir + "/*.step")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if w := strings.Fields(string(text)); len(w) == 3 {
			steps = append(steps, slurmctl.Step{ID: w[0], Nodes: w[1:2], Name: w[2]})
		}
	}
	return steps, nil
}

func (f *fake) SignalSteps(_ context.Context, sig string, ids ...string) error {
	for _, id := range ids {
		_, text, _ := strings.Cut(id, ".")
		pid, _ := strconv.Atoi(text)
		if sig != "TERM" {
			f.t.Errorf("signal %s", sig)
		}
		f.mu.Lock()
		f.signals++
		lost := f.signals <= f.lost
		f.mu.Unlock()
		if lost {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	return nil
}

func allocation(step int, coming *api.Coming, nodes ...string) api.Allocation {
	a := api.Allocation{Ready: true, Job: 12, Step: step, Steps: 9, Drive: "companion", Nodes: len(nodes), Coming: coming}
	for _, node := range nodes { // every node is a Slurm job of its own
		a.Parts = append(a.Parts, api.Part{Job: 11 + uint32(node[1]-'0'), NodeList: []string{node}, CPUs: []int{4}})
	}
	return a
}

// following starts a follower; end waits for its end.
func following(t *testing.T, f *fake, args ...string) (address string, signals chan os.Signal, end func() int) {
	t.Helper()
	return followingBy(t, f, f, args...)
}

func followingBy(t *testing.T, f *fake, sidecar Sidecar, args ...string) (address string, signals chan os.Signal, end func() int) {
	t.Helper()
	f.t, f.dir = t, t.TempDir()
	srun := filepath.Join(f.dir, "srun")
	syscall.ForkLock.RLock() // what another test starts meanwhile must not have it open for writing: "text file busy"
	err := os.WriteFile(srun, []byte(fakeSrun), 0o700)
	syscall.ForkLock.RUnlock()
	must.OK(t, err)
	address = "test:" + f.dir
	c := Command{Allocation: f.has, Args: args, Environ: append(os.Environ(), "STEPS="+f.dir, "SLURMD_NODENAME=n1"), Srun: srun, Stdout: &f.out, Stderr: &f.out}
	signals = make(chan os.Signal, 1)
	done := make(chan int, 1)
	go func() {
		status, err := c.Follow(context.WithoutCancel(t.Context()), sidecar, address, f, signals)
		if err != nil {
			t.Error(err)
		}
		done <- status
	}()
	return address, signals, func() int {
		t.Helper()
		select {
		case status := <-done:
			if steps, _ := f.Steps(t.Context()); len(steps) > 0 {
				t.Errorf("left: %v", steps)
			}
			return status
		case <-time.After(time.Minute):
			t.Fatalf("it does not end; it printed\n%s", f.out.String())
			return 0
		}
	}
}

func (f *fake) eventually(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("timed out waiting: %s; it printed\n%s", what, f.out.String())
		}
	}
}

// launched returns how often something was started, the drain command apart.
func (f *fake) launched() int {
	text, _ := os.ReadFile(f.dir + "/launched")
	return strings.Count(string(text), "\n")
}

// on returns the nodes with a step now.
func (f *fake) on() string {
	steps, _ := f.Steps(f.t.Context())
	var nodes []string
	for _, s := range steps {
		nodes = append(nodes, s.Nodes...)
	}
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

func noisy(t *testing.T) func(string, ...any) {
	return func(format string, args ...any) { t.Errorf(format, args...) }
}

const worker = `trap 'echo "end $EVO_NODE"; exit 0' TERM; echo "start $EVO_RANK $EVO_NODE $EVO_PART_ID $EVO_JOB_ID"; while :; do sleep 0.05; done`

// By the script: who ends a step meets the follower.
func TestFollowScript(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2")}
	address, signals, end := following(t, f, "--follow=script", "--drain=echo drain $EVO_NODE", "--drain-time=1m",
		"--on-nodes=echo now $EVO_NODES, arrived $EVO_ARRIVED, left $EVO_LEFT", "--", "sh", "-c", worker)
	f.eventually("two run", func() bool { return f.on() == "n1 n2" })
	change := func(leaving []string, has api.Allocation) {
		t.Helper()
		m := MeetFollowers(t.Context(), address, 12, leaving, false, time.Time{}, noisy(t))
		if !m.Any() {
			t.Fatal("no follower came")
		}
		for _, node := range leaving {
			if strings.Contains(f.on(), node) {
				t.Errorf("%s is not drained: %s", node, f.on())
			}
		}
		f.mu.Lock()
		f.has = has
		f.mu.Unlock()
		m.End(&has)
	}
	change(nil, allocation(2, nil, "n1", "n2", "n3", "n4"))
	f.eventually("four run", func() bool { return f.on() == "n1 n2 n3 n4" })
	f.mu.Lock()
	f.away = true // the sidecar is killed; this needs it not
	f.mu.Unlock()
	f.eventually("three times the hook", func() bool { return strings.Contains(f.out.String(), "now 4, arrived n[3-4], left\n") })
	change([]string{"n2", "n3"}, allocation(3, nil, "n1", "n4"))
	f.eventually("two are left", func() bool { return f.on() == "n1 n4" })
	f.eventually("its hook", func() bool { return strings.Contains(f.out.String(), "now 2, arrived , left n[2-3]\n") })
	change(nil, allocation(4, nil, "n1", "n4", "n5"))
	f.eventually("a number is used again", func() bool { return strings.Contains(f.out.String(), "start 1 n5") })
	f.eventually("three run", func() bool { return f.on() == "n1 n4 n5" })

	// A process that drained and then died: what was drained starts again.
	f.mu.Lock()
	f.away, f.has = false, allocation(4, nil, "n1", "n4", "n5")
	f.mu.Unlock()
	m := MeetFollowers(t.Context(), address, 12, []string{"n5"}, false, time.Time{}, noisy(t))
	if on := f.on(); on != "n1 n4" {
		t.Errorf("after the drain: %s", on)
	}
	m.End(nil)
	f.eventually("it is started again", func() bool { return f.on() == "n1 n4 n5" })

	signals <- syscall.SIGTERM
	if status := end(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	out := f.out.String()
	for _, want := range []string{"start 0 n1 12 12\n", "start 1 n2 13 12\n", "start 2 n3 14 12\n", "drain n2\n", "end n2\n", "end n3\n", "end n1\n", "now 2, arrived n[1-2], left\n", "now 2, arrived , left n[2-3]\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it did not print %q", want)
		}
	}
	if strings.Contains(out, "evosrun:") {
		t.Error("there was something to say")
	}
	if t.Failed() {
		t.Logf("it printed\n%s", out)
	}
	if m := MeetFollowers(t.Context(), address, 12, nil, false, time.Time{}, noisy(t)); m.Any() || Followed(address, 12) {
		t.Error("it is still there")
	}
}

// By itself: it ends the steps at their times, before which it drains, and itself with the last.
func TestFollowSteps(t *testing.T) {
	at := time.Now().Add(2 * time.Second)
	f := &fake{
		has: allocation(1, &api.Coming{Step: 2, Nodes: 3, At: at, Arriving: []string{"n2", "n3"}}, "n1"),
		next: []api.Allocation{
			allocation(2, &api.Coming{Step: 3, Nodes: 1, At: at.Add(3 * time.Second), Leaving: []string{"n2", "n3"}}, "n1", "n2", "n3"),
			allocation(3, &api.Coming{Step: 4, Nodes: 1}, "n1"),
			{Ready: true, Done: true, Job: 12, Step: 9, Steps: 9},
		},
	}
	t.Setenv("EVO_ON_GROW", "echo hook $EVO_EVENT $EVO_ARRIVED")
	t.Setenv("EVO_ON_SHRINK", "echo hook $EVO_EVENT $EVO_LEAVING; false")
	_, _, end := following(t, f, "--follow", "--drain-time=1s", "sh", "-c", worker)
	if status := end(); status != 0 {
		t.Errorf("status %d", status)
	}
	if got := fmt.Sprint(f.asked); got != "[{1 []} {2 [n2 n3]} {3 []}]" {
		t.Errorf("asked for %s", got)
	}
	if out := f.out.String(); strings.Count(out, "start") != 3 || strings.Count(out, "end") != 3 ||
		!strings.Contains(out, "hook grow n[2-3]\n") || !strings.Contains(out, "hook shrink n[2-3]\nevosrun: --on-shrink: exit status 1\n") || strings.Count(out, "evosrun:") != 1 {
		t.Errorf("it printed\n%s", out)
	}
}

// TestFollowEndsBesideHooks checks that a hook that another process runs as the follower ends has
// not failed; that process reports its result.
func TestFollowEndsBesideHooks(t *testing.T) {
	one, two := allocation(1, &api.Coming{Nodes: 2}, "n1"), allocation(2, nil, "n1", "n2")
	var out safeBuffer
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{Command: Command{Allocation: one, Environ: append(os.Environ(), "EVO_ON_GROW=exit 3"), Stderr: &out}, sidecar: &fake{}, address: "test:" + t.TempDir(), ctx: ctx}
	t.Cleanup(func() { forgetHooks(f.address, one.Job) })
	hooks := f.hooksFor(one, 0)
	other, err := hooks.change.open(t.Context(), time.Minute)
	must.OK(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.hook(hooks.Begun(ctx, two, NodesOf(one)))
	}()
	cancel()
	<-ended
	other.file.Close()
	if out.String() != "" {
		t.Errorf("it printed %q", out.String())
	}
	f.ctx = t.Context()
	f.hook(hooks.Begun(f.ctx, two, NodesOf(one)))
	if out.String() != "evosrun: --on-grow: exit status 3\n" {
		t.Errorf("of one that fails it printed %q", out.String())
	}
}

func TestFollowFailures(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		want   []string
	}{
		"all end well":       {[]string{"--follow", "true"}, 0, nil},
		"the highest status": {[]string{"--follow", "--restart=never", "sh", "-c", "exit $((3 + EVO_RANK))"}, 4, []string{"on n1 it failed with status 3", "on n2 it failed with status 4"}},
		"again, but not forever": {[]string{"--follow", "--restart-limit=1", "sh", "-c", "echo try $EVO_NODE; exit 7"}, 7,
			[]string{"try n2\n", "it is started again in 1s", "on n2 it ended with status 7, and so it did 1 times before"}},
		"one for all": {[]string{"--follow", "-K", "--restart=never", "sh", "-c", `[ $EVO_RANK = 1 ] && exit 9; exec sleep 1000`}, 9, nil},
		"a drain that hangs": {[]string{"--follow", "-K", "--restart=never", "--drain-time=100ms", "--drain=exec sleep 1000", "sh", "-c", `[ $EVO_RANK = 1 ] && exit 9; trap '' TERM; echo deaf; while :; do sleep 0.1; done`}, 9,
			[]string{"--drain: on n1 it did not end within 100ms", "on n1 it did not end within 100ms and is killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{has: allocation(1, nil, "n1", "n2")}
			_, _, end := following(t, f, c.args...)
			if status := end(); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, want := range c.want {
				if !strings.Contains(f.out.String(), want) {
					t.Errorf("it did not print %q", want)
				}
			}
			if t.Failed() {
				t.Logf("it printed\n%s", f.out.String())
			}
		})
	}
}

// A signal that Slurm loses while a step begins is sent once more.
func TestFollowLostSignal(t *testing.T) {
	t.Parallel()
	f := &fake{has: allocation(1, nil, "n1"), lost: 1}
	_, signals, end := following(t, f, "--follow=script", "--drain-time=1m", "sh", "-c", worker)
	f.eventually("it runs", func() bool { return strings.Contains(f.out.String(), "start") })
	signals <- syscall.SIGTERM
	if end(); strings.Contains(f.out.String(), "killed") || f.signals != 2 {
		t.Errorf("%d signals; it printed\n%s", f.signals, f.out.String())
	}
}

// An instance that ends because its node has left has not failed.
func TestFollowLostNode(t *testing.T) {
	f := &fake{has: allocation(1, nil, "n1", "n2")}
	_, signals, end := following(t, f, "--follow=script", "--restart=never", "sh", "-c", worker)
	f.eventually("two run", func() bool { return f.on() == "n1 n2" })
	f.mu.Lock()
	f.has = allocation(2, nil, "n1")
	f.mu.Unlock()
	steps, _ := f.Steps(t.Context())
	for _, s := range steps {
		if s.Nodes[0] == "n2" {
			_, text, _ := strings.Cut(s.ID, ".")
			pid, _ := strconv.Atoi(text)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	f.eventually("one runs", func() bool { return f.on() == "n1" })
	signals <- syscall.SIGTERM
	if status := end(); status != 128+int(syscall.SIGTERM) || strings.Contains(f.out.String(), "evosrun:") {
		t.Errorf("status %d; it printed\n%s", status, f.out.String())
	}
}

func TestFollowRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--follow"}, {"--follow=soon", "true"}, {"--follow", "-n2", "true"}, {"--follow", "-w", "n1", "true"}, {"--follow", "-x", "n[", "true"},
		{"--follow", "--drain-time=x", "true"}, {"--follow", "--drain-signal=KILL", "true"}, {"--follow", "--restart=now", "true"},
		{"--follow", "--restart-limit=0", "true"}, {"--follow", "--accept=some", "true"}, {"--follow", "--drain=", "true"}, {"--follow", "--drain=/no/such/program -x", "true"}, {"--follow", "--pty", "sh"},
	} {
		c := Command{Allocation: allocation(1, nil, "n1"), Args: args, Srun: "/bin/false"}
		if _, err := c.Follow(t.Context(), nil, "x", nil, nil); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	c := Command{Allocation: allocation(1, nil, "n1"), Args: []string{"--follow", "true"}, Srun: "/bin/false"}
	c.Allocation.Drive = "chain"
	if _, err := c.Follow(t.Context(), nil, "x", nil, nil); err == nil || !strings.Contains(err.Error(), "chain") {
		t.Errorf("in a chain: %v", err)
	}
}

func TestLeaving(t *testing.T) {
	a := allocation(1, &api.Coming{Nodes: 2, Leaving: []string{"n2", "n3"}}, "n1", "n2", "n3", "n4")
	for _, c := range []struct {
		release string
		planned string
		want    string
	}{{"", "n2,n3", "n2 n3"}, {"n4", "n2,n3", "n4 n2"}, {"", "", "n4 n3"}, {"n4,n3,n2", "", "n4 n3 n2"}} {
		release, _ := slurmctl.ExpandNodes(c.release)
		a.Coming.Leaving, _ = slurmctl.ExpandNodes(c.planned)
		if got := strings.Join(Leaving(a, release, "n1"), " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	a.Coming.Nodes = 4
	if got := Leaving(a, nil, "n1"); got != nil {
		t.Errorf("nothing leaves, but %s", got)
	}
}
