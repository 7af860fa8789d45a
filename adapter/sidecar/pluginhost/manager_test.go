package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// bin is the folder of the plugins, built once.
var bin string

func TestMain(m *testing.M) {
	code := func() int {
		dir, err := os.MkdirTemp("", "evoslurm-strategies-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // for the user that plugins run as
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		bin = dir
		for _, args := range [][]string{{"-o", dir, "./internal/evil", "./internal/mean", "../../../plugins/cmd/klein", "../../../plugins/cmd/rigid", "../../../plugins/cmd/gain", "../../../plugins/cmd/awake", "../../../plugins/strategy/internal/old"},
			{"-o", dir + "/evil-2", "-ldflags=-X main.version=2", "./internal/evil"}} {
			if out, err := exec.Command("go", append([]string{"build"}, args...)...).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
				return 1
			}
		}
		return m.Run()
	}()
	os.Exit(code)
}

// rig is a manager on a folder of plugins.
type rig struct {
	t   *testing.T
	dir string
	cfg config.Strategies
	*Manager
}

func newRig(t *testing.T, name string, plugins ...string) *rig {
	t.Helper()
	r := &rig{t: t, cfg: config.Default().Strategies}
	var err error
	if r.dir, err = os.MkdirTemp("", "evoslurm-folder-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.dir) })
	r.must(os.Chmod(r.dir, 0o755))
	for _, p := range plugins {
		r.install(p, p)
	}
	r.cfg.Dir = r.dir
	log := logrus.New()
	log.SetOutput(t.Output())
	r.Manager, err = New(r.cfg, name, nil, log)
	r.must(err)
	t.Cleanup(func() {
		r.Close()
		if left := descendants(os.Getpid()); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// install puts a plugin in the folder, as an upgrade does: the file is replaced.
func (r *rig) install(from, name string) {
	r.t.Helper()
	r.must(os.RemoveAll(filepath.Join(r.dir, name)))
	r.must(os.Link(filepath.Join(bin, from), filepath.Join(r.dir, name)))
}

func (r *rig) use(name string, parameters ...string) {
	r.t.Helper()
	given, err := config.Strategies{Parameters: parameters}.Values()
	r.must(err)
	change, err := r.Planning.Use(context.Background(), name, given, "tester")
	r.must(err)
	r.swap(change)
}

// swap carries changes out as the controller does, with their events.
func (r *rig) swap(changes ...*Change) {
	for _, c := range changes {
		if e := c.Event(); e != nil {
			r.mu.Lock()
			r.event(e.Kind, e.Detail)
			r.mu.Unlock()
		}
		c.Swap()
	}
}

// large is more than the problems here.
var large = sdk.Size{Jobs: 100, Steps: 1000}

// problem returns a small queue in which any two jobs are too much at a time.
func problem() planner.Pool {
	pool := planner.Pool{Nodes: 8, Busy: []planner.NodeBusy{{Node: 0, Start: 0, End: 100}}}
	for i := range 4 {
		pool.Jobs = append(pool.Jobs, planner.PoolJob{Driver: -1, Job: planner.Job{ID: strconv.Itoa(i), ExpandLimit: 1,
			Profile: planner.Profile{{Duration: 60, Nodes: 5}, {Duration: 60, Nodes: 6}}}})
	}
	return pool
}

// cycle plans one cycle and returns why the fallback planned, if it did. The plan must always be
// noX's.
func (r *rig) cycle() error {
	r.t.Helper()
	c := r.Begin(large)
	c.Pin([]planner.Placement{{Start: -40, Steps: planner.Profile{{Duration: 60, Nodes: 1}, {Duration: 80, Nodes: 1}}}})
	began := time.Now()
	got, err := problem().Plan(c)
	r.must(err)
	if took := time.Since(began); took > r.cfg.Timeout+10*time.Second {
		r.t.Errorf("the cycle took %v", took)
	}
	c.End()
	want, err := problem().Plan(fallback)
	r.must(err)
	for i := range want {
		if got[i].Unfit != "" || got[i].Start != want[i].Start || !slices.Equal(got[i].Steps, want[i].Steps) {
			r.t.Errorf("job %d is planned as %v, want %v", i, got[i], want[i])
		}
	}
	return c.Fallen()
}

func (r *rig) strategy(name string) api.Strategy {
	r.t.Helper()
	for _, s := range r.Planning.List() {
		if s.Name == name {
			return s
		}
	}
	r.t.Fatalf("there is no %s in the list", name)
	return api.Strategy{}
}

// eventually waits until it is so.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("timed out waiting: %s; %+v", what, r.Planning.List())
}

// happened reports whether an event of that kind has a detail with that text.
func happened(events []Event, kind, text string) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Kind == kind && strings.Contains(fmt.Sprint(e.Detail), text) })
}

