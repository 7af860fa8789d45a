//go:build examples

package e2e_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// ended matches the line that a run of amr prints at its end.
var ended = regexp.MustCompile(`(\d+) ranks, iterations (\d+) to (\d+) of 768: .* cells (\d+), (\d+) to (\d+) so far, mass (\S+), error (\S+)`)

// compileAMR builds amr as its README says.
func (s *site) compileAMR() {
	s.t.Helper()
	cmd := exec.Command("mpicc", "-O2", "-Wall", "-Werror", "-o", "amr", "amr.c", "-lp4est", "-lsc", "-lm")
	cmd.Dir = s.Dir + "/out/amr"
	if said, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, said)
	}
}

// amr runs the code on one rank, and returns what it prints and its exit status.
func (s *site) amr(folder, name string, iterations int) (said string, status int) {
	s.t.Helper()
	cmd := exec.Command(s.Dir+"/out/amr/amr", name, strconv.Itoa(iterations), "7")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// refined wants a mesh that grew and shrank twentyfold, and the mass, the error, and the checkpoints of fixed nodes.
func (s *site) refined(run exampleRun, out []string) {
	s.t.Helper()
	alone, err := os.MkdirTemp(s.Dir, "alone")
	s.must(err)
	s.amr(alone, "whole", 1000)
	got := ended.FindAllStringSubmatch(strings.Join(out, "\n"), -1)
	if len(got) != 5 {
		s.t.Fatalf("%s: %d runs, want 5", run, len(got))
	}
	for i, ranks := range []string{"1", "3", "2", "4", "1"} {
		said, _ := s.amr(alone, "amr", 154)
		want := ended.FindStringSubmatch(said)
		if want == nil || got[i][1] != ranks || got[i][3] != want[3] || got[i][4] != want[4] {
			s.t.Fatalf("%s: step %d: %q on %s ranks, and %q on fixed nodes", run, i+1, got[i], ranks, want)
		}
		for _, field := range []int{7, 8} {
			a, _ := strconv.ParseFloat(got[i][field], 64)
			b, _ := strconv.ParseFloat(want[field], 64)
			if !(math.Abs(a-b) <= 1e-12) || a == 0 {
				s.t.Errorf("%s: step %d: mass or error is %g, and %g on fixed nodes", run, i+1, a, b)
			}
		}
		s.sameBytes(alone+"/amr", s.Dir+"/out/amr/amr-"+run.id, min(154*(i+1), 768))
	}
	s.sameBytes(alone+"/whole", alone+"/amr", 768)
	last := got[4]
	cells, _ := strconv.Atoi(last[4])
	least, _ := strconv.Atoi(last[5])
	most, _ := strconv.Atoi(last[6])
	if most <= 20*least || most <= 20*cells {
		s.t.Errorf("%s: %d to %d cells, %d at the end", run, least, most, cells)
	}
	if run.drive == "merge" {
		s.refuses(alone)
	}
}

// sameBytes wants two checkpoints of an iteration to be equal.
func (s *site) sameBytes(one, other string, iteration int) {
	s.t.Helper()
	one, other = fmt.Sprintf("%s.%08d", one, iteration), fmt.Sprintf("%s.%08d", other, iteration)
	a, err := os.ReadFile(one)
	s.must(err)
	b, err := os.ReadFile(other)
	if err != nil || len(a) == 0 || string(a) != string(b) {
		s.t.Errorf("%s has %d bytes and %s has %d, or others: %v", one, len(a), other, len(b), err)
	}
}

// refuses spoils the checkpoints of a folder one by one, and wants the code to go back to the one before.
func (s *site) refuses(folder string) {
	s.t.Helper()
	spoil := func(file string, change func(string) string) {
		text, err := os.ReadFile(folder + "/" + file)
		s.must(err)
		s.must(os.WriteFile(folder+"/"+file, []byte(change(string(text))), 0o644))
	}
	half := func(text string) string { return text[:len(text)/2] }
	newer := func(text string) string { return strings.Replace(text, "version 1", "version 2", 1) }
	spoil("amr.00000768", half)
	spoil("amr.00000616.head", newer)
	spoil("amr.00000462.head", half)
	spoil("amr.00000308", func(text string) string { return text[:len(text)-1] + string([]byte{text[len(text)-1] ^ 1}) })
	said, status := s.amr(folder, "amr", 1000)
	for _, want := range []string{
		"amr.00000768 is refused: it has 2336 of 4672 bytes\n",
		"amr.00000616 is refused: version 2 wrote it, this is version 1\n",
		"amr.00000462 is refused: its head is cut short\n",
		"amr.00000308 is refused: its bytes changed\n",
		"amr.00000154 on 1 ranks: mass and error are the same",
	} {
		if status != 0 || !strings.Contains(said, want) {
			s.t.Errorf("exit status %d, without %q:\n%s", status, want, said)
		}
	}
	s.sameBytes(folder+"/whole", folder+"/amr", 768)
	for _, iteration := range []int{154, 768} {
		spoil(fmt.Sprintf("amr.%08d.head", iteration), newer)
	}
	if said, status := s.amr(folder, "amr", 1000); status != 1 || !strings.Contains(said, "no checkpoint of amr is good") {
		s.t.Errorf("exit status %d without a good checkpoint:\n%s", status, said)
	}
}
