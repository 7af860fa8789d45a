//go:build examples

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// heatIterations take at least three minutes, so that the work outlasts all steps but the last.
const heatIterations = 3600

// heatings returns the example mpi: by Open MPI, whose ranks come and go, and by MPICH, started again in each step.
func heatings() []example {
	variables := fmt.Sprintf("PAUSE=50000,ITERATIONS=%d,OMPI_MCA_mpi_yield_when_idle=1", heatIterations)
	return []example{
		{folder: "mpi", profile: following, resizes: true, variables: variables, check: heat(`^iteration \d+: (\d) ranks$`)},
		{folder: "mpi", script: "restart.sh", profile: following, resizes: true, variables: variables, check: heat(`^saved after \d+ iterations, (\d) ranks`)},
	}
}

// compileMPI builds the example mpi for both MPIs.
func (s *site) compileMPI() {
	s.t.Helper()
	library, err := filepath.Abs("../../../contrib/c")
	s.must(err)
	folder := s.Dir + "/out/mpi"
	for _, mpi := range []struct{ name, program string }{{"openmpi", "heat"}, {"mpich", "heat-mpich"}} {
		out, mpicc := s.t.TempDir(), "mpicc."+mpi.name
		for _, words := range [][]string{
			{"make", "-s", "-C", library, "all", "mpi", "OUT=" + out, "MPICC=" + mpicc, "CFLAGS=-O2 -Wall -Wextra -Werror"},
			{mpicc, "-O2", "-Wall", "-Wextra", "-Werror", "-I" + library, "-I" + library + "/mpi", "-o", mpi.program, "heat.c", out + "/libevoslurm-mpi.a", out + "/libevoslurm.a", "-lpthread"},
		} {
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir = folder
			if said, err := cmd.CombinedOutput(); err != nil {
				s.t.Fatalf("%q: %v\n%s", words, err, said)
			}
		}
	}
}

// heat wants the sum that one process without resizes has, bit by bit, and ranks on as many nodes as each step has.
func heat(line string) func(*site, exampleRun, []string) {
	of := regexp.MustCompile(line)
	return func(s *site, run exampleRun, out []string) {
		s.t.Helper()
		if got, want := last(out), fmt.Sprintf("done after %d iterations, 4 ranks: %x", heatIterations, ring(heatIterations)); got != want {
			s.t.Errorf("%s: %q, want %q", run, got, want)
		}
		var ranks []string
		for _, said := range out {
			if m := of.FindStringSubmatch(said); m != nil {
				ranks = append(ranks, m[1])
			}
		}
		if got := strings.Join(ranks, ","); !strings.HasSuffix("1,3,2,1,4", got) && got != "1,3,2,1" || len(ranks) != 4 {
			s.t.Errorf("%s: ranks %q", run, got)
		}
	}
}

// ring returns the sum of heat.c after n iterations.
func ring(n int) (sum float64) {
	const cells = 5040
	now, next := make([]float64, cells), make([]float64, cells)
	for i := range cells / 3 {
		now[i] = 1
	}
	for range n {
		for i := range now {
			next[i] = now[i]/2 + float64(now[(i+cells-1)%cells]+now[(i+1)%cells])/4
		}
		now, next = next, now
	}
	for i, v := range now {
		sum += float64(v * float64(i+1))
	}
	return sum
}

// TestExamplesMPI checks libevoslurm-mpi with Open MPI and MPICH, against a sidecar that a script plays: what
// does not depend on Slurm, and what goes wrong.
func TestExamplesMPI(t *testing.T) {
	library, err := filepath.Abs("../../../contrib/c")
	must.OK(t, err)
	built := map[string]string{}
	for _, mpi := range []string{"openmpi", "mpich"} {
		built[mpi] = t.TempDir()
		if said, err := exec.Command("make", "-s", "-C", library, "all", "mpi", "OUT="+built[mpi], "MPICC=mpicc."+mpi, "CFLAGS=-O1 -g -Wall -Wextra -Wpedantic -Werror").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/mpi.txtar"},
		Setup: func(e *testscript.Env) error {
			for _, v := range []string{
				"PATH=/usr/bin:" + os.Getenv("PATH"), "HEADERS=" + library, "EXAMPLE=" + library + "/../examples/mpi", "OPENMPI=" + built["openmpi"], "MPICH=" + built["mpich"],
				"PYTHONPATH=" + library + "/../python", "PYTHONDONTWRITEBYTECODE=1", "TMPDIR=" + e.WorkDir, "SUM=" + regexp.QuoteMeta(fmt.Sprintf("%x", ring(150))),
				"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_plm_rsh_agent=true", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo",
				"OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_mpi_yield_when_idle=1", "PMIX_MCA_gds=hash",
			} {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			return nil
		},
	})
}
