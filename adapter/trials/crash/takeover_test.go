package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	takeovers     = flag.Int("takeovers", 3, "number of takeovers to try")
	takeoverModes = flag.String("takeover.drive", "merge,companion", "drive modes of the jobs of TestTakeover, in turn")
)

// host is a host with a sidecar, as one of two on loopback.
type host struct {
	pair *pair
	name string
	dir  string

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  bool // for good
	cut    bool // its commands do not reach Slurm
	frozen bool // its commands wait
	trap   func(args []string) bool
	sprung func()
	all    sync.WaitGroup
}

// act is a change of Slurm by a host, as it began.
type act struct {
	at   time.Time
	host *host
	what string
}

// pair is a cluster with sidecars on two hosts.
type pair struct {
	*rig.Rig
	t     *testing.T
	hosts []*host
	log   *os.File

	mu   sync.Mutex
	acts []act
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t}
	var err error
	p.Rig, err = rig.New(slurmtest.Start(t, merging), bin, "")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(p.Dir) })
	p.log, err = os.OpenFile(p.Dir+"/evoslurmd.log", os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	must.OK(t, err)
	_, port, _ := net.SplitHostPort(p.Address)
	both := "127.0.0.1:" + port + ",127.0.0.2:" + port
	const head = "munge:\n  socket: %s\napi: %s\ntakeover: 30s\npoll_interval: 500ms\nmargin: 1s\n"
	common := fmt.Sprintf(head, p.Cluster.MungeSocket(), both)
	for i := range 2 {
		h := &host{pair: p, name: fmt.Sprintf("host%d", i+1), dir: fmt.Sprintf("%s/host%d", p.Dir, i+1)}
		text := common + fmt.Sprintf("database: %[1]s/db/evoslurm.db\nlisten:\n  socket: %[1]s/run/api.sock\n  tcp: 127.0.0.%[2]d:%[3]s\nslurm:\n  bin: %[1]s/slurm\n  timeout: 5s\n", h.dir, i+1, port)
		err := errors.Join(os.MkdirAll(h.dir+"/slurm", 0o755), os.WriteFile(h.dir+"/evoslurm.yaml", []byte(text), 0o644))
		for _, name := range []string{"scontrol", "squeue", "sinfo", "salloc", "scancel", "sdiag", "sacctmgr"} {
			err = errors.Join(err, os.Symlink(bin+"/slurmshim", h.dir+"/slurm/"+name))
		}
		l, failed := net.Listen("unix", filepath.Join(h.dir, "slurm", crash.SocketName))
		if err = errors.Join(err, failed); err == nil {
			err = os.Chmod(l.Addr().String(), 0o666)
		}
		must.OK(t, err)
		t.Cleanup(func() { l.Close() })
		go h.listen(l)
		p.hosts = append(p.hosts, h)
	}
	must.OK(t, os.WriteFile(p.Dir+"/evoslurm.yaml", []byte(common), 0o644))
	t.Cleanup(func() {
		for _, h := range p.hosts {
			h.stop()
		}
		if t.Failed() {
			text, _ := os.ReadFile(p.log.Name())
			t.Logf("log of both:\n%s", text)
		}
	})
	return p
}

func (h *host) listen(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var q crash.Question
			if json.NewDecoder(conn).Decode(&q) == nil {
				json.NewEncoder(conn).Encode(h.answer(q))
			}
		}()
	}
}

