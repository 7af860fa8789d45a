//go:build examples

package e2e_test

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// TestExamplesCodes runs the examples of codes that people run, through four resizes in both drive modes.
func TestExamplesCodes(t *testing.T) {
	s := newExamples(t, 48)
	all := []example{
		{folder: "parallel", profile: following, resizes: true, variables: "TASKS=6000,PAUSE=0.1,DRAIN=30s", check: paralleled(6000, false)},
		// Starts of 30 s or more: those of 20 s may end just before a node leaves after 45 s.
		{folder: "parallel", profile: following, resizes: true, variables: "TASKS=8000,PAUSE=0.1,CHUNK=300,DRAIN=4s", check: paralleled(8000, true)},
		{folder: "lammps", profile: long, resizes: true, variables: "MORE=1000,OMPI_MCA_mpi_yield_when_idle=1", check: (*site).deposited},
		{folder: "gromacs", profile: "1@30s,3@40s,2@35s,4@40s,1@30s", resizes: true, variables: "SPARE=15,OMPI_MCA_mpi_yield_when_idle=1", check: (*site).conserved},
		{folder: "workqueue", profile: following, resizes: true, variables: "TASKS=1200,SLOTS=4,DRAIN=2s,MASTER=localhost", check: queued(1200)},
		{folder: "openfoam", profile: long, resizes: true, variables: "OMPI_MCA_mpi_yield_when_idle=1", check: (*site).flowed},
		{folder: "r", profile: following, resizes: true, variables: "TASKS=500,DRAIN=30s,MASTER=localhost", check: futured(500, false)},
		{folder: "r", profile: following, resizes: true, variables: "TASKS=14,PAUSE=60,DRAIN=4s,MASTER=localhost", check: futured(14, true)},
	}
	if chosen("gromacs") {
		if said, status := s.alone(s.Dir+"/out/gromacs", "bash", "prepare.sh"); status != 0 {
			t.Fatal(said)
		}
	}
	s.examples(slices.DeleteFunc(all, func(e example) bool { return !chosen(e.folder) }))
	s.stop(syscall.SIGTERM)
}

// alone runs a code on one rank without Slurm.
func (s *site) alone(folder, command string, args ...string) (said string, status int) {
	s.t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
