//go:build examples

package e2e_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// times holds the seconds of flow after each step, when icoFoam writes its fields.
var times = []string{"0.1", "0.2", "0.3", "0.4", "0.5"}

// flowed wants the fields of a run on one rank, after each step.
func (s *site) flowed(run exampleRun, out []string) {
	s.t.Helper()
	folder, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	said, status := s.alone(folder, "sh", "-c", "export WM_PROJECT_DIR=/usr/share/openfoam && cp -r "+s.Dir+"/out/openfoam/case . && cd case && blockMesh && icoFoam")
	if status != 0 {
		s.t.Fatal(said)
	}
	got := s.Dir + "/out/openfoam/case-" + run.id
	for _, at := range times {
		for _, field := range []string{"U", "p", "phi"} {
			want, have := s.field(folder+"/case/"+at+"/"+field), s.field(got+"/"+at+"/"+field)
			if len(want) < 400 || len(have) != len(want) {
				s.t.Fatalf("%s: %s after %s s has %d numbers, and %d on one rank", run, field, at, len(have), len(want))
			}
			for i := range want {
				if !(math.Abs(have[i]-want[i]) < 1e-9) {
					s.t.Fatalf("%s: %s after %s s: number %d is %g, and %g on one rank", run, field, at, i, have[i], want[i])
				}
			}
		}
	}
	for i, ranks := range []int{1, 3, 2, 4, 1} {
		want := fmt.Sprintf(": %d ranks from %s\n", ranks, append([]string{"0"}, times...)[i])
		if !strings.Contains(strings.Join(out, "\n")+"\n", want) {
			s.t.Errorf("%s: never%s", run, want)
		}
	}
	s.refusesCase(got)
}

// field returns the numbers of a field of OpenFOAM in the cells or faces.
func (s *site) field(file string) (numbers []float64) {
	s.t.Helper()
	text := string(must.Read(s.t, file))
	_, text, _ = strings.Cut(text, "internalField")
	text, _, _ = strings.Cut(text, "boundaryField")
	for _, word := range regexp.MustCompile(`[-+0-9.e]+`).FindAllString(text, -1) {
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// refusesCase wants a step to refuse a case of another version, and to remove times that a crash left incomplete.
func (s *site) refusesCase(folder string) {
	s.t.Helper()
	s.must(os.WriteFile(folder+"/hosts", []byte("localhost slots=1\n"), 0o644))
	step := func(before string) (said string, err error) { // as the job's user, since mpiexec refuses root
		said, errs, err := s.As(0, "sh", "-c", before+" && cd openfoam && WM_PROJECT_DIR=/usr/share/openfoam bash step.sh "+folder+" "+folder+"/hosts 0.1")
		return said + errs, err
	}
	complete := must.Read(s.t, folder+"/complete")
	s.must(os.WriteFile(folder+"/complete", []byte("0.5 2306 patch=0\n"), 0o644))
	if said, err := step("true"); err == nil || !strings.Contains(said, "/0.5 is refused: version 2306 patch=0 wrote it") {
		s.t.Errorf("a case of another version, %v:\n%s", err, said)
	}
	s.must(os.WriteFile(folder+"/complete", complete, 0o644))
	said, err := step("mkdir " + folder + "/0.55 && echo FoamFile >" + folder + "/0.55/U")
	if _, still := os.Stat(folder + "/0.55"); err != nil || still == nil || !strings.Contains(said, ": 1 ranks from 0.5\n") {
		s.t.Errorf("a time that is not complete, %v:\n%s", err, said)
	}
}