// answer says what becomes of a command. The trap springs while it waits.
func (h *host) answer(q crash.Question) crash.Answer {
	a := crash.Answer{Env: h.pair.Cluster.Env()}
	lease := strings.Contains(strings.Join(q.Args, " "), "evo_lease_")
	if q.Moment == crash.After {
		if changes(q.Args) && !lease && q.Exit == 0 {
			h.pair.mu.Lock()
			h.pair.acts = append(h.pair.acts, act{time.Now(), h, strings.Join(q.Args, " ")})
			h.pair.mu.Unlock()
		}
		return a
	}
	h.mu.Lock()
	if h.trap != nil && !lease && h.trap(q.Args) {
		h.trap = nil
		h.sprung()
	}
	h.mu.Unlock()
	for {
		h.mu.Lock()
		cut, frozen := h.cut, h.frozen
		h.mu.Unlock()
		if cut {
			a.Action = crash.Refuse
		}
		if !frozen {
			return a
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// start starts the sidecar, and again whenever it ends, as systemd does.
func (h *host) start() {
	h.all.Go(func() {
		for {
			cmd := exec.Command(bin+"/evoslurmd", "--config", h.dir+"/evoslurm.yaml", "--log-level=info")
			cmd.Env = append(os.Environ(), h.pair.Cluster.Env()...)
			out, in, err := os.Pipe()
			if err != nil {
				h.pair.t.Error(err)
				return
			}
			cmd.Stderr = in
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			h.mu.Lock()
			if h.ended {
				h.mu.Unlock()
				return
			}
			err = cmd.Start()
			h.cmd = cmd
			h.mu.Unlock()
			if in.Close(); err != nil {
				h.pair.t.Error(err)
				return
			}
			h.pair.copyLog(h.name, out)
			err = cmd.Wait()
			fmt.Fprintf(h.pair.log, "%s ended: %v\n", h.name, err)
			time.Sleep(time.Second)
		}
	})
}

// signal sends a signal to the sidecar.
func (h *host) signal(s syscall.Signal) { h.cmd.Process.Signal(s) }

func (h *host) stop() {
	h.mu.Lock()
	h.ended, h.cut, h.frozen = true, false, false
	if h.cmd != nil {
		h.signal(syscall.SIGCONT)
		h.signal(syscall.SIGTERM)
	}
	h.mu.Unlock()
	h.all.Wait()
}

// acting waits until a sidecar answers, and returns it with the other one.
func (p *pair) acting() (acts, other *host) {
	for i, h := range p.hosts {
		client, err := api.NewClient("unix://"+h.dir+"/run/api.sock", api.Munge{})
		must.OK(p.t, err)
		ctx, done := context.WithTimeout(p.t.Context(), time.Second)
		status, err := client.Status(ctx)
		done()
		if err == nil && status.Lease != nil && status.Lease.Standby != nil {
			return h, p.hosts[1-i]
		}
	}
	return nil, nil
}

// ways are how a sidecar is gone, each with how it comes back.
var ways = []struct {
	name     string
	go_      func(h *host)
	comeBack func(h *host)
}{
	{"killed", func(h *host) { h.cut = true; h.signal(syscall.SIGKILL) }, func(h *host) { h.cut = false }},
	{"stopped", func(h *host) { h.frozen = true; h.signal(syscall.SIGSTOP) }, func(h *host) { h.frozen = false; h.signal(syscall.SIGCONT) }},
	{"cut off", func(h *host) { h.cut = true }, func(h *host) { h.cut = false }},
}

// moments are in the middle of what a sidecar is gone. A companion comes by its salloc alone.
var moments = []struct {
	name             string
	merge, companion func(args []string) bool
}{
	{"growth", hasArg("NumNodes=0"), hasArg("--no-shell")},
	{"shrink", hasArg("NodeList="), hasArg("NodeList=")},
	{"start", hasArg("StartTime=now"), hasArg("StartTime=now")},
}

// TestTakeover: the sidecar that acts is killed, stopped, or cut off from Slurm in the middle of a start, a growth, or
// a shrink, by merging and by companions in turn. The one on the other host acts within half a minute, the first never
// again beside it, and the job gets all of its nodes. -takeovers=20 prints the figures of make takeover.
func TestTakeover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, h := range p.hosts {
		h.start()
	}
	must.OK(t, within(patience, func() error { _, err := p.setting("max_delay=17m"); return err }))
	took := map[string][]time.Duration{}
	modes := strings.Split(*takeoverModes, ",")
	for n := range *takeovers {
		drive, k := modes[n%len(modes)], n/len(modes)
		way, moment := ways[k%len(ways)], moments[(k+k/len(ways))%len(moments)]
		trap := moment.merge
		if drive == "companion" {
			trap = moment.companion
		}
		d, err := p.takeover(fmt.Sprintf("job-%d", n), drive, way.go_, way.comeBack, trap)
		if err != nil {
			t.Fatalf("%s in the middle of a %s by %s: %v\n%s", way.name, moment.name, drive, err, p.story())
		}
		fmt.Fprintf(os.Stderr, "takeover %d: %s in the middle of a %s by %s: acts after %v\n", n+1, way.name, moment.name, drive, d.Round(100*time.Millisecond))
		took[drive] = append(took[drive], d)
	}
	if text, err := p.setting(); err != nil || !strings.Contains(text, "17m") {
		t.Errorf("an operator's setting is lost: %v: %s", err, text)
	}
	for _, drive := range modes {
		if its := took[drive]; len(its) > 0 {
			slices.Sort(its)
			fmt.Fprintf(os.Stderr, "%s: %d takeovers: median %v, longest %v until the next action\n", drive, len(its), its[len(its)/2].Round(100*time.Millisecond), its[len(its)-1].Round(100*time.Millisecond))
		}
	}
}

// setting changes settings of the sidecar that acts, as root, and returns them.
func (p *pair) setting(change ...string) (string, error) {
	cmd := exec.Command(bin+"/evosctl", append([]string{"budget", "set"}, change...)...)
	if len(change) == 0 {
		cmd = exec.Command(bin+"/evosctl", "budget")
	}
	cmd.Env = append(os.Environ(), p.Env()...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return string(text), err
}

func (p *pair) takeover(name, drive string, goes, comesBack func(*host), trap func([]string) bool) (time.Duration, error) {
	var acts, other *host
	if err := within(patience, func() error {
		if acts, other = p.acting(); acts == nil {
			return errors.New("no sidecar acts and has another that follows it")
		}
		return nil
	}); err != nil {
		return 0, err
	}
	var gone time.Time
	acts.mu.Lock()
	acts.sprung = func() { gone = time.Now(); goes(acts) }
	acts.trap = trap
	acts.mu.Unlock()
	path := filepath.Join(p.Dir, name+".sh")
	if err := os.WriteFile(path, []byte(evolving), 0o755); err != nil {
		return 0, err
	}
	if _, errs, err := p.As(0, "evosbatch", "--output="+name+".out", "--profile=1@8s,3@8s,2@8s", "--drive="+drive, path, name, "5"); err != nil {
		return 0, fmt.Errorf("evosbatch: %w: %s", err, errs)
	}
	var first act
	if err := within(patience, func() error {
		acts.mu.Lock()
		since := gone
		acts.mu.Unlock()
		if since.IsZero() {
			return errors.New("the moment has not come")
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.acts, func(a act) bool { return a.host == other && a.at.After(since) })
		if i < 0 {
			return errors.New("the other sidecar does nothing")
		}
		first = p.acts[i]
		return nil
	}); err != nil {
		return 0, err
	}
	acts.mu.Lock()
	comesBack(acts)
	acts.mu.Unlock()
	err := within(patience, func() error {
		text, _ := os.ReadFile(filepath.Join(p.Dir, "out", name))
		if got, want := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), steps(1, 3, 2); !slices.Equal(got, want) {
			return fmt.Errorf("the job wrote %q, want %q", got, want)
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.acts {
		if a.host == acts && a.at.After(first.at) {
			err = errors.Join(err, fmt.Errorf("%s acts beside the other: %s", acts.name, a.what))
		}
	}
	return first.at.Sub(gone), err
}

// story tells what was done.
func (p *pair) story() string {
	var b strings.Builder
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.acts {
		fmt.Fprintf(&b, "%s %s %s\n", a.at.Format("15:04:05.000"), a.host.name, a.what)
	}
	return b.String()
}

// copyLog copies a sidecar's log.
func (p *pair) copyLog(name string, from *os.File) {
	go func() {
		defer from.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			fmt.Fprintf(p.log, "%s: %s", name, buffer[:n])
		}
	}()
}