func TestEveryFaultIsSurvived(t *testing.T) {
	r := newRig(t, "noX", "evil")
	r.cfg.Timeout = 500 * time.Millisecond
	modes := map[string]string{
		"exit": "connection broke", "killed": "signal 9", "panic": "panic: evil", "hang": "no answer in time", "stop": "no answer in time",
		"late": "no answer in time", "garbage": "", "empty": "0 jobs answered", "overfull": "C2 broken", "moves-pinned": "pinned job 1 is moved",
		"too-early": "C1 broken", "too-late": "one after the other", "nan": "C1 broken|starts at second", "overflow": "starts at second", "negative": "C1 broken",
		"stretched": "C1 broken", "few": "jobs answered of", "many": "jobs answered of", "few-steps": "too few", "unfit": "it fits at second",
		"unfit-wild": "is said to be infeasible", "gigabyte": "too large", "leak": "fatal error|MiB of memory|signal 9", "leak-in-fork": "MiB of memory",
		"forks-and-exits": "status 3", "fork-bomb": "processes, at most",
	}
	for mode, want := range modes {
		t.Run(mode, func(t *testing.T) {
			r.t = t
			switch mode {
			case "leak", "leak-in-fork", "fork-bomb":
				r.cfg.Memory, r.cfg.Timeout = 256, 20*time.Second
			case "gigabyte": // so much that it can be sent at all
				r.cfg.Memory, r.cfg.Timeout = 8192, time.Minute
			default:
				r.cfg.Memory, r.cfg.Timeout = 1024, 500*time.Millisecond
			}
			_, err := r.Configure(context.Background(), r.cfg, "noX", "egs")
			r.must(err)
			before := r.strategy("evil").Faults
			r.use("evil", "mode="+mode)
			r.Events()
			fallen := r.cycle()
			events := r.Events()
			if fallen == nil {
				t.Fatal("nobody noticed")
			}
			if !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(fallen.Error(), w) }) {
				t.Errorf("the fault is %q, want %q", fallen, want)
			}
			if !happened(events, "strategy fault", "planned_by:noX") {
				t.Errorf("events %v, want a fault and who planned", events)
			}
			if got := r.strategy("evil"); got.Faults < before+1 || got.LastFault != fallen.Error() {
				t.Errorf("listed with %d faults, the last one %q; want %d and %q", got.Faults, got.LastFault, before+1, fallen)
			}
			t.Log(fallen)
		})
	}
	r.t = t
	r.use("noX")
	r.eventually("all plugins are gone", func() bool { return len(descendants(os.Getpid())) == 0 })
}

func TestHarmlessMischief(t *testing.T) {
	r := newRig(t, "noX", "evil")
	for _, mode := range []string{"", "stdout", "forks"} {
		r.use("evil", "mode="+mode)
		for range 3 {
			if fallen := r.cycle(); fallen != nil {
				t.Errorf("mode %q: %v", mode, fallen)
			}
		}
	}
	r.use("noX")
	r.eventually("all processes are gone", func() bool { return len(descendants(os.Getpid())) == 0 })
}

