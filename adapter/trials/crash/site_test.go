package crash_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	bin string // folder of the commands, built once

	account = flag.String("crash.account", "root", "the sidecar's account: root, slurm, or operator")
)

func TestMain(m *testing.M) {
	if err := rig.AtOnce(6); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "-tags=crashtest", "./slurmshim")
}

// site is a cluster with a sidecar whose every command and commit is asked for.
// Another user's jobs run there that nothing may touch.
type site struct {
	*rig.Rig
	t       *testing.T
	control *control
	more    []string // of the sidecar's environment
	account rig.Account
	log     *os.File

	mu      sync.Mutex
	daemon  *exec.Cmd
	exited  chan struct{} // of daemon
	stopped bool          // on purpose: not to be started again
	restart sync.WaitGroup

	bystander slurmctl.Job // before anything was done
}

// shimmed lists the commands of Slurm that the test is asked for.
var shimmed = []string{"scontrol", "squeue", "sinfo", "salloc", "scancel", "sbatch", "sdiag", "sacctmgr"}

func newSite(t *testing.T, options slurmtest.Options, extra string) *site {
	t.Helper()
	s := &site{t: t}
	var err error
	s.account, err = rig.FindAccount(*account)
	s.must(err)
	options.Accounting = options.Accounting || s.account.Operator
	paces := "poll_interval: 250ms\nmargin: 1s\n" + s.account.Configuration()
	s.Rig, err = rig.New(slurmtest.Start(t, options), bin, paces)
	s.must(err)
	s.must(s.account.Promote(s.Cluster))
	s.must(s.account.Own(s.Dir + "/run"))
	s.must(os.Mkdir(s.Dir+"/slurm", 0o755))
	for _, name := range shimmed {
		s.must(os.Symlink(bin+"/slurmshim", s.Dir+"/slurm/"+name))
	}
	s.control = newControl(t, s.Dir+"/slurm", s.Cluster.Env(), s.crash)
	s.log, err = os.OpenFile(s.Dir+"/evoslurmd.log", os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	s.must(err)
	s.must(os.WriteFile(s.Dir+"/evoslurmd.yaml", []byte(s.Configuration(paces+"slurm:\n  bin: "+s.Dir+"/slurm\n  timeout: 5s\n"+extra)), 0o644))
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			text, _ := os.ReadFile(s.log.Name())
			t.Logf("log of evoslurmd:\n%s", text)
		}
		os.RemoveAll(s.Dir)
	})
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// sidecar prepares an evoslurmd of this site.
func (s *site) sidecar() *exec.Cmd {
	cmd := exec.Command(bin+"/evoslurmd", "--config", s.Dir+"/evoslurmd.yaml")
	cmd.Env = slices.Concat(os.Environ(), s.Env(), []string{crash.SocketVariable + "=" + s.Dir + "/slurm/" + crash.SocketName}, s.more)
	cmd.Stderr = s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.account.Become(cmd)
	return cmd
}

// notRoot has the sidecar run as SlurmUser if so, in place of root.
func (s *site) notRoot(so bool) {
	s.t.Helper()
	if so && s.account.User == nil {
		var err error
		s.account, err = rig.FindAccount("slurm")
		s.must(err)
		s.must(s.account.Own(s.Dir + "/run"))
	}
}

// growing matches the command that has the expander of the second step submitted: salloc, or what opens the hold to the
// job's user, whose process then runs salloc.
func (s *site) growing(args []string) bool {
	has := func(part string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, part) })
	}
	return args[0] == "salloc" || s.account.User != nil && has("ReservationName=evo_") && has("_2_") && has("Users="+s.Cluster.Users()[0].Name)
}

// start starts the sidecar, and again whenever it ends before stop.
func (s *site) start() {
	s.t.Helper()
	s.mu.Lock()
	s.stopped = false
	s.mu.Unlock()
	s.must(s.launch())
}

const pause = 200 * time.Millisecond // between a crash and the restart

