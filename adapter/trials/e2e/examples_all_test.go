//go:build examples

package e2e_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var only = flag.String("examples.only", "", "folders of contrib/examples, separated by commas, that TestExamplesAll and TestExamplesCodes run (default: all)")

// chosen reports whether the tests run a folder of contrib/examples.
func chosen(folder string) bool {
	return *only == "" || slices.Contains(strings.Split(*only, ","), folder)
}

// long is for those who end their steps themselves, as soon as they like.
const long = "1@90s,3@90s,2@90s,4@90s,1@90s"

// following is for those whose steps end as planned: the work takes longer than all but the last.
const following = "1@20s,3@45s,2@45s,1@25s,4@10m"

// TestExamplesAll: the examples of large packages, with the profile long enough for them to
// be on all nodes of a step on a slow machine; make examples installs what they need.
func TestExamplesAll(t *testing.T) {
	s := newExamples(t, 64) // all at once, four nodes each, and those that grow on demand never meet nodes that are planned for others
	all := []example{
		{folder: "dask", profile: following, resizes: true, variables: "TASKS=700,DRAIN=20s", check: counted(700, "[3-9]")},
		{folder: "dask", script: "adaptive.sh", variables: "TASKS=240,DRAIN=20s,MOST=4,PAUSE=20", check: adapted},
		{folder: "spawn", profile: following, resizes: true, variables: "PAUSE=0.9", check: (*site).painted},
		{folder: "torch", profile: long, resizes: true, variables: "ITERATIONS=100,MASTER=localhost", check: trained},
		{folder: "petsc", profile: long, resizes: true, variables: "ITERATIONS=20", check: (*site).heated},
		{folder: "amr", profile: long, resizes: true, variables: "ITERATIONS=154,LEVEL=7,OMPI_MCA_mpi_yield_when_idle=1", check: (*site).refined},
	}
	all = append(all, heatings()...)
	if chosen("mpi") {
		s.compileMPI()
	}
	if chosen("amr") {
		s.compileAMR()
	}
	s.examples(slices.DeleteFunc(all, func(e example) bool { return !chosen(e.folder) }))
	if chosen("snakemake") {
		s.workflows()
	}
	s.stop(syscall.SIGTERM)
}

// adapted wants a job that grew by the scheduler's estimate, shrank when there was nothing
// to do, and again.
func adapted(s *site, run exampleRun, out []string) {
	s.t.Helper()
	counted(240, "[2-9]")(s, run, out)
	sizes, have := 0, 1
	var grew, shrank int
	for _, line := range out {
		if m := regexp.MustCompile(`^(\d+) nodes, \d+ wanted$`).FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			if n > have {
				grew++
			} else {
				shrank++
			}
			have, sizes = n, sizes+1
		}
	}
	if grew < 2 || shrank < 2 {
		s.t.Errorf("%s: it grew %d times and shrank %d times", run, grew, shrank)
	}
}

// painted wants the picture that one process paints.
func (s *site) painted(run exampleRun, out []string) {
	s.t.Helper()
	cmd := exec.Command("python3", "mandelbrot.py", "alone")
	cmd.Dir = s.Dir + "/out/spawn"
	if said, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, said)
	}
	want, err := os.ReadFile(cmd.Dir + "/alone.png")
	s.must(err)
	got, err := os.ReadFile(cmd.Dir + "/mandelbrot-" + run.id + ".png")
	if err != nil || string(got) != string(want) {
		s.t.Errorf("%s: %d bytes of picture, %d alone, %v", run, len(got), len(want), err)
	}
	if !regexp.MustCompile(`^400 rows by the workers of [3-9] nodes$`).MatchString(last(out)) {
		s.t.Errorf("%s: %q", run, last(out))
	}
}

// trained wants the loss to go on from where it was.
func trained(s *site, run exampleRun, out []string) {
	s.t.Helper()
	var before float64
	for i, want := range []string{"1", "3", "2", "4", "1"} {
		var m []string
		for _, line := range out {
			if found := regexp.MustCompile(fmt.Sprintf(`^(\d) workers, iterations %d to %d, loss ([0-9.]+) to ([0-9.]+)$`, 100*i, 100*i+100)).FindStringSubmatch(line); found != nil {
				m = found
			}
		}
		if m == nil || m[1] != want {
			s.t.Errorf("%s: in step %d %q, want %s workers", run, i+1, m, want)
			return
		}
		first, _ := strconv.ParseFloat(m[2], 64)
		end, _ := strconv.ParseFloat(m[3], 64)
		if i > 0 && math.Abs(first-before) > before/10 || end >= first {
			s.t.Errorf("%s: in step %d the loss went from %g to %g, and was %g before", run, i+1, first, end, before)
		}
		before = end
	}
}

// heated wants the solution that there is without resizing.
func (s *site) heated(run exampleRun, out []string) {
	s.t.Helper()
	alone, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	cmd := exec.Command("sh", "-c", "PETSC_DIR=$(echo /usr/lib/petscdir/petsc*/*-real) exec python3 "+s.Dir+"/out/petsc/heat.py heat 100")
	cmd.Dir = alone
	if said, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, said)
	}
	want, got := vector(s, alone+"/heat.000000100"), vector(s, s.Dir+"/out/petsc/heat-"+run.id+".000000100")
	if len(want) != 1600 || len(got) != len(want) {
		s.t.Fatalf("%s: %d numbers, and %d without resizing", run, len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-10 {
			s.t.Fatalf("%s: at %d %g, and %g without resizing", run, i, got[i], want[i])
		}
	}
	if text := strings.Join(out, "\n"); !strings.Contains(text, "4 ranks, iterations 60 to 80") {
		s.t.Errorf("%s: it never ran on four nodes", run)
	}
}

// vector reads a file of PETSc's: eight bytes of head, then numbers.
func vector(s *site, name string) (v []float64) {
	s.t.Helper()
	text, err := os.ReadFile(name)
	s.must(err)
	for i := 8; i+8 <= len(text); i += 8 {
		v = append(v, math.Float64frombits(binary.BigEndian.Uint64(text[i:])))
	}
	return v
}

// workflows run Snakemake where jobs are submitted, its jobs in both drive modes.
func (s *site) workflows() {
	s.t.Helper()
	sum := 0
	for i := range 20 {
		sum += 5 * i * i
	}
	for _, drive := range []string{"merge", "companion"} {
		folder := s.Dir + "/out/" + drive
		s.must(os.CopyFS(folder, os.DirFS("../../../contrib/examples/snakemake")))
		s.must(os.Chmod(folder, 0o1777))
		command := fmt.Sprintf("cd %s && HOME=$PWD EVOSBATCH_DRIVE=%s PROFILE=%s TASKS=20 timeout 170 bash workflow.sh --latency-wait 60", folder, drive, long)
		said, errs, err := s.As(0, "sh", "-c", command)
		text, _ := os.ReadFile(folder + "/sum.txt")
		if !regexp.MustCompile(fmt.Sprintf(`^100 done, sum %d, on [4-8] nodes\n$`, sum)).Match(text) {
			s.t.Errorf("snakemake, %s: %q, %v\n%s%s", drive, text, err, said, errs)
		}
	}
}
