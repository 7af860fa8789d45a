package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	bin string // folder of the commands, built once

	all     = flag.Bool("hostile.all", false, "run every attack in a round of its own (default: the short ones, most of them at once)")
	account = flag.String("hostile.account", "root", "the sidecar's account: root, slurm, or operator")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if code, ok := inPrivateTmp(); ok {
		os.Exit(code)
	}
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// The cluster's two users.
const (
	victim = iota
	attacker
)

const (
	// mostLate is how long a job may wait for due nodes, beyond its wait on the same machine
	// without an attack.
	mostLate = 2 * time.Second
	// rounds is how often an attack is repeated in which the victim's job was late.
	rounds = 3
	// mostMemory bounds the sidecar's resident memory, in MiB.
	mostMemory = 200
	// patience is for what takes seconds, on a slow and busy machine.
	patience = 3 * time.Minute
)

// An attack is what a hostile user does while the victim's job runs.
type attack struct {
	name  string
	short bool // part of the short form, where all attacks run at once
	alone bool // in the short form, too, in a round of its own: it needs nodes for a job of the attacker's
	// run attacks until it is through or ctx ends, which it does with the victim's job. It
	// returns what the sidecar did wrong beyond what every round checks.
	run func(ctx context.Context, f *field) error
	// away is how long the attack keeps the sidecar away by the administrator's own doing,
	// such as a restart.
	away time.Duration
}

// field is a cluster with a sidecar under attack.
type field struct {
	*rig.Rig
	t       *testing.T
	account rig.Account // the sidecar's
	log     *os.File
	quiet   time.Duration // longest wait for nodes without an attack
	victim  uint32        // the victim's evolving job

	page      string // address of the page
	forwarder string // address of a forwarder, which the sidecar's configuration names

	mu     sync.Mutex
	daemon *exec.Cmd
}

func newField(t *testing.T, options slurmtest.Options, more string) *field {
	t.Helper()
	f := &field{t: t}
	var err error
	f.account, err = rig.FindAccount(*account)
	f.must(err)
	f.Rig, err = rig.New(slurmtest.Start(t, options), bin, "poll_interval: 500ms\n"+f.account.Configuration()+more)
	f.must(err)
	f.must(f.account.Promote(f.Cluster))
	for _, address := range []*string{&f.page, &f.forwarder} {
		*address, err = rig.FreeAddress()
		f.must(err)
	}
	f.must(os.WriteFile(f.Dir+"/web.tokens", []byte(f.Cluster.Users()[victim].Name+" "+webToken), 0o600))
	f.must(f.account.Own(f.Dir+"/web.tokens", f.Dir+"/db", f.Dir+"/run"))
	for _, args := range [][]string{{"add", "qos", "spare"}, {"add", "qos", "rush", "preempt=spare"}, {"modify", "account", "proj", "set", "qos+=spare,rush"}} {
		f.slurm("sacctmgr", append([]string{"-i"}, args...)...)
	}
	f.log, err = os.Create(f.Dir + "/evoslurmd.log")
	f.must(err)
	t.Cleanup(func() {
		f.stop(syscall.SIGKILL)
		if t.Failed() {
			text, _ := os.ReadFile(f.log.Name())
			t.Logf("the end of evoslurmd's log:\n%s", text[max(0, len(text)-20_000):])
		}
		os.RemoveAll(f.Dir)
	})
	f.start()
	return f
}

func (f *field) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.daemon = exec.Command(bin+"/evoslurmd", "--config", f.Dir+"/evoslurm.yaml")
	f.daemon.Env = append(append(os.Environ(), f.Env()...),
		"EVOSLURM_WEB_LISTEN="+f.page, "EVOSLURM_WEB_TOKENS="+f.Dir+"/web.tokens", "EVOSLURM_LISTEN_FORWARDED="+f.forwarder)
	f.daemon.Stderr = f.log
	f.account.Become(f.daemon)
	if err := f.daemon.Start(); err != nil {
		f.t.Error(err)
	}
}

func (f *field) stop(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.daemon != nil && f.daemon.Process != nil {
		_ = f.daemon.Process.Signal(sig)
		_ = f.daemon.Wait()
	}
	f.daemon = nil
}