func TestAsideAndBack(t *testing.T) {
	r := newRig(t, "noX", "evil")
	r.use("evil", "mode=empty")
	for range faultsInARow {
		r.eventually("the plugin runs", func() bool { s := r.strategy("evil"); return s.State == "in use" })
		if r.cycle() == nil {
			t.Fatal("nobody noticed")
		}
	}
	events := r.Events()
	if !happened(events, "strategy put aside", "seconds:30") || r.strategy("evil").State != "put aside" {
		t.Fatalf("after %d faults it is %s; events %v", faultsInARow, r.strategy("evil").State, events)
	}
	if err := r.cycle(); err == nil || !strings.Contains(err.Error(), "put aside") || happened(r.Events(), "strategy fault", "") {
		t.Errorf("put aside, it was asked again: %v", err)
	}
	if r.Planning.Note() == "" {
		t.Error("there is no note that noX plans")
	}
	changes, err := r.Reload(context.Background(), "tester")
	r.must(err)
	r.swap(changes...)
	if s := r.strategy("evil"); s.State != "in use" || !happened(r.Events(), "strategy reloaded", "by:tester") {
		t.Errorf("after a reload it is %s", s.State)
	}
	for range faultsInARow {
		r.eventually("the plugin runs", func() bool { return r.strategy("evil").State == "in use" })
		r.cycle()
	}
	// when the time is over it gets a chance, and a longer rest if it fails again
	r.mu.Lock()
	r.Planning.record("evil").until = time.Now().Add(-time.Second)
	r.mu.Unlock()
	r.cycle()
	r.eventually("it is tried again", func() bool { return r.strategy("evil").State == "in use" })
	r.Events()
	r.cycle()
	if events := r.Events(); !happened(events, "strategy put aside", "seconds:60") {
		t.Errorf("events %v, want twice the rest", events)
	}
	r.use("evil")
	if err := r.cycle(); err != nil {
		t.Errorf("after use: %v", err)
	}
}

func TestReloadTakesAnUpgrade(t *testing.T) {
	r := newRig(t, "evil", "evil")
	must.OK(t, r.cycle())
	old := r.strategy("evil")
	r.install("evil-2", "evil")
	done := make(chan []*Change)
	go func() {
		changes, err := r.Reload(context.Background(), "tester")
		if err != nil {
			t.Error(err)
		}
		done <- changes
	}()
	cycles := 0
	for waiting := true; waiting; {
		select {
		case changes := <-done:
			r.swap(changes...)
			waiting = false
		default:
		}
		if err := r.cycle(); err != nil {
			t.Errorf("cycle %d was lost: %v", cycles, err)
		}
		cycles++
	}
	now := r.strategy("evil")
	if old.Version != "1" || now.Version != "2" || old.SHA256 == now.SHA256 || now.Plans != cycles+1 || now.Fallen != 0 {
		t.Errorf("after the reload %+v, before %+v; %d cycles", now, old, cycles)
	}
	// a broken upgrade is refused, and the old one goes on
	r.must(os.Remove(filepath.Join(r.dir, "evil")))
	r.must(os.WriteFile(filepath.Join(r.dir, "evil"), []byte("#!/bin/sh\necho I am no plugin >&2\nexit 1\n"), 0o755))
	if _, err := r.Reload(context.Background(), "tester"); err == nil || !strings.Contains(err.Error(), "I am no plugin") {
		t.Errorf("a broken upgrade: %v", err)
	}
	if err := r.cycle(); err != nil {
		t.Errorf("after a broken upgrade: %v", err)
	}
}

