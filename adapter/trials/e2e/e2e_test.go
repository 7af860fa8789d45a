// Package e2e_test runs the commands as users and administrators do: a real Slurm,
// evoslurmd as a process, jobs submitted with evosbatch whose scripts call evosctl.
package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// bin is the folder of the commands, built once.
var bin string

func TestMain(m *testing.M) {
	matrix.Entered()
	if err := rig.AtOnce(3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *built != "" { // in a root
		bin = *built
		os.Exit(m.Run())
	}
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// site is a cluster with Evoslurm installed, and its sidecar.
type site struct {
	*rig.Rig
	t       *testing.T
	daemon  *exec.Cmd
	socket  *os.File       // of a listener that is passed to the sidecar as systemd does; nil: none
	account *slurmctl.User // that the sidecar runs as; nil: root
	program []string       // evoslurmd; nil: the one in bin
	limits  []string       // of prlimit(1), for the sidecar
	log     *os.File
}

func newSite(t *testing.T, options slurmtest.Options, account *slurmctl.User, config ...string) *site {
	t.Helper()
	s := &site{t: t, account: account}
	more := "poll_interval: 500ms\n" + strings.Join(config, "\n") + "\n"
	if account != nil && account.Name != "slurm" {
		more += "sidecar_user: " + account.Name + "\n"
	}
	var err error
	s.Rig, err = rig.New(slurmtest.Start(t, options), bin, more)
	s.must(err)
	if account != nil {
		for _, dir := range []string{"/db", "/run"} {
			s.must(os.Mkdir(s.Dir+dir, 0o755))
			s.must(os.Chown(s.Dir+dir, int(account.UID), int(account.GID)))
		}
	}
	s.log, err = os.Create(s.Dir + "/evoslurmd.log")
	s.must(err)
	t.Cleanup(func() {
		if s.daemon != nil {
			s.stop(syscall.SIGKILL)
		}
		if t.Failed() {
			text, _ := os.ReadFile(s.log.Name())
			t.Logf("log of evoslurmd:\n%s", text)
			outs, _ := filepath.Glob(s.Dir + "/out/*")
			for _, name := range outs {
				text, _ := os.ReadFile(name)
				t.Logf("%s:\n%s", filepath.Base(name), text)
			}
		}
		os.RemoveAll(s.Dir)
	})
	s.start()
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) start() {
	s.t.Helper()
	words := []string{bin + "/evoslurmd", "--config", s.Dir + "/evoslurm.yaml"}
	if s.program != nil {
		words = slices.Concat(s.program, words[1:])
	}
	if s.limits != nil {
		words = slices.Concat([]string{"prlimit"}, s.limits, words)
	}
	if s.socket != nil {
		words = slices.Concat([]string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=api exec "$@"`, "systemd"}, words)
	}
	s.daemon = exec.Command(words[0], words[1:]...)
	s.daemon.Env = append(os.Environ(), s.Env()...)
	if s.socket != nil {
		s.daemon.ExtraFiles = []*os.File{s.socket}
	}
	s.daemon.Stderr = s.log
	if u := s.account; u != nil {
		s.daemon.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}}
	}
	s.must(s.daemon.Start())
}

// stop ends the sidecar; SIGTERM must be a clean end.
func (s *site) stop(sig syscall.Signal) {
	s.t.Helper()
	s.must(s.daemon.Process.Signal(sig))
	if err := s.daemon.Wait(); err != nil && sig == syscall.SIGTERM {
		s.t.Errorf("evoslurmd after SIGTERM: %v", err)
	}
	s.daemon = nil
}

// script writes a batch script that all users may read.
func (s *site) script(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	s.must(os.WriteFile(path, []byte(text), 0o755))
	return path
}

// submit submits a job of the first user with evosbatch.
func (s *site) submit(args ...string) string {
	s.t.Helper()
	out, errs, err := s.As(0, "evosbatch", append([]string{"--parsable", "--output=out-%j"}, args...)...)
	if err != nil {
		s.t.Fatalf("evosbatch %q: %v\n%s", args, err, errs)
	}
	id := strings.TrimSpace(out)
	if _, err := strconv.Atoi(id); err != nil {
		s.t.Fatalf("evosbatch --parsable printed %q", out)
	}
	return id
}

// patience is for what takes seconds where the machine is not slow and busy.
const patience = 5 * time.Minute

// output returns what the job printed, once it has ended and Slurm is clean.
func (s *site) output(id string) []string {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left, err := s.Cluster.Leftovers(context.Background())
		if err == nil && left.None() {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("Slurm is not clean: %s (%v)", left, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	text := must.Read(s.t, s.Dir+"/out/out-"+id)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// evolve is a job that tells in every step on how many nodes its ranks really ran.
const evolve = `#!/bin/bash
#SBATCH --job-name=evolve
#EVO --profile=1@4s,3@4s,2@4s
while [ -z "$EVO_DONE" ]; do
  ranks=$(evosrun --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME $EVO_RANK of $EVO_NTASKS' | sort -k2n)
  echo "step ${EVO_STEP:-1} on $(echo "$ranks" | cut -d' ' -f1 | sort -u | wc -l): $(echo "$ranks" | cut -d' ' -f2- | tr '\n' ';')"
  sleep 2
  eval "$(evosctl next)"
done
echo "done, hostfile $(evosctl hostfile | wc -l)"
`

var evolved = []string{
	"step 1 on 1: 0 of 1;",
	"step 2 on 3: 0 of 3;1 of 3;2 of 3;",
	"step 3 on 2: 0 of 2;1 of 2;",
	"done, hostfile 2",
}

func TestUserStory(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	evolving := s.script("evolve.sh", evolve)
	for _, drive := range []string{"merge", "companion"} {
		t.Run(drive, func(t *testing.T) {
			s.t = t
			id := s.submit("--drive="+drive, evolving)
			if got := messages(s.output(id)); !slices.Equal(got, evolved) {
				t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
			}
		})
	}
	t.Run("merge: srun and plain environment", func(t *testing.T) {
		s.t = t
		id := s.submit("--profile=1@3s,4@3s", "--wrap", `eval "$(evosctl next)"; srun -l hostname | wc -l; echo $SLURM_NNODES $SLURM_JOB_NUM_NODES $EVO_NODES $SLURM_TASKS_PER_NODE`)
		got := messages(s.output(id))
		if want := []string{"4", "4 4 4"}; len(got) != 2 || got[0] != want[0] || !strings.HasPrefix(got[1], want[1]) {
			t.Errorf("the job printed %q, want %q", got, want)
		}
	})
	t.Run("merge: nodes given back and wanted again at once", func(t *testing.T) {
		s.t = t
		id := s.submit("--profile=1@2s"+strings.Repeat(",4@2s,1@2s", 5), "--wrap",
			`while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do [ $SLURM_NNODES = 1 ] || srun -l hostname | wc -l; done`)
		if got, want := messages(s.output(id)), []string{"4", "4", "4", "4", "4"}; !slices.Equal(got, want) {
			t.Errorf("the job printed %q, want %q", got, want)
		}
	})
	t.Run("chain", func(t *testing.T) {
		s.t = t
		s.chain()
	})
	t.Run("sidecar killed and started again in mid-job", func(t *testing.T) {
		s.t = t
		id := s.submit(evolving)
		s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
		s.stop(syscall.SIGKILL)
		time.Sleep(4 * time.Second) // the script calls next meanwhile
		s.start()
		if got := messages(s.output(id)); !slices.Equal(got, evolved) {
			t.Errorf("the job printed\n%s", strings.Join(got, "\n"))
		}
	})
	t.Run("others have no say", func(t *testing.T) {
		s.t = t
		id := s.submit("--profile=1@30s,2@30s", "--wrap", "sleep 60")
		s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
		if out, errs, err := s.As(1, "evosctl", "next", "--job="+id, "--timeout=5s"); err == nil {
			t.Errorf("another user ended the job's step: %s%s", out, errs)
		}
		if j := s.job(id); j.Step != 1 || j.State != "running" {
			t.Errorf("the job is %s in step %d, want running in step 1", j.State, j.Step)
		}
		_, err := s.Cluster.Run(context.Background(), s.Cluster.Users()[0], "scancel", id)
		s.must(err)
		s.output(id)
	})
	t.Run("works with the sidecar down", func(t *testing.T) {
		s.t = t
		s.stop(syscall.SIGTERM)
		id := s.submit("--profile=2@3s", "--wrap", "echo $SLURM_NNODES")
		time.Sleep(time.Second)
		s.start()
		if got := s.output(id); !slices.Equal(got, []string{"2"}) {
			t.Errorf("the job printed %q", got)
		}
	})
	t.Run("SIGHUP", func(t *testing.T) {
		s.t = t
		file := s.Dir + "/evoslurm.yaml"
		text := must.Read(s.t, file)
		s.must(os.WriteFile(file, append(text, "strategy: 2X+c\n"...), 0o644))
		s.must(s.daemon.Process.Signal(syscall.SIGHUP))
		s.eventually("the strategy changes", func() bool { return s.status().Strategy == "2X+c" })
		s.must(os.WriteFile(file, append(text, "strategy: nonsense\n"...), 0o644))
		s.must(s.daemon.Process.Signal(syscall.SIGHUP))
		s.eventually("the refusal is logged", func() bool {
			log, _ := os.ReadFile(s.log.Name())
			return bytes.Contains(log, []byte("nonsense"))
		})
		if got := s.status().Strategy; got != "2X+c" {
			t.Errorf("after a bad configuration the strategy is %s", got)
		}
		s.must(os.WriteFile(file, text, 0o644))
	})
	t.Run("doctor", func(t *testing.T) {
		s.t = t
		out, errs, err := s.As(0, "evosctl", "doctor")
		if !strings.Contains(out, "merge") {
			t.Errorf("doctor (%v) does not say merge:\n%s%s", err, out, errs)
		}
	})
	s.t = t
	s.stop(syscall.SIGTERM)
}

// messages leaves out what commands told on stderr.
func messages(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.HasPrefix(l, "evosctl:") || strings.HasPrefix(l, "evosrun:") || strings.HasPrefix(l, "srun:")
	})
}

func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out waiting: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// job returns the job as evosqueue --json tells it to another user.
func (s *site) job(id string) (found api.Job) {
	s.t.Helper()
	all, err := s.Jobs(1)
	if err != nil {
		s.t.Log(err)
	}
	for _, j := range all {
		if strconv.Itoa(int(j.ID)) == id {
			found = j
		}
	}
	return found
}

// client asks the sidecar as root.
func (s *site) client() *api.Client {
	s.t.Helper()
	c, err := api.NewClient("unix://"+s.Dir+"/run/api.sock", api.Munge{})
	s.must(err)
	c.Trusts = func(context.Context, uint32) (bool, error) { return s.account != nil, nil }
	return c
}

func (s *site) status() api.Status {
	s.t.Helper()
	status, err := s.client().Status(context.Background())
	s.must(err)
	return status
}

// chain runs a chain and checks what it wrote.
func (s *site) chain() {
	s.t.Helper()
	script := s.script("chain.sh", "#!/bin/sh\necho step $EVO_STEP of $EVO_STEPS on $SLURM_NNODES >> chain-trace\nsleep 1\n")
	s.submit("--drive=chain", "--profile=1@5s,3@5s,2@5s", script)
	const want = "step 1 of 3 on 1\nstep 2 of 3 on 3\nstep 3 of 3 on 2\n"
	text := ""
	s.eventually("the chain's end", func() bool {
		b, _ := os.ReadFile(s.Dir + "/out/chain-trace")
		text = string(b)
		left, err := s.Cluster.Leftovers(context.Background())
		return len(text) >= len(want) && err == nil && left.None()
	})
	if text != want {
		s.t.Errorf("the chain wrote %q, want %q", text, want)
	}
}

// account returns an account of the machine for the sidecar to run as.
func account(t *testing.T, name string) *slurmctl.User {
	t.Helper()
	found, err := rig.Lookup(name)
	must.OK(t, err)
	return found.User
}

// TestAsSlurmUser: without root, all drive modes work, since the jobs' processes submit expanders and companions.
func TestAsSlurmUser(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, account(t, "slurm"))
	evolving := s.script("evolve.sh", evolve)
	t.Run("merge", func(t *testing.T) {
		s.t = t
		if got := messages(s.output(s.submit(evolving))); !slices.Equal(got, evolved) {
			t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
		}
	})
	t.Run("chain", func(t *testing.T) {
		s.t = t
		s.chain()
	})
	s.t = t
	s.byJob()
	s.t = t
	s.stop(syscall.SIGTERM)
}