// alive reports whether the sidecar's process still runs.
func (f *field) alive() bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.daemon.Process.Pid))
	return err == nil && !strings.Contains(string(state), ") Z ")
}

// memory returns the sidecar's greatest resident memory since the last call of forget, in MiB.
func (f *field) memory() int {
	status := must.Read(f.t, fmt.Sprintf("/proc/%d/status", f.daemon.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(text)[0])
			f.must(err)
			return kib / 1024
		}
	}
	f.t.Fatal("no VmHWM in /proc")
	return 0
}

func (f *field) forget() {
	f.must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", f.daemon.Process.Pid), []byte("5"), 0))
}

// as runs a shell script as one of the users until it ends, ctx does, or two minutes have
// passed, and returns what it printed.
func (f *field) as(ctx context.Context, user int, script string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := f.Cluster.Command(ctx, f.Cluster.Users()[user], "/bin/bash", append([]string{"-c", script, "attack"}, args...)...)
	cmd.Env = append(cmd.Env, f.Env()...)
	cmd.Dir = f.Dir + "/out"
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = nil // it was meant to run until then
	}
	return string(out), err
}

// attackWith returns an attack that is a script of the attacker's.
func attackWith(script string) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		out, err := f.as(ctx, attacker, prelude+script, fmt.Sprint(f.victim), f.Dir+"/run/api.sock")
		if err != nil {
			return fmt.Errorf("the attack's script: %w\n%s", err, out)
		}
		return tried(out)
	}
}

// slurm returns what a Slurm command prints for root.
func (f *field) slurm(name string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := f.Cluster.Run(ctx, slurmtest.Root, name, args...)
	f.must(err)
	return strings.TrimSpace(out)
}

func (f *field) eventually(what string, check func() error) {
	f.t.Helper()
	end := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// The victim's job says of each step on how many nodes it was and how many milliseconds
// evosctl next took to bring them.
const (
	profile = "1@5s,3@5s,1@5s,3@5s"
	evolve  = `#!/bin/bash
sleep 5
while b=$(date +%s%3N); eval "$(evosctl next)"; [ -z "$EVO_DONE" ]; do
  echo "had $EVO_STEP $EVO_NODES $(($(date +%s%3N) - b))"
  sleep 5
done
`
)

var steps = []string{"2 3", "3 1", "4 3"}

// submit submits a job of the victim's and waits until it runs.
func (f *field) submit(name string, args ...string) uint32 {
	f.t.Helper()
	out, errs, err := f.As(victim, name, append([]string{"--parsable"}, args...)...)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", name, err, errs)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	f.must(err)
	f.eventually(fmt.Sprintf("job %d runs", id), func() error {
		if s := f.state(uint32(id)); s != "RUNNING" {
			return errors.New(s)
		}
		return nil
	})
	return uint32(id)
}

func (f *field) state(id uint32) string {
	f.t.Helper()
	return field1(f.slurm("scontrol", "-o", "show", "job", fmt.Sprint(id)), "JobState")
}

// field1 returns a field of a line of scontrol's.
func field1(line, name string) string {
	for word := range strings.FieldsSeq(line) {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			return v
		}
	}
	return ""
}

// round runs attacks beside the victim's jobs and returns the longest wait for nodes.
func (f *field) round(attacks ...attack) (longest time.Duration) {
	f.t.Helper()
	script := f.Dir + "/evolve.sh"
	f.must(os.WriteFile(script, []byte(evolve), 0o755))
	stock := f.submit("sbatch", "-N1", "--exclusive", "--time=10", "--output=/dev/null", "--wrap=exec sleep 600")
	nodes := field1(f.slurm("scontrol", "-o", "show", "job", fmt.Sprint(stock)), "NodeList")
	f.victim = f.submit("evosbatch", "--output=victim-%j", "--profile="+profile, script)
	f.forget()

	ctx, cancel := context.WithCancel(context.Background())
	var waits sync.WaitGroup
	for _, a := range attacks {
		waits.Go(func() {
			if err := a.run(ctx, f); err != nil {
				f.t.Errorf("%s: %v", a.name, err)
			}
		})
	}
	f.eventually("the victim's job ends", func() error {
		if s := f.state(f.victim); s == "RUNNING" || s == "COMPLETING" || s == "PENDING" {
			return errors.New(s)
		}
		return nil
	})
	cancel()
	waits.Wait()

	if s := f.state(f.victim); s != "COMPLETED" {
		f.t.Errorf("the victim's job is %s", s)
	}
	longest = f.waits()
	line := f.slurm("scontrol", "-o", "show", "job", fmt.Sprint(stock))
	if s, on := field1(line, "JobState"), field1(line, "NodeList"); s != "RUNNING" || on != nodes {
		f.t.Errorf("the victim's stock job is %s on %s, it was RUNNING on %s", s, on, nodes)
	}
	if !f.alive() {
		f.t.Fatal("the sidecar has ended")
	}
	if mib := f.memory(); mib > mostMemory {
		f.t.Errorf("the sidecar took %d MiB, want at most %d", mib, mostMemory)
	} else {
		f.t.Logf("longest wait for nodes %v, the sidecar took at most %d MiB", longest, mib)
	}
	f.clean(stock)
	return longest
}

