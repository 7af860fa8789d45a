package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// resizes is the profile that the examples go through, up to the duration of the last step.
const resizes = "1@5s,3@5s,2@6s,4@5s,1@"

// lending are the same resizes of a malleable job, which is lent what is free besides.
const lending = "1-2@5s,3@5s,2-3@6s,4@5s,1-3@2m"

// An example is a folder of contrib/examples, run as it is there.
type example struct {
	folder, script string
	profile        string   // in place of the script's own; "": that
	resizes        bool     // it comes to the end of the profile, and not before
	variables      string   // of the script, VAR=value,…
	drives         []string // nil: merge and companion
	check          func(s *site, run exampleRun, out []string)
}

// exampleRun is an example at work.
type exampleRun struct {
	example
	drive, id string
}

func (r exampleRun) String() string { return r.folder + "/" + r.script + ", " + r.drive }

// TestExamples checks that contrib/examples work unchanged through four resizes, by merges and by
// companions: those that need small packages. With the tag examples, the others run as well.
func TestExamples(t *testing.T) {
	s := newExamples(t, 8)
	s.examples([]example{
		{folder: "bag", profile: lending, variables: "TASKS=200,DRAIN=20s", check: bagged},
		{folder: "checkpoint", profile: resizes + "5s", variables: "ITERATIONS=200", check: (*site).solved},
		{folder: "checkpoint", script: "demand.sh", variables: "ITERATIONS=100000", drives: []string{"merge"}, check: (*site).swung},
		{folder: "dask", profile: resizes + "5m", variables: "TASKS=60,DRAIN=20s", drives: []string{"companion"}, check: counted(60, `\d`)},
	})
	s.stop(syscall.SIGTERM)
}

// newExamples returns a site with the examples in folders of its out/, with the Python of Debian's
// packages.
func newExamples(t *testing.T, nodes int) *site {
	t.Helper()
	t.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH"))
	s := newSite(t, slurmtest.Options{
		Nodes: nodes, Accounting: true, PermitJobExpansion: true,
		// Open MPI's daemons of several nodes cannot share a folder. With Slurm's own BatchStartTimeout, slurmctld requeues a job whose
		// first node by name is not that of its batch script, as after merges, when that node registers again.
		ExtraConf: "TaskProlog=@DIR@/own-tmp\nBatchStartTimeout=7200\n",
		Files:     map[string]string{"own-tmp": "#!/bin/sh\nmkdir -p @DIR@/tmp/$SLURM_JOB_USER-$SLURMD_NODENAME && echo export TMPDIR=@DIR@/tmp/$SLURM_JOB_USER-$SLURMD_NODENAME\n"},
	}, nil)
	s.must(os.Mkdir(s.Cluster.Dir()+"/tmp", 0o755))
	s.must(os.Chmod(s.Cluster.Dir()+"/tmp", 0o1777))
	s.must(os.CopyFS(s.Dir+"/out", os.DirFS("../../../contrib/examples")))
	if err := os.Symlink("evosctl", bin+"/evolaunch"); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	s.must(os.CopyFS(s.Dir+"/python", os.DirFS("../../../contrib/python")))
	folders, err := filepath.Glob(s.Dir + "/out/*")
	s.must(err)
	for _, folder := range folders {
		s.must(os.Chmod(folder, 0o1777))
		scripts, _ := filepath.Glob(folder + "/*.sh")
		if _, err := os.Stat(folder + "/README.md"); err != nil || len(scripts) == 0 {
			t.Errorf("%s: %v, scripts: %q", filepath.Base(folder), err, scripts)
		}
		for _, script := range scripts {
			if text, err := os.ReadFile(script); err != nil || strings.Count(string(text), "\n") > 20 {
				t.Errorf("%s: a script of at most twenty lines: %v", script, err)
			}
		}
	}
	return s
}

