package workload

import (
	"math"
	"strings"
	"testing"
)

// TestMersenne: the numbers of CPython 3.11's random.seed(text), random(), choice, gauss and
// getrandbits.
func TestMersenne(t *testing.T) {
	for _, c := range []struct {
		text    string
		float   float64
		a, b    uint32
		gauss   float64
		thereof uint32
	}{
		{"S00", 0.1696921512799442, 2068161, 96, 11.388273541232316, 2499857335},
		{strings.Repeat("evoslurm", 20), 0.6087727348851906, 1719262, 22, 7.7647051702389, 1344730074},
	} {
		var r mersenne
		r.seedText(c.text)
		if f, a, b := r.float(), r.below(2592000), r.below(127); f != c.float || a != c.a || b != c.b {
			t.Errorf("%s: %v, %d, %d", c.text, f, a, b)
		}
		if g := r.gauss(10, 2); math.Abs(g-c.gauss) > 1e-12 {
			t.Errorf("%s: %v", c.text, g)
		}
		if w := r.word(); w != c.thereof {
			t.Errorf("%s: %d", c.text, w)
		}
	}
	var r mersenne
	r.seedText("x")
	for range 999 {
		r.float()
	}
	if f := r.float(); f != 0.8589366224415965 {
		t.Errorf("the thousandth: %v", f)
	}
}
