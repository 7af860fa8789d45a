//go:build examples

package e2e_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// thermo matches a line of LAMMPS: timestep, atoms, and energies.
var thermo = regexp.MustCompile(`(?m)^ +(\d+) +(\d+) (-\d\S+) (\d\S*) *$`)

// lammps runs LAMMPS on one rank without Slurm, and returns what it prints and its exit status.
func (s *site) lammps(folder string, more int) (said string, status int) {
	s.t.Helper()
	return s.alone(folder, "lmp", "-in", s.Dir+"/out/lammps/deposit.lmp", "-var", "name", "x", "-var", "more", strconv.Itoa(more), "-log", "none")
}

// deposited wants the atoms and energies of a run on one rank, at each line that it prints.
func (s *site) deposited(run exampleRun, out []string) {
	s.t.Helper()
	folder, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	said, _ := s.lammps(folder, 5000)
	want := map[string][]string{}
	for _, m := range thermo.FindAllStringSubmatch(said, -1) {
		want[m[1]] = m
	}
	text := strings.Join(out, "\n")
	got := thermo.FindAllStringSubmatch(text, -1)
	if len(want) != 26 || len(got) != 30 || !strings.Contains(text, "  4 by 1 by 1 MPI processor grid") {
		s.t.Fatalf("%s: %d lines, and %d on one rank; or never on four ranks:\n%s", run, len(got), len(want), text)
	}
	for _, m := range got {
		if w := want[m[1]]; w == nil || m[2] != w[2] || !(apart(m[3], w[3]) < 1e-4) || !(apart(m[4], w[4]) < 1e-4) {
			s.t.Errorf("%s: %q, and %q on one rank", run, m, w)
		}
	}
	trace := must.Read(s.t, s.Dir+"/out/lammps/deposit-"+run.id+".trace")
	if !regexp.MustCompile(`^([0-9.]+ [0-9]+\n){30}$`).Match(trace) || !strings.HasSuffix(string(trace), " 1104\n") {
		s.t.Errorf("%s: the trace is\n%s", run, trace)
	}
	s.refusesRestart(folder)
}

// apart returns how far two numbers are from each other, as a part of the second.
func apart(a, b string) float64 {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return math.NaN()
	}
	return math.Abs(x-y) / max(math.Abs(y), 1e-300)
}

// refusesRestart wants LAMMPS to refuse a restart file of another version, and one that is cut short.
func (s *site) refusesRestart(folder string) {
	s.t.Helper()
	version := must.Read(s.t, folder+"/x.version")
	s.must(os.WriteFile(folder+"/x.version", []byte("20150101\n"), 0o644))
	if said, status := s.lammps(folder, 200); status != 1 || !strings.Contains(said, "x.restart is refused: version 20150101 of LAMMPS wrote it") {
		s.t.Errorf("a restart file of another version, exit status %d:\n%s", status, said)
	}
	s.must(os.WriteFile(folder+"/x.version", version, 0o644))
	s.must(os.Truncate(folder+"/x.restart", 3000))
	if said, status := s.lammps(folder, 200); status == 0 || !strings.Contains(said, "Unexpected end of file") {
		s.t.Errorf("a restart file that is cut short, exit status %d:\n%s", status, said)
	}
}
