package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// sweepTrace has as few jobs as show a difference between strategies.
const sweepTrace = `; MaxNodes: 8
1 100 -1 300 4 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
2 110 -1 200 8 -1 -1 -1 400 -1 1 3 -1 -1 0 -1 -1 -1
3 130 -1 100 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
4 140 -1 250 3 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
5 150 -1 400 2 -1 -1 -1 600 -1 1 -1 -1 -1 0 -1 -1 -1
6 160 -1 90 5 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
`

const sweepGrid = `traces: [{file: small.swf}]
shares: [0.5, 1]
strategies: [slurm, easy, noX]
seeds: [1, 2]
`

// sweepSite is a cluster whose arrays have four tasks at most, and the folder of a user who has a sweep to run there.
type sweepSite struct {
	*testing.T
	cluster *slurmtest.Cluster
	user    slurmtest.User
}

func (s *sweepSite) file(name string) string { return filepath.Join(s.user.Home, name) }

// run runs a command as the user; the error has what it printed to stderr.
func (s *sweepSite) run(name string, args ...string) (string, error) {
	if name == "evosim" {
		name = filepath.Join(bin, name)
	}
	out, err := s.cluster.Command(s.Context(), s.user, name, args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%s %q: %w: %s", name, args, err, exit.Stderr)
	}
	return string(out), err
}

func (s *sweepSite) must(name string, args ...string) string {
	s.Helper()
	out, err := s.run(name, args...)
	must.OK(s, err)
	return out
}

var submitted = regexp.MustCompile(`^(\d+) experiments: job array (\d+) of (\d+) tasks; the table: job (\d+)\n$`)

// submit submits what is left, in so many tasks, held, and gives both jobs.
func (s *sweepSite) submit(left, tasks string, options ...string) (array, table string) {
	s.Helper()
	out := s.must("evosim", slices.Concat([]string{"sweep", "--slurm", "--output=out", "--sbatch-option=--hold"}, options, []string{"grid.yaml"})...)
	m := submitted.FindStringSubmatch(out)
	if m == nil || m[1] != left || m[3] != tasks {
		s.Fatalf("%q; want %s experiments in %s tasks", out, left, tasks)
	}
	return m[2], m[4]
}

// released has jobs run until none is left.
func (s *sweepSite) released(jobs ...string) {
	s.Helper()
	s.must("scontrol", "release", strings.Join(jobs, ","))
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		queue, err := s.run("squeue", "--noheader", "--array")
		if err == nil && queue == "" {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("jobs do not end: %v\n%s", err, queue)
		}
	}
}

// outcomes returns the files of outcomes in a folder, with the times at which they were written.
func (s *sweepSite) outcomes(folder string) map[string]time.Time {
	s.Helper()
	names, err := filepath.Glob(s.file(folder + "/*.json"))
	must.OK(s, err)
	all := map[string]time.Time{}
	for _, name := range names {
		info, err := os.Stat(name)
		must.OK(s, err)
		if info.Mode().IsRegular() {
			all[filepath.Base(name)] = info.ModTime()
		}
	}
	return all
}

func (s *sweepSite) read(name string) []byte {
	s.Helper()
	text := must.Read(s, s.file(name))
	return text
}

// TestSweep runs a user's grid as a job array. One task is cancelled, and another cannot write an
// outcome. A second call runs only what is missing, and the table equals that of the same grid
// without Slurm.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := &sweepSite{T: t, cluster: slurmtest.Start(t, slurmtest.Options{Nodes: 2, ExtraConf: "MaxArraySize=4"})}
	s.user = s.cluster.Users()[0]
	for name, text := range map[string]string{"small.swf": sweepTrace, "grid.yaml": sweepGrid} {
		must.OK(t, os.WriteFile(s.file(name), []byte(text), 0o644))
	}
	s.must("evosim", "sweep", "--output=local", "grid.yaml")

	_, err := s.run("evosim", "sweep", "--slurm", "--output=out", "--sbatch-option=--partition=nowhere", "grid.yaml")
	if err == nil || !strings.Contains(err.Error(), "invalid partition") || !strings.Contains(err.Error(), "(exit status 1)") {
		t.Errorf("sbatch's reason is not told: %v", err)
	}
	if _, err := os.Stat(s.file("out")); err == nil {
		t.Error("a refused sweep has left its folder")
	}

	array, table := s.submit("12", "4", "--workers=2")
	if job := s.must("scontrol", "show", "job", array); !strings.Contains(job, "ArrayTaskThrottle=2") {
		t.Errorf("--workers=2 is not the array's limit:\n%s", job)
	}
	s.must("scancel", array+"_1") // with experiments 4 … 6
	var last string               // of the fourth task: share 1, seed 2, noX
	for name := range s.outcomes("local") {
		if strings.HasPrefix(name, "small_steps_1_2_noX_") {
			last = s.file("out/" + name)
		}
	}
	s.must("mkdir", last) // nothing can be written there
	s.released(array, table)
	before := s.outcomes("out")
	if len(before) != 8 {
		t.Errorf("%d experiments have an outcome, want 8: %v", len(before), before)
	}
	if _, err := os.Stat(s.file("out/results.csv")); err == nil {
		t.Error("there is a table though an outcome cannot be read")
	}

	s.must("rmdir", last)
	array, table = s.submit("4", "4")
	s.released(array, table)
	for name, written := range before {
		if again := s.outcomes("out")[name]; !again.Equal(written) {
			t.Errorf("%s was run again", name)
		}
	}
	if got, want := s.read("out/results.csv"), s.read("local/results.csv"); !bytes.Equal(got, want) {
		t.Errorf("the table is\n%s\nwithout Slurm it is\n%s", got, want)
	}
	if t.Failed() {
		s.logs()
	}
}

// logs shows what the jobs printed.
func (s *sweepSite) logs() {
	names, _ := filepath.Glob(s.file("out/slurm-*.out"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		s.Logf("%s:\n%s", filepath.Base(name), text)
	}
}
