package controller_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/controller"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// The tests wait for Slurm nearly all of their time: more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	os.Exit(m.Run())
}

// lab is a private Slurm with a sidecar. Its jobs sleep; the test calls next for them, as evosctl
// does through the API.
type lab struct {
	t       *testing.T
	cluster *slurmtest.Cluster
	slurm   *slurmctl.Client
	store   *store.Store
	cfg     config.Config
	log     *logrus.Logger

	*controller.Controller
	stop func()
}

// newLab boots a cluster and starts a sidecar. A test that fails prints the
// sidecar's log and the event log.
func newLab(t *testing.T, options slurmtest.Options, change ...func(*config.Config)) *lab {
	t.Helper()
	l := &lab{t: t, cluster: slurmtest.Start(t, options), log: logrus.New()}
	l.slurm = &slurmctl.Client{Env: l.cluster.Env(), Timeout: 20 * time.Second}
	logFile, err := os.Create(filepath.Join(t.TempDir(), "evoslurmd.log"))
	l.must(err)
	l.log.SetOutput(logFile)
	l.log.SetLevel(logrus.DebugLevel)
	l.log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05.000", DisableQuote: true})
	l.cfg = config.Default()
	l.cfg.Database = filepath.Join(t.TempDir(), "evoslurm.db")
	l.cfg.PollInterval = 500 * time.Millisecond
	for _, f := range change {
		f(&l.cfg)
	}
	t.Cleanup(func() {
		if l.stop != nil {
			l.stop()
		}
		if t.Failed() || os.Getenv("EVOSLURM_TEST_LOG") != "" {
			text, _ := os.ReadFile(logFile.Name())
			t.Logf("the sidecar's log:\n%s", text)
		}
	})
	l.start()
	return l
}

// slowHost returns a folder with Slurm's commands as on a host on which each needs some 20 ms
// of processor time more.
func (l *lab) slowHost() (dir string) {
	l.t.Helper()
	dir = l.t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		l.must(os.Chmod(d, 0o755)) // users run expanders' commands from there
	}
	for _, name := range []string{"squeue", "sinfo", "scontrol", "scancel", "salloc", "sbatch", "srun", "sdiag", "sacctmgr"} {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		l.must(err)
		script := fmt.Sprintf("#!/bin/sh\ni=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done\nexec %s \"$@\"\n", path)
		l.must(os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

// start starts a sidecar on the same database, as if its process began.
func (l *lab) start() {
	l.t.Helper()
	st, err := store.Open(context.Background(), l.cfg.Database)
	l.must(err)
	ctl, err := controller.New(l.cfg, l.slurm, st, l.log, "test")
	l.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ctl.Run(ctx) }()
	l.Controller, l.store = ctl, st
	l.stop = func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("the sidecar stopped: %v", err)
		}
		st.Close()
		l.stop = nil
		l.replay()
	}
}

// replay checks that the core repeats what was recorded in the sidecar's last run.
func (l *lab) replay() {
	files, err := recorder.Find(l.cfg.RecorderDir())
	if err == nil {
		err = (&recorder.Player{Version: "test"}).Play(files)
	}
	if err != nil {
		l.t.Errorf("the recording: %v", err)
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) user(i int) slurmtest.User { return l.cluster.Users()[i] }

// submit parks an evolving job of the first user, as evosbatch does.
func (l *lab) submit(profile string, args ...string) uint32 {
	l.t.Helper()
	return l.submitSpec(request.Request{}, profile, args...)
}

func (l *lab) submitSpec(sp request.Request, profile string, args ...string) uint32 {
	l.t.Helper()
	p, err := planner.ParseProfile(profile)
	l.must(err)
	sp.Profile = p
	marker, ok := sp.Marker()
	if !ok {
		l.t.Fatalf("no marker for %s", profile)
	}
	return l.sbatch(0, l.parked(sp, p, marker, args)...)
}

// parked returns the arguments of sbatch for an evolving job.
func (l *lab) parked(sp request.Request, p planner.Profile, marker string, args []string) []string {
	step := 0
	if sp.Chain != nil {
		step = sp.Chain.Step - 1
	}
	return append([]string{"--begin=now+3650days", "--exclusive", "--comment=" + marker, "--nodes=" + strconv.Itoa(p[step].Nodes),
		fmt.Sprintf("--time=%d", p.Duration()/60+2)}, args...)
}

// run runs a subtest on the lab's cluster, which must be clean again after it.
func (l *lab) run(name string, f func(*lab)) {
	l.t.Helper()
	l.t.Run(name, func(t *testing.T) {
		sub := *l
		sub.t = t
		defer func() { l.Controller, l.store, l.stop = sub.Controller, sub.store, sub.stop }()
		f(&sub)
		sub.clean()
	})
}

// sbatch submits a job that sleeps, unless args say --wrap.
func (l *lab) sbatch(user int, args ...string) uint32 {
	l.t.Helper()
	args = append([]string{"--parsable", "--output=/dev/null", "--chdir=/"}, args...)
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--wrap") }) {
		args = append(args, "--wrap=exec sleep 3600")
	}
	out, err := l.cluster.Run(l.ctx(), l.user(user), "sbatch", args...)
	l.must(err)
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	l.must(err)
	return uint32(id)
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	l.t.Cleanup(cancel)
	return ctx
}