func (s *site) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	cmd, exited := s.sidecar(), make(chan struct{})
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemon, s.exited = cmd, exited
	s.restart.Go(func() {
		err := cmd.Wait()
		close(exited)
		s.mu.Lock()
		stopped := s.stopped
		s.mu.Unlock()
		if stopped {
			return
		}
		fmt.Fprintf(s.log, "--- evoslurmd ended (%v) and is started again\n", err)
		time.Sleep(pause)
		if err := s.launch(); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

// crash kills the sidecar with SIGKILL and returns when it is gone.
func (s *site) crash() {
	s.mu.Lock()
	cmd, exited := s.daemon, s.exited
	s.mu.Unlock()
	if cmd != nil {
		cmd.Process.Signal(syscall.SIGKILL)
		<-exited
	}
}

// stop ends the sidecar for good.
func (s *site) stop() {
	s.mu.Lock()
	s.stopped = true
	cmd, exited := s.daemon, s.exited
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(30 * time.Second):
		cmd.Process.Signal(syscall.SIGKILL)
		s.t.Errorf("evoslurmd does not end on SIGTERM")
	}
	s.restart.Wait()
	s.mu.Lock()
	s.daemon = nil
	s.mu.Unlock()
}

// as runs a command as one of the cluster's users.
func (s *site) as(user int, name string, args ...string) (string, error) {
	out, errs, err := s.As(user, name, args...)
	if err != nil {
		err = fmt.Errorf("%s %q: %w\n%s", name, args, err, errs)
	}
	return out, err
}

// root runs a command of Slurm as the administrator.
func (s *site) root(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Cluster.Run(ctx, slurmtest.Root, name, args...)
}

// submit submits an evolving job of the first user; its trace is in out/NAME.
func (s *site) submit(name, script string, args ...string) (slurmctl.JobID, error) {
	path := filepath.Join(s.Dir, name+".sh")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		return 0, err
	}
	args = append(append([]string{"--parsable", "--output=" + name + ".out", "--job-name=" + name}, args...), path, name)
	out, err := s.as(0, "evosbatch", args...)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	return slurmctl.JobID(id), err
}

// trace returns what a job wrote into its trace so far.
func (s *site) trace(name string) []string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "out", name))
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// occupy starts the other user's jobs: one that runs on the last node for as long
// as the site lives, one that stays pending. The first is remembered.
func (s *site) occupy() {
	s.t.Helper()
	out, err := s.as(1, "sbatch", "--parsable", "--output=/dev/null", "--exclusive", "--nodelist=n"+strconv.Itoa(s.Cluster.Options().Nodes),
		"--time=1-0", "--job-name=bystander", "--wrap=exec sleep 86400")
	s.must(err)
	_, err = s.as(1, "sbatch", "--parsable", "--output=/dev/null", "--begin=now+1day", "--job-name=evo_1_2_3", "--comment=mine", "--wrap=exit")
	s.must(err)
	id, err := strconv.ParseUint(strings.TrimSpace(out), 10, 32)
	s.must(err)
	s.eventually("the bystander runs", func() error {
		jobs, err := s.Cluster.Client().JobsByID(context.Background(), slurmctl.JobID(id))
		if err != nil || len(jobs) != 1 || jobs[0].State != slurmctl.Running {
			return fmt.Errorf("%+v %v", jobs, err)
		}
		s.bystander = jobs[0]
		return nil
	})
}

func (s *site) eventually(what string, check func() error) {
	s.t.Helper()
	if err := within(patience, check); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// within repeats a check until it has nothing to complain of.
func within(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// clean returns what is left in Slurm beside the bystander, and whether that was
// touched.
func (s *site) clean() error {
	left, err := s.Cluster.Leftovers(context.Background())
	if err != nil {
		return err
	}
	left.Jobs = slices.DeleteFunc(left.Jobs, func(j string) bool {
		return strings.Contains(j, " bystander ") || strings.Contains(j, " evo_1_2_3 ")
	})
	left.Nodes = slices.DeleteFunc(left.Nodes, func(n string) bool {
		return len(s.bystander.NodeList) == 1 && strings.HasPrefix(n, s.bystander.NodeList[0]+" ")
	})
	left.AllocatedCPUs -= s.bystander.NumCPUs
	if !left.None() {
		return fmt.Errorf("left in Slurm: %s", left)
	}
	if s.bystander.ID == 0 {
		return nil
	}
	jobs, err := s.Cluster.Client().Jobs(context.Background())
	if err != nil {
		return err
	}
	if len(jobs) != 2 {
		return fmt.Errorf("%d jobs in Slurm, want the bystander's two", len(jobs))
	}
	for _, j := range jobs {
		if j.ID == s.bystander.ID && (j.State != slurmctl.Running || !j.StartTime.Equal(s.bystander.StartTime) ||
			!slices.Equal(j.NodeList, s.bystander.NodeList) || j.TimeLimit != s.bystander.TimeLimit) {
			return fmt.Errorf("the bystander was touched: %+v, was %+v", j, s.bystander)
		}
	}
	return nil
}

// status returns what the sidecar says of itself.
func (s *site) status() (api.Status, error) {
	client, err := api.NewClient("unix://"+s.Dir+"/run/api.sock", api.Munge{})
	if err != nil {
		return api.Status{}, err
	}
	client.Trusts = func(context.Context, uint32) (bool, error) { return s.account.User != nil, nil }
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.Status(ctx)
}

// job returns one of the evolving jobs, as the sidecar tells them.
func (s *site) job(id slurmctl.JobID) (api.Job, error) {
	all, err := s.Jobs(1)
	for _, j := range all {
		if j.ID == uint32(id) {
			return j, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the sidecar does not know job %d", id)
	}
	return api.Job{}, err
}