// attacked runs rounds until the victim's job has its nodes in time: an attack that delays it does
// so in every round, and a machine that is busy with something else does not.
func (f *field) attacked(attacks ...attack) {
	f.t.Helper()
	want := f.quiet + mostLate
	for _, a := range attacks {
		want = max(want, f.quiet+mostLate+a.away)
	}
	longest := time.Duration(0)
	for range rounds {
		if longest = f.round(attacks...); longest <= want || f.t.Failed() {
			return
		}
		f.t.Logf("late; of job %d was logged:\n%s", f.victim, f.loggedOfVictim())
	}
	f.t.Errorf("the victim's job waited for its nodes longer than %v in each of %d rounds, %v in the last one", want, rounds, longest)
}

// loggedOfVictim returns what the sidecar and slurmctld logged of the victim's job.
func (f *field) loggedOfVictim() string {
	var b strings.Builder
	own := regexp.MustCompile(fmt.Sprintf(`\b(job=|JobId=|evo_)%d\b|evo_%[1]d_`, f.victim))
	for _, name := range []string{f.log.Name(), f.Cluster.Dir() + "/log/slurmctld.log"} {
		text := must.Read(f.t, name)
		for line := range strings.Lines(string(text)) {
			if own.MatchString(line) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// waits reads what the victim's job printed, checks its steps, and returns how long it waited
// for nodes.
func (f *field) waits() (longest time.Duration) {
	f.t.Helper()
	text := must.Read(f.t, fmt.Sprintf("%s/out/victim-%d", f.Dir, f.victim))
	var got []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "had" {
			continue // a message
		}
		ms, err := strconv.Atoi(words[3])
		f.must(err)
		got, longest = append(got, words[1]+" "+words[2]), max(longest, time.Duration(ms)*time.Millisecond)
	}
	if !slices.Equal(got, steps) {
		f.t.Errorf("the victim's job had steps %q, want %q; it printed\n%s", got, steps, text)
	}
	return longest
}

// clean ends the attacker's jobs and the victim's stock job, after which nothing may be left.
func (f *field) clean(stock uint32) {
	f.t.Helper()
	f.slurm("scancel", fmt.Sprint(stock))
	f.eventually("nothing is left", func() error {
		f.slurm("scancel", "--user="+f.Cluster.Users()[attacker].Name)
		left, err := f.Cluster.Leftovers(context.Background())
		if err == nil && !left.None() {
			err = errors.New(left.String())
		}
		return err
	})
	outs, _ := filepath.Glob(f.Dir + "/out/slurm-*")
	for _, out := range outs {
		f.must(os.Remove(out))
	}
}

// TestHostile runs the attacks.
func TestHostile(t *testing.T) {
	f := newField(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "PreemptType=preempt/qos\nPreemptMode=CANCEL",
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"}, {Name: "urgent", Extra: "PriorityTier=10"}}}, "")
	// Without an attack, the wait only sets what is in time under one: a busy machine is nobody's attack.
	if f.quiet = f.round(); t.Failed() {
		t.Fatal("the victim's jobs fail without an attack")
	}
	if !*all {
		var together []attack
		for _, a := range attacks {
			switch {
			case a.short && a.alone:
				f.attacked(a)
			case a.short:
				together = append(together, a)
			}
		}
		f.attacked(together...)
		return
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			f.t = t
			f.attacked(a)
		})
		f.t = t
	}
}