// eventually waits until check says nothing more to complain of.
func (l *lab) eventually(what string, check func() error) {
	l.t.Helper()
	deadline := time.Now().Add(4 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// running waits until the job is in a step.
func (l *lab) running(id uint32, step int) api.Job {
	l.t.Helper()
	var job api.Job
	l.eventually(fmt.Sprintf("job %d in step %d", id, step), func() (err error) {
		if job, err = l.Job(context.Background(), id); err != nil {
			return err
		}
		if job.State != "running" || job.Step != step {
			return fmt.Errorf("it is %s in step %d: %s", job.State, job.Step, job.Reason)
		}
		return nil
	})
	return job
}

// next ends a step of the job and waits for the nodes of the following one.
func (l *lab) next(id uint32, from int) api.Allocation {
	l.t.Helper()
	ctx := l.ctx()
	a, err := l.Next(ctx, id, api.NextRequest{From: from})
	for errors.Is(err, api.ErrUnavailable) && ctx.Err() == nil { // as api.Client does
		time.Sleep(50 * time.Millisecond)
		a, err = l.Next(ctx, id, api.NextRequest{From: from})
	}
	l.must(err)
	if !a.Ready {
		l.t.Fatalf("job %d: step %d's nodes never came: %s", id, from+1, a.Note)
	}
	return a
}

// slurmNodes returns how many nodes Slurm itself says that these jobs have.
func (l *lab) slurmNodes(ids ...uint32) int {
	l.t.Helper()
	var list []slurmctl.JobID
	for _, id := range ids {
		list = append(list, slurmctl.JobID(id))
	}
	jobs, err := l.slurm.JobsByID(l.ctx(), list...)
	l.must(err)
	n := 0
	for _, j := range jobs {
		if j.State == slurmctl.Running {
			n += len(j.NodeList)
		}
	}
	return n
}

// onNodes waits until Slurm runs a job on that many nodes.
func (l *lab) onNodes(id uint32, nodes int) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("job %d on %d nodes", id, nodes), func() error {
		if n := l.slurmNodes(id); n != nodes {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
}

// planned waits until a job has a plan.
func (l *lab) planned(id uint32) (job api.Job) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("job %d has a plan", id), func() (err error) {
		if job, err = l.Job(context.Background(), id); err == nil && len(job.Plan) == 0 {
			err = errors.New(job.Reason)
		}
		return err
	})
	return job
}

// has checks what the job has, according to the sidecar and to Slurm.
func (l *lab) has(a api.Allocation, nodes int) {
	l.t.Helper()
	var ids []uint32
	for _, p := range a.Parts {
		ids = append(ids, p.Job)
	}
	if got := l.slurmNodes(ids...); a.Nodes != nodes || got != nodes {
		l.t.Errorf("job %d in step %d has %d nodes by the sidecar and %d by Slurm, want %d", a.Job, a.Step, a.Nodes, got, nodes)
	}
}

// clean waits until nothing of ours is left in Slurm: no job, no reservation, no
// allocated CPU.
func (l *lab) clean() {
	l.t.Helper()
	l.eventually("a clean Slurm", func() error {
		left, err := l.cluster.Leftovers(l.ctx())
		if err == nil && !left.None() {
			err = fmt.Errorf("left: %s", left)
		}
		return err
	})
}

// ended waits until the job has ended and tells how.
func (l *lab) ended(id uint32) api.Job {
	l.t.Helper()
	var job api.Job
	l.eventually(fmt.Sprintf("the end of job %d", id), func() (err error) {
		if job, err = l.Job(context.Background(), id); err == nil && job.State != "ended" {
			err = fmt.Errorf("it is %s", job.State)
		}
		return err
	})
	return job
}

func (l *lab) cancelStock(user int, id uint32) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), l.user(user), "scancel", strconv.Itoa(int(id)))
	l.must(err)
}

func (l *lab) cancel(id uint32) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), l.user(0), "scancel", strconv.Itoa(int(id)))
	l.must(err)
}

func (l *lab) scontrol(args ...string) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", args...)
	l.must(err)
}

// end cancels a job of the first user and waits for its end.
func (l *lab) end(id uint32) {
	l.t.Helper()
	l.cancel(id)
	l.ended(id)
}
