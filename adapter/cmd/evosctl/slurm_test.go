package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// The test binary is also evosctl and evosrun, under those names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "evosctl", "evolaunch":
		os.Exit(run())
	case "evosrun":
		os.Exit(injob.Main("evosrun", version.Line(linked), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// commands puts evosctl, evolaunch and evosrun into a folder.
func commands(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	from, err := os.Open(self)
	must.OK(t, err)
	defer from.Close()
	must.OK(t, os.MkdirAll(dir, 0o755))
	to, err := os.OpenFile(filepath.Join(dir, "evosctl"), os.O_CREATE|os.O_WRONLY, 0o755)
	must.OK(t, err)
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	must.OK(t, to.Close())
	for _, name := range []string{"evosrun", "evolaunch"} {
		must.OK(t, os.Symlink("evosctl", filepath.Join(dir, name)))
	}
}

// byHand is a backend whose jobs grow by hand: the test says which Slurm jobs an evolving job has,
// and Slurm which nodes they have.
type byHand struct {
	api.Backend // whose other methods nobody calls
	slurm       *slurmctl.Client
	owner       uint32
	drive       string

	mu    sync.Mutex
	parts map[uint32][]slurmctl.JobID // companions of base jobs
	step  map[uint32]int
	grow  func(base uint32) // on next, before it answers
}

func (b *byHand) Status(context.Context) (api.Status, error) {
	return api.Status{Cluster: "by hand"}, nil
}
func (b *byHand) Jobs(context.Context, bool) ([]api.Job, error) { return nil, nil }
func (b *byHand) Job(context.Context, uint32) (api.Job, error)  { return api.Job{}, nil }
func (b *byHand) Owner(context.Context, uint32) (uint32, error) { return b.owner, nil }
func (b *byHand) Next(ctx context.Context, id uint32, r api.NextRequest) (api.Allocation, error) {
	b.grow(id)
	b.mu.Lock()
	b.step[id] = r.From + 1
	b.mu.Unlock()
	return b.Allocation(ctx, id)
}

func (b *byHand) Allocation(ctx context.Context, id uint32) (api.Allocation, error) {
	b.mu.Lock()
	ids := append([]slurmctl.JobID{slurmctl.JobID(id)}, b.parts[id]...)
	a := api.Allocation{Ready: true, Job: id, Step: max(1, b.step[id]), Steps: 2, Drive: b.drive}
	b.mu.Unlock()
	jobs, err := b.slurm.JobsByID(ctx, ids...)
	if err != nil {
		return a, err
	}
	for _, wanted := range ids {
		i := slices.IndexFunc(jobs, func(j slurmctl.Job) bool { return j.ID == wanted })
		if i < 0 || jobs[i].State != slurmctl.Running {
			return a, api.Errorf(api.ErrUnavailable, "job %d does not run", wanted)
		}
		p := api.Part{Job: uint32(wanted), NodeList: jobs[i].NodeList}
		for range p.NodeList {
			p.CPUs = append(p.CPUs, 4)
		}
		a.Parts = append(a.Parts, p)
		a.Nodes += len(p.NodeList)
	}
	return a, nil
}

// site is a real Slurm with a sidecar's API, and the commands in dir.
type site struct {
	*slurmtest.Cluster
	t       *testing.T
	user    slurmtest.User
	backend *byHand
	env     []string // of jobs
	bin     string
}

func newSite(t *testing.T, o slurmtest.Options, drive string) *site {
	t.Helper()
	c := slurmtest.Start(t, o)
	s := &site{Cluster: c, t: t, user: c.Users()[0], bin: filepath.Join(c.Dir(), "bin")}
	commands(t, s.bin)
	s.backend = &byHand{
		slurm: &slurmctl.Client{Env: c.Env()}, owner: s.user.UID, drive: drive,
		parts: make(map[uint32][]slurmctl.JobID), step: make(map[uint32]int), grow: func(uint32) {},
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	srv := &api.Server{Backend: s.backend, Log: log, TCP: "127.0.0.1:0", Munge: api.Munge{Socket: c.MungeSocket()},
		Cluster: func() string { return "slurmtest" }}
	must.OK(t, srv.Listen())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.env = []string{"GORACE=atexit_sleep_ms=0", "EVOSLURM_API=" + srv.Addresses()[0], "EVOSLURM_MUNGE_SOCKET=" + c.MungeSocket()}
	return s
}

// run is t.Run for subtests that use the site.
func (s *site) run(name string, f func(t *testing.T)) {
	outer := s.t
	defer func() { s.t = outer }()
	outer.Run(name, func(t *testing.T) {
		s.t = t
		f(t)
	})
}

// command prepares a user's command with the site's environment.
func (s *site) command(name string, args ...string) *exec.Cmd {
	if strings.HasPrefix(name, "evo") {
		name = filepath.Join(s.bin, name)
	}
	cmd := s.Command(s.t.Context(), s.user, name, args...)
	cmd.Env = append(cmd.Env, s.env...)
	for i, e := range cmd.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			cmd.Env[i] = "PATH=" + s.bin + ":" + v
		}
	}
	return cmd
}

func (s *site) must(name string, args ...string) string {
	s.t.Helper()
	out, err := combined(s.command(name, args...))
	if err != nil {
		s.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return out
}

// srunWaits matches what srun prints while the previous step's nodes are not free yet, which may
// take a moment on a busy machine.
var srunWaits = regexp.MustCompile(`(?m)^srun: (Job \d+ step creation temporarily disabled|Step created for).*\n`)

// combined runs a command and returns both of its outputs, without srun's waiting messages.
func combined(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	return string(srunWaits.ReplaceAll(out, nil)), err
}

// base submits a batch job that runs for as long as the test, and waits for its start.
func (s *site) base(nodes int) uint32 {
	s.t.Helper()
	out := s.must("sbatch", "--parsable", "--exclusive", "-N", strconv.Itoa(nodes), "-o", "/dev/null", "--wrap", "sleep 1000")
	return s.running(strings.TrimSpace(out))
}

// companion allocates further nodes beside a base job.
func (s *site) companion(base uint32, nodes int, options ...string) uint32 {
	s.t.Helper()
	args := append([]string{"--no-shell", "--exclusive", "-N", strconv.Itoa(nodes)}, options...)
	out := s.must("salloc", args...)
	_, id, _ := strings.Cut(out, "Granted job allocation ")
	job := s.running(strings.Fields(id)[0])
	s.backend.mu.Lock()
	s.backend.parts[base] = append(s.backend.parts[base], slurmctl.JobID(job))
	s.backend.mu.Unlock()
	return job
}

func (s *site) running(text string) uint32 {
	s.t.Helper()
	id, err := strconv.ParseUint(text, 10, 32)
	must.OK(s.t, err)
	s.until(fmt.Sprintf("job %d runs", id), func() bool {
		jobs, err := s.backend.slurm.JobsByID(s.t.Context(), slurmctl.JobID(id))
		return err == nil && len(jobs) == 1 && jobs[0].State == slurmctl.Running
	})
	return uint32(id)
}

// until waits for something that a working Slurm does within seconds.
func (s *site) until(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("it never came to be that %s", what)
		}
	}
}

// steps counts the steps that run, batch scripts not counted.
func (s *site) steps() int {
	out := s.must("squeue", "-h", "-s", "-o", "%i")
	n := 0
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "batch") {
			n++
		}
	}
	return n
}

// lines returns the sorted lines of an output.
func lines(out string) []string {
	l := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(l)
	return l
}

// syncWriter may be read while it is written.
type syncWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (s *syncWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

func (s *syncWriter) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.String()
}