func TestKilledBetweenPlans(t *testing.T) {
	r := newRig(t, "klein", "klein")
	r.must(r.Begin(large).Fallen())
	r.eventually("only the one in use runs", func() bool { return len(descendants(os.Getpid())) == 2 && r.strategy("klein").Version != "" })
	tree := descendants(os.Getpid()) // the keeper, the plugin
	r.must(r.currentProcess().Kill())
	r.eventually("its keeper is gone, too", func() bool {
		return !exists("/proc/"+strconv.Itoa(tree[0])) || !slices.Contains(descendants(os.Getpid()), tree[0])
	})
	if err := r.cycle(); err == nil || !strings.Contains(err.Error(), "connection broke") && !strings.Contains(err.Error(), "started") {
		t.Errorf("killed between two plans: %v", err)
	}
	r.eventually("it is back", func() bool { return r.strategy("klein").State == "in use" })
	change, err := r.Planning.Use(context.Background(), "klein", map[string]string{"expand_limit": "1", "compact": "false"}, "tester")
	r.must(err)
	r.swap(change)
	if err := r.cycle(); err != nil {
		t.Error(err)
	}
}

// currentProcess returns the plugin in use.
func (r *rig) currentProcess() *os.Process {
	tree := descendants(os.Getpid())
	p, err := os.FindProcess(tree[len(tree)-1])
	r.must(err)
	return p
}

func TestRunsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, as on a head node")
	}
	r := newRig(t, "klein", "klein")
	r.eventually("only the one in use runs", func() bool { return len(descendants(os.Getpid())) == 2 && r.strategy("klein").Version != "" })
	tree := descendants(os.Getpid())
	want, err := runAs(r.cfg.User, logrus.New())
	r.must(err)
	text := must.Read(r.t, fmt.Sprintf("/proc/%d/status", tree[1]))
	for _, line := range []string{fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", want.UID, want.UID, want.UID, want.UID),
		fmt.Sprintf("Gid:\t%d\t%d\t%d\t%d\n", want.GID, want.GID, want.GID, want.GID), "Groups:\t \n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if session, err := unix.Getsid(tree[1]); err != nil || session != tree[1] {
		t.Errorf("its session is %d, want one of its own, %d (%v)", session, tree[1], err)
	}
	limits := must.Read(r.t, fmt.Sprintf("/proc/%d/limits", tree[1]))
	for name, limit := range map[string]int{"Max data size": r.cfg.Memory << 20, "Max address space": r.cfg.Memory<<20 + mappedBeyond,
		"Max open files": maxFiles, "Max file size": maxFileSize, "Max core file size": 0} {
		if want := fmt.Sprintf(`(?m)^%s +%d +%d `, name, limit, limit); !regexp.MustCompile(want).Match(limits) { // soft and hard
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
}

// TestPluginAccount checks that plugins run as their own account, and as the user nobody only if
// that is missing.
func TestPluginAccount(t *testing.T) {
	t.Cleanup(func() { lookupUser = user.Lookup })
	accounts := map[string]*user.User{"nobody": {Uid: "65534", Gid: "65534"}}
	lookupUser = func(name string) (*user.User, error) {
		if u := accounts[name]; u != nil {
			return u, nil
		}
		return nil, user.UnknownUserError(name)
	}
	log, text := logrus.New(), &strings.Builder{}
	log.SetOutput(text)
	if _, err := runAs("another", log); err == nil {
		t.Error("an account that the configuration names is replaced")
	}
	id, err := runAs(config.Default().Strategies.User, log)
	if err != nil || id.UID != 65534 || !strings.Contains(text.String(), "the account evoslurm-plugin does not exist") {
		t.Errorf("without the account: %v, %v; the log has %q", id, err, text)
	}
	text.Reset()
	accounts[config.PluginUser] = &user.User{Uid: "993", Gid: "994"}
	if id, err := runAs(config.Default().Strategies.User, log); err != nil || *id != (identity{993, 994}) || text.Len() > 0 {
		t.Errorf("with it: %v, %v; the log has %q", id, err, text)
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t, "noX", "klein", "evil")
	use := func(name string, parameters map[string]string) string {
		change, err := r.Planning.Use(context.Background(), name, parameters, "tester")
		if err == nil {
			r.swap(change)
			return ""
		}
		return err.Error()
	}
	chmod := func(name string, mode os.FileMode) { r.must(os.Chmod(filepath.Join(r.dir, name), mode)) }
	r.must(os.Remove(filepath.Join(r.dir, "evil"))) // a file of its own: chmod is of the file
	text := must.Read(r.t, filepath.Join(bin, "evil"))
	r.must(os.WriteFile(filepath.Join(r.dir, "evil"), text, 0o755))
	r.must(os.WriteFile(filepath.Join(r.dir, "shell.sh"), []byte("#!/bin/sh\necho '1|99|unix|/tmp/x|grpc|'\nsleep 100\n"), 0o755))
	r.must(os.WriteFile(filepath.Join(r.dir, "tcp"), []byte("#!/bin/sh\necho '1|1|tcp|127.0.0.1:80|grpc|'\nsleep 100\n"), 0o755))
	r.must(os.WriteFile(filepath.Join(r.dir, "long"), []byte("#!/bin/sh\nhead -c 1000000 /dev/zero\nsleep 100\n"), 0o755))
	r.must(os.WriteFile(filepath.Join(r.dir, "Upper"), []byte("#!/bin/sh\n"), 0o755))
	for _, c := range []struct{ what, got, want string }{
		{"unknown name", use("nonsense", nil), "there is no strategy"},
		{"unknown parameter", use("klein", map[string]string{"x": "1"}), `no parameter "x"`},
		{"parameter out of bounds", use("klein", map[string]string{"expand_limit": "0.5"}), "want 1 or more"},
		{"parameter of a built-in one", use("noX", map[string]string{"x": "1"}), "no parameters"},
		{"unknown protocol version", use("shell", nil), "Plugin version: 99"},
		{"no Unix socket", use("tcp", nil), "it listens on tcp"},
		{"endless handshake", use("long", nil), "start"},
		{"name", use("Upper", nil), "lower-case"},
		{"garbage description", use("evil", map[string]string{"mode": "describe-garbage"}), "expand limit"},
		{"hanging description", use("evil", map[string]string{"mode": "describe-hangs"}), "no answer in time"},
		{"another's name", use("evil", map[string]string{"mode": "other-name"}), "its name is other"},
	} {
		if c.want != "" && !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	chmod("evil", 0o777)
	if got := use("evil", nil); !strings.Contains(got, "written by others") {
		t.Errorf("a file that anybody may write: %q", got)
	}
	if s := r.strategy("evil"); s.State != "refused" || !strings.Contains(s.Reason, "written by others") {
		t.Errorf("listed as %+v", s)
	}
	chmod("evil", 0o755)
	good, err := sum(filepath.Join(r.dir, "evil"))
	r.must(err)
	for sum, want := range map[string]string{strings.Repeat("0", 64): "the configuration wants", good: ""} {
		r.cfg.SHA256 = []string{sum + "  evil"}
		_, err := r.Configure(context.Background(), r.cfg, "noX", "egs")
		r.must(err)
		if got := use("evil", nil); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("SHA-256: %q, want %q", got, want)
		}
	}
	r.must(os.Chmod(r.dir, 0o777))
	if got := use("klein", nil); !strings.Contains(got, "written by others") {
		t.Errorf("a folder that anybody may write: %q", got)
	}
	if r.Planning.Name() != "evil" {
		t.Errorf("in use is %s, want evil as before the refusals", r.Planning.Name())
	}
}

func TestStartsWithoutItsPlugin(t *testing.T) {
	if _, err := New(config.Default().Strategies, "nonsense", nil, logrus.New()); err == nil {
		t.Error("a strategy that does not exist was taken")
	}
	r := newRig(t, "noX")
	r.must(os.WriteFile(filepath.Join(r.dir, "broken"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	log := logrus.New()
	log.SetOutput(t.Output())
	m, err := New(r.cfg, "broken", nil, log)
	r.must(err)
	defer m.Close()
	other := &rig{t: t, cfg: r.cfg, Manager: m}
	if other.cycle() == nil {
		t.Error("a plugin that does not start has planned")
	}
	other.eventually("it is put aside", func() bool { return other.strategy("broken").State == "put aside" })
}

// TestPolicyPlugin checks that a plugin that is only a malleability policy is listed as one and not
// used for planning.
func TestPolicyPlugin(t *testing.T) {
	r := newRig(t, "noX", "gain")
	r.eventually("it is known", func() bool { return r.strategy("gain").State == "policy" })
	if _, err := r.Planning.Use(context.Background(), "gain", nil, "tester"); err == nil || err.Error() != "strategy gain: it is a malleability policy and does not plan" {
		t.Errorf("used for planning: %v", err)
	}
	if r.Planning.Name() != "noX" {
		t.Errorf("%s is in use", r.Planning.Name())
	}
}

// TestWon checks that a list shows whose plans auto took.
func TestWon(t *testing.T) {
	r := newRig(t, "noX")
	if s := r.strategy("auto"); len(s.Won) > 0 {
		t.Errorf("before its use, %v won", s.Won)
	}
	r.use("auto")
	for range 2 {
		r.must(r.cycle())
	}
	s := r.strategy("auto")
	total := 0
	for _, n := range s.Won {
		total += n
	}
	if s.Kind != "built in" || s.Plans != 2 || total != 2 {
		t.Errorf("listed as %+v", s)
	}
	if s := r.strategy("noX"); len(s.Won) > 0 {
		t.Errorf("of noX, %v won", s.Won)
	}
}

func TestSwap(t *testing.T) {
	r := newRig(t, "noX", "klein", "rigid")
	r.use("klein", "expand_limit=1", "compact=false")
	if err := r.cycle(); err != nil {
		t.Error(err)
	}
	s := r.strategy("klein")
	if !s.InUse || s.By != "tester" || s.Kind != "plugin" || s.Plans != 1 || s.Parameters[0].Value != "1" || s.Parameters[0].Default != "2" || s.Protocol != 3 {
		t.Errorf("listed as %+v", s)
	}
	if events := r.Events(); !happened(events, "strategy", "from:noX") || !happened(events, "strategy", "to:klein") || !happened(events, "strategy", "by:tester") {
		t.Errorf("events %v", events)
	}
	r.use("rigid")
	c := r.Begin(large)
	got, err := problem().Plan(c)
	r.must(err)
	c.End()
	if c.Fallen() != nil || got[0].Steps[0].Nodes != 6 {
		t.Errorf("rigid planned %v (%v), want 6 nodes all the time", got[0], c.Fallen())
	}
	c, done, err := r.Try(context.Background(), "klein", nil, large)
	r.must(err)
	_, err = problem().Plan(c)
	r.must(err)
	done()
	if r.Planning.Name() != "rigid" {
		t.Errorf("after a trial %s is in use", r.Planning.Name())
	}
}

func TestUnfitInOneCall(t *testing.T) {
	r := newRig(t, "klein", "klein")
	pool := problem()
	for n := range 4 {
		pool.Busy = append(pool.Busy, planner.NodeBusy{Node: 4 + n, Start: 0, End: planner.Forever})
	}
	for i := range 40 {
		pool.Jobs = append(pool.Jobs, planner.PoolJob{Driver: -1, Job: planner.Job{ID: strconv.Itoa(10 + i), ExpandLimit: 1, Profile: planner.Profile{{Duration: 10, Nodes: 1 + i%8}}}})
	}
	r.must(func() error {
		c := r.Begin(large)
		got, err := pool.Plan(c)
		if err != nil {
			return err
		}
		want, err := pool.Plan(fallback)
		if err != nil {
			return err
		}
		for i := range want {
			if (got[i].Unfit == "") != (want[i].Unfit == "") || got[i].Start != want[i].Start {
				return fmt.Errorf("job %d: %v, want %v", i, got[i], want[i])
			}
		}
		return errors.Join(c.Fallen())
	}())
}

// TestOneCallACycle checks that several pools, with node windows and infeasible jobs, are one call
// of the plugin, with one request per job.
func TestOneCallACycle(t *testing.T) {
	r := newRig(t, "noX", "evil")
	notes, err := os.MkdirTemp("", "evoslurm-notes-")
	r.must(err)
	defer os.RemoveAll(notes)
	r.must(os.Chmod(notes, 0o777))
	r.use("evil", "note="+notes+"/calls")
	pools := []planner.Pool{problem(), problem(), problem()}
	for n := range 8 { // gaps that do not last, so that counting nodes is not enough
		for k := range int64(30) {
			pools[1].Busy = append(pools[1].Busy, planner.NodeBusy{Node: n, Start: 50*k + 5*int64(n), End: 50*k + 5*int64(n) + 12})
		}
	}
	pools[1].Jobs = pools[1].Jobs[:0]
	for i := range 5 {
		pools[1].Jobs = append(pools[1].Jobs, planner.PoolJob{Driver: -1, Job: planner.Job{ID: strconv.Itoa(i), ExpandLimit: 1, Profile: planner.Profile{{Duration: 45, Nodes: 1}}}})
	}
	clashes := 0
	counting := pools[1]
	_, err = counting.Plan(countedNoX{fallback, &clashes})
	r.must(err)
	if clashes < 3 {
		t.Fatalf("noX plans the second pool in %d rounds, so it proves nothing", clashes)
	}
	const cycles = 4
	for range cycles {
		c := r.Begin(large)
		for _, pool := range pools {
			planned, err := pool.Plan(c)
			r.must(err)
			for i, p := range planned {
				if p.Unfit != "" {
					t.Errorf("job %d has no plan: %s", i, p.Unfit)
				}
			}
		}
		c.End()
		r.must(c.Fallen())
	}
	var lines []string
	r.eventually("the last call has ended", func() bool {
		text, _ := os.ReadFile(notes + "/calls")
		lines = strings.Split(strings.TrimSpace(string(text)), "\n")
		return len(lines) >= cycles && lines[0] != ""
	})
	if len(lines) != cycles {
		t.Errorf("%d calls in %d cycles: %v", len(lines), cycles, lines)
	}
	for _, line := range lines {
		if line != "3 13" {
			t.Errorf("a call with %q requests and jobs, want 3 requests with 13 jobs in all", line)
		}
	}
}

// countedNoX counts how often it is asked.
type countedNoX struct {
	planner.Strategy
	calls *int
}

func (countedNoX) ExpandLimit() planner.ExpandLimit { return 1 }

func (c countedNoX) Plan(p planner.Problem) (planner.Schedule, error) {
	*c.calls++
	return c.Strategy.Plan(p)
}

// TestFaultsWithinACall: whatever a plugin does to the call itself, noX plans the
// rest of the same cycle.
func TestFaultsWithinACall(t *testing.T) {
	r := newRig(t, "noX", "evil")
	r.cfg.Timeout = 500 * time.Millisecond
	_, err := r.Configure(context.Background(), r.cfg, "noX", "egs")
	r.must(err)
	for mode, want := range map[string]string{"ends": "without an answer", "second": "no answer in time", "twice": "jobs answered of|broken"} {
		r.use("evil", "mode="+mode)
		r.Events()
		began := time.Now()
		c := r.Begin(large)
		second := problem()
		second.Jobs = second.Jobs[:3]
		for _, pool := range []planner.Pool{problem(), second, problem()} {
			got, err := pool.Plan(c)
			r.must(err)
			want, err := pool.Plan(fallback)
			r.must(err)
			for i := range want {
				if got[i].Start != want[i].Start {
					t.Errorf("%s: job %d starts at second %d, want %d", mode, i, got[i].Start, want[i].Start)
				}
			}
			c.Jobs += len(got)
		}
		c.End()
		if took := time.Since(began); took > r.cfg.Timeout+10*time.Second {
			t.Errorf("%s: the cycle took %v", mode, took)
		}
		fallen := c.Fallen()
		if fallen == nil || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(fallen.Error(), w) }) {
			t.Errorf("%s: the fault is %v, want %q", mode, fallen, want)
		}
		if events := r.Events(); !happened(events, "strategy fault", "jobs_planned:11") {
			t.Errorf("%s: events %v", mode, events)
		}
	}
}

// TestKept checks that the strategy put in use before continues at the next start, and that the
// configuration's can always be restored.
func TestKept(t *testing.T) {
	r := newRig(t, "noX", "klein")
	limit := map[string]string{"expand_limit": "1.5"}
	since := time.Unix(1_700_000_000, 0)
	restart := func(configuration string, kept *Chosen) *rig {
		t.Helper()
		log := logrus.New()
		log.SetOutput(t.Output())
		m, err := New(r.cfg, configuration, kept, log)
		r.must(err)
		t.Cleanup(m.Close)
		return &rig{t: t, cfg: r.cfg, Manager: m}
	}
	change, err := r.Planning.Use(context.Background(), "klein", limit, "tester")
	r.must(err)
	if kept := change.Kept(); kept == nil || kept.Name != "klein" || kept.Parameters["expand_limit"] != "1.5" || kept.By != "tester" || kept.Since.IsZero() {
		t.Errorf("to be kept: %+v", kept)
	}
	r.swap(change)
	if s := r.strategy("klein"); s.Instead != "noX" {
		t.Errorf("in use instead of %q, want noX", s.Instead)
	}
	again := restart("noX", &Chosen{Name: "klein", Parameters: limit, By: "tester", Since: since})
	if s := again.strategy("klein"); !s.InUse || s.By != "tester" || !s.Since.Equal(since) || s.Parameters[0].Value != "1.5" || s.Instead != "noX" {
		t.Errorf("after a restart %+v", s)
	}
	if events := again.Events(); !happened(events, "strategy kept", "strategy:klein") {
		t.Errorf("events %v", events)
	}
	// back to the configuration's, by its name or without
	for _, name := range []string{"noX", api.Configured} {
		change, err := again.Planning.Use(context.Background(), name, nil, "tester")
		r.must(err)
		if kept := change.Kept(); kept != nil || change.Event().Detail["to"] != "noX" {
			t.Errorf("use %s: it keeps %+v; event %v", name, kept, change.Event())
		}
		change.Discard()
	}
	// what is no longer available is reported, and does not stop the start
	r.must(os.Remove(filepath.Join(r.dir, "klein")))
	lost := restart("rigid", &Chosen{Name: "klein", Parameters: map[string]string{"gone": "1"}, By: "tester", Since: since})
	if lost.Planning.Name() != "rigid" || !happened(lost.Events(), "strategy not kept", "gone") {
		t.Errorf("%s is in use, want rigid of the configuration", lost.Planning.Name())
	}
	// a plugin that does not start for now is waited for
	r.must(os.WriteFile(filepath.Join(r.dir, "broken"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	if waits := restart("noX", &Chosen{Name: "broken", By: "tester", Since: since}); waits.Planning.Name() != "broken" || waits.cycle() == nil {
		t.Errorf("%s is in use, want broken, with noX in its place", waits.Planning.Name())
	}
	// a reload that was overtaken does not bring the old one back
	reloads, err := again.Reload(context.Background(), "tester")
	r.must(err)
	reload := reloads[0]
	t.Cleanup(reload.Discard)
	change, err = again.Planning.Use(context.Background(), "noX", nil, "tester")
	r.must(err)
	again.swap(change)
	if !reload.Stale() {
		t.Error("a reload of what is in use no more counts")
	}
}