// examples runs all of them at a time, as far as the cluster has nodes.
func (s *site) examples(examples []example) {
	s.t.Helper()
	begun := time.Now()
	var runs []exampleRun
	for _, e := range examples {
		if e.drives == nil {
			e.drives = []string{"merge", "companion"}
		}
		for _, drive := range e.drives {
			folder := s.Dir + "/out/" + e.folder
			if e.script == "" {
				e.script = "job.sh"
			}
			args := []string{"--drive=" + drive, "--chdir=" + folder, "--output=" + s.Dir + "/out/out-%j", "--export=ALL," + s.variables() + "," + e.variables}
			if e.profile != "" {
				args = append(args, "--profile="+e.profile)
			}
			runs = append(runs, exampleRun{e, drive, s.submit(append(args, folder+"/"+e.script)...)})
		}
	}
	for _, r := range runs {
		s.eventually(r.String()+" ends", func() bool {
			out, _, _ := s.As(0, "squeue", "--noheader", "--jobs="+r.id)
			return strings.TrimSpace(out) == ""
		})
		s.t.Logf("%s, job %s: over after %v", r, r.id, time.Since(begun).Round(time.Second))
	}
	for _, r := range runs {
		out := s.output(r.id)
		if job := s.job(r.id); r.resizes && job.Step != 5 {
			s.t.Errorf("%s: it ended in step %d of %d, and printed\n%s", r, job.Step, job.Steps, strings.Join(out[max(len(out)-40, 0):], "\n"))
		}
		r.check(s, r, out)
	}
}

// variables returns the environment by which libraries in jobs find evoslurm.py and stay on
// loopback.
func (s *site) variables() string {
	return "PYTHONPATH=" + s.Dir + "/python,PYTHONDONTWRITEBYTECODE=1,INTERFACE=lo,GLOO_SOCKET_IFNAME=lo,OMPI_MCA_btl_tcp_if_include=lo,OMPI_MCA_oob_tcp_if_include=lo"
}

// last returns what a job printed last.
func last(out []string) string {
	out = messages(out)
	return out[len(out)-1]
}

func bagged(s *site, run exampleRun, out []string) {
	s.t.Helper()
	sum := 0
	for i := range 200 {
		sum += i * i
	}
	if got, want := last(out), fmt.Sprintf("200 done, sum %d, on ", sum); !strings.HasPrefix(got, want) {
		s.t.Errorf("%s: %q, want %q", run, got, want)
	}
	if !slices.Contains(out, "200 tasks: 200 done, 0 running, 0 waiting, 0 failed") {
		s.t.Errorf("%s printed\n%s", run, strings.Join(out, "\n"))
	}
}

// counted wants the sum of n squares, by Dask.
func counted(n int, nodes string) func(*site, exampleRun, []string) {
	sum := 0
	for i := range n {
		sum += i * i
	}
	want := regexp.MustCompile(fmt.Sprintf(`^%d done, sum %d, on %s nodes$`, n, sum, nodes))
	return func(s *site, run exampleRun, out []string) {
		s.t.Helper()
		if !slices.ContainsFunc(out, want.MatchString) {
			s.t.Errorf("%s: no line is %s", run, want)
		}
	}
}

// swung wants what each pendulum has without resizing.
func (s *site) swung(run exampleRun, out []string) {
	s.t.Helper()
	if !slices.Contains(out, "24 tasks: 24 done, 0 running, 0 waiting, 0 failed") {
		s.t.Errorf("%s printed\n%s", run, strings.Join(out, "\n"))
	}
	for _, body := range []int{0, 11, 23} {
		cmd := exec.Command("python3", s.Dir+"/out/checkpoint/pendulum.py", strconv.Itoa(body), "100000")
		cmd.Env = append(os.Environ(), "EVO_CHECKPOINT=", "EVO_RESTART=")
		alone, err := cmd.Output()
		s.must(err)
		want, _, _ := strings.Cut(string(alone), " in 1 runs")
		if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, want+" in ") }) {
			s.t.Errorf("%s: no line begins with %q", run, want)
		}
	}
}

// solved wants the result that there is without resizing.
func (s *site) solved(run exampleRun, out []string) {
	s.t.Helper()
	alone, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	var want string
	for _, iterations := range []string{"1000", "0"} {
		cmd := exec.Command("python3", s.Dir+"/out/checkpoint/solve.py", iterations)
		cmd.Dir = alone
		out, err := cmd.Output()
		s.must(err)
		want = strings.TrimSpace(string(out))
	}
	if got := last(out); got != want || !strings.HasSuffix(got, "after 1000 iterations") {
		s.t.Errorf("%s: %q, and %q without resizing", run, got, want)
	}
	if !slices.Contains(out, "rank 3 of 4") {
		s.t.Errorf("%s: it never ran on four nodes: %q", run, out)
	}
}
