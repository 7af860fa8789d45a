package outcome

import (
	"math"
	"testing"
)

// TestInterval: Student's t, by hand: 1, 2, 3 have a deviation of 1, and t of 2 degrees is 4.303.
func TestInterval(t *testing.T) {
	none := math.NaN()
	for _, test := range []struct {
		of         []float64
		mean, half float64
	}{{[]float64{1, 2, 3}, 2, 4.30265 / math.Sqrt(3)}, {[]float64{1, none, 2, 3}, 2, 4.30265 / math.Sqrt(3)}, {[]float64{5}, 5, none}, {[]float64{none}, none, none}, {[]float64{4, 4}, 4, 0}} {
		mean, half := Interval(test.of)
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
