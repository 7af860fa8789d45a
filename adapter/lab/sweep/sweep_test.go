package sweep

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestInterval: Student's t, by hand: 1, 2, 3 have a deviation of 1, and t of 2 degrees is 4.303.
func TestInterval(t *testing.T) {
	none := math.NaN()
	for _, test := range []struct {
		of         []float64
		mean, half float64
	}{{[]float64{1, 2, 3}, 2, 4.30265 / math.Sqrt(3)}, {[]float64{1, none, 2, 3}, 2, 4.30265 / math.Sqrt(3)}, {[]float64{5}, 5, none}, {[]float64{none}, none, none}, {[]float64{4, 4}, 4, 0}} {
		mean, half := interval(test.of)
		same := func(a, b float64) bool { return math.Abs(a-b) < 1e-4 || math.IsNaN(a) && math.IsNaN(b) }
		if !same(mean, test.mean) || !same(half, test.half) {
			t.Errorf("%v: %v ± %v", test.of, mean, half)
		}
	}
}

// TestStudentsT compares with published tables.
func TestStudentsT(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.7062, 2: 4.30265, 3: 3.18245, 4: 2.77645, 9: 2.26216, 30: 2.04227, 1000: 1.96234} {
		if got := studentsT(freedom); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d: %v, want %v", freedom, got, want)
		}
	}
}

// TestFile: an outcome holds as long as all on which it rests.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	grid := func(more string) string {
		s, err := Read(write("grid.yaml", "traces: [{file: t.swf}]\nshares: [1]\nstrategies: [noX]\n"+more))
		must.OK(t, err)
		cells := s.Cells()
		return s.file(cells[len(cells)-1])
	}
	write("t.swf", "1")
	first := grid("")
	if again := grid("seeds: [2, 1]\n"); again != first {
		t.Errorf("%s, and with more seeds %s", first, again)
	}
	if other := grid("scheduler_parameters: bf_interval=60\n"); other == first {
		t.Error("another scheduler, and the same file")
	}
	write("t.swf", "2")
	if other := grid(""); other == first {
		t.Error("another trace, and the same file")
	}
}
