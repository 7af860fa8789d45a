//go:build examples

package e2e_test

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// conserved wants the energy to stay, across resizes too, and to be that of a run on one rank.
func (s *site) conserved(run exampleRun, out []string) {
	s.t.Helper()
	folder, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	tpr := s.Dir + "/out/gromacs/md.tpr"
	if said, status := s.alone(folder, "gmx_mpi", "-quiet", "mdrun", "-ntomp", "1", "-s", tpr, "-deffnm", "md", "-nsteps", "2000"); status != 0 {
		s.t.Fatal(said)
	}
	want := s.energies(folder, folder+"/md.edr")
	name := s.Dir + "/out/gromacs/md-" + run.id
	got := s.energies(folder, name+".edr")
	got = got[1:] // at the very first, the velocities are of half a timestep before
	first, end := got[0], got[len(got)-1]
	if drift := math.Abs(end[1]-first[1]) / (end[0] - first[0]) / (3 * 348); len(want) != 41 || len(got) < 50 || !(drift < 0.005) {
		s.t.Errorf("%s: %d energies, and %d on one rank; they drift by %g kJ/mol/ps per atom", run, len(got), len(want), drift)
	}
	for _, e := range got {
		if !(math.Abs(e[1]-want[40][1]) < 1e-3*math.Abs(want[40][1])) {
			s.t.Errorf("%s: after %g ps the energy is %g, and %g on one rank", run, e[0], e[1], want[40][1])
		}
	}
	var ranks []string
	for _, m := range regexp.MustCompile(`(?m)^Using (\d+) MPI process`).FindAllSubmatch(must.Read(s.t, name+".log"), -1) {
		ranks = append(ranks, string(m[1]))
	}
	if !slices.Equal(ranks, []string{"1", "3", "2", "4", "1"}) {
		s.t.Errorf("%s: it ran on %q ranks", run, ranks)
	}
	s.refusesCheckpoint(folder, tpr)
}

// energies returns the times in ps and the total energies in kJ/mol of a file of GROMACS.
func (s *site) energies(folder, file string) (list [][2]float64) {
	s.t.Helper()
	if said, status := s.alone(folder, "sh", "-c", "echo Total-Energy | gmx -quiet -nobackup energy -f "+file+" -o energy.xvg"); status != 0 {
		s.t.Fatal(said)
	}
	for _, line := range strings.Split(string(must.Read(s.t, folder+"/energy.xvg")), "\n") {
		if fields := strings.Fields(line); len(fields) == 2 && !strings.ContainsAny(line, "#@") {
			at, _ := strconv.ParseFloat(fields[0], 64)
			energy, _ := strconv.ParseFloat(fields[1], 64)
			list = append(list, [2]float64{at, energy})
		}
	}
	return list
}

// refusesCheckpoint wants GROMACS to refuse a checkpoint of a newer format, and one that is cut short.
func (s *site) refusesCheckpoint(folder, tpr string) {
	s.t.Helper()
	good := must.Read(s.t, folder+"/md.cpt")
	newer := slices.Clone(good)
	at := bytes.Index(newer[20:], []byte{0, 0, 0, 22}) // the format's version comes after those of the program and the file's time
	if at < 0 {
		s.t.Fatal("a checkpoint without the format's version")
	}
	newer[20+at+3] = 99
	for text, want := range map[string]string{
		string(newer):       "Attempting to read a checkpoint file of version 99",
		string(good[:2000]): "Checkpoint file corrupted/truncated",
	} {
		s.must(os.WriteFile(folder+"/bad.cpt", []byte(text), 0o644))
		if said, status := s.alone(folder, "gmx_mpi", "-quiet", "mdrun", "-ntomp", "1", "-s", tpr, "-deffnm", "md", "-cpi", "bad.cpt", "-maxh", "0.001"); status == 0 || !strings.Contains(said, want) {
			s.t.Errorf("exit status %d, without %q:\n%s", status, want, said)
		}
	}
}
