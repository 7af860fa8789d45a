package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func both() []malleable.Policy { return []malleable.Policy{malleable.FPSMA{}, malleable.EGS{}} }

// TestKoala checks that the experiment matches the text, and that equal seeds give equal output.
// People read which findings hold (KOALA.md); the ones named here hold with any seed.
func TestKoala(t *testing.T) {
	got, err := DefaultKoala.Play(8, 1, both(), nil)
	must.OK(t, err)
	again, err := DefaultKoala.Play(8, 1, both(), nil)
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("the same again: %v\n%s", err, diff)
	}
	other, err := DefaultKoala.Play(8, 100, both(), nil)
	if err != nil || cmp.Diff(got.Rows, other.Rows) == "" {
		t.Errorf("another seed gives the same (%v)", err)
	}
	if len(got.Rows) != 8 || len(got.Findings) != 16 {
		t.Fatalf("%d rows, %d findings", len(got.Rows), len(got.Findings))
	}
	for _, r := range []KoalaResult{got, other} {
		for _, i := range []int{0, 1, 3, 5, 7, 8, 10, 12, 13} {
			if f := r.Findings[i]; f.Verdict != Holds {
				t.Errorf("seed %d: %s %s: %s", r.Seed, f.Says, f.Verdict, f.Figures)
			}
		}
	}
}

// TestKoalaVerdict: what is within the noise of the runs is undecided, and a single run decides nothing.
func TestKoalaVerdict(t *testing.T) {
	c := claim{margins: func(s *koalaSet) []float64 { return []float64{s.e[wm].Gadget - s.f[wm].Gadget, 100 - s.f[wm].Stuck} }}
	for name, test := range map[string]struct {
		differences []float64
		stuck       float64
		want        Verdict
	}{
		"above 0":                             {[]float64{3, 4, 5}, 50, Holds},
		"below 0":                             {[]float64{-3, -4, -5}, 50, HoldsNot},
		"sometimes above":                     {[]float64{3, -1, 1}, 50, IsUndecided},
		"always 0":                            {[]float64{0, 0, 0}, 50, HoldsNot},
		"one run":                             {[]float64{3}, 50, IsUndecided},
		"one margin above, the other below 0": {[]float64{3, 4, 5}, 120, HoldsNot},
		"one undecided, the other below 0":    {[]float64{3, -1, 1}, 120, HoldsNot},
	} {
		runs := make([]koalaSet, len(test.differences))
		for i, d := range test.differences {
			runs[i].e[wm].Gadget, runs[i].f[wm].Stuck = d, test.stuck
		}
		if got := c.verdict(runs); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestKoalaKeepsTo checks for every policy that no cluster uses more processors than it has, sizes
// stay within their bounds, FT computes on powers of two, growth ends at the threshold, and no job
// shrinks under PRA.
func TestKoalaKeepsTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := DefaultKoala
		k.Jobs = 25
		k.Background = rapid.IntRange(0, 95).Draw(t, "background")
		k.Threshold = rapid.IntRange(1, 100).Draw(t, "threshold")
		k.Claim = rapid.IntRange(0, 10).Draw(t, "claim")
		k.Adapt = rapid.IntRange(0, 20).Draw(t, "adapt")
		p, err := malleable.PolicyByName(rapid.SampledFrom(malleable.Policies()).Draw(t, "policy"))
		must.OK(t, err)
		approach := malleable.Approach(rapid.IntRange(0, 1).Draw(t, "approach"))
		s := newKoalaSim(k, approach, p)
		s.submit(rapid.Bool().Draw(t, "rigid"), rapid.IntRange(1, 120).Draw(t, "interval"), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		before := map[string]int{}
		for now := 0; !s.second(now); now++ {
			if now > 100_000 {
				t.Fatal("it does not end")
			}
			used, started, grown := make([]int, len(s.nodes)), make([]int, len(s.nodes)), make([]bool, len(s.nodes))
			for _, j := range s.running {
				used[j.cluster] += j.Nodes
				if j.used < j.Min || j.used > j.Max || j.Nodes < j.used || j.Nodes > j.Max || !j.Sizes.Has(j.used) {
					t.Fatalf("%+v", *j)
				}
				if j.started == now {
					started[j.cluster] += j.Min
				} else if j.Nodes > before[j.ID] {
					grown[j.cluster] = true
				}
				before[j.ID] = j.Nodes
			}
			for c, n := range used {
				if n > s.nodes[c] || grown[c] && n-started[c] > s.nodes[c]*k.Threshold/100 {
					t.Fatalf("second %d: %d of %d processors of a cluster are in use", now, n, s.nodes[c])
				}
			}
		}
		if approach == malleable.PRA && s.shrinks > 0 {
			t.Fatal("jobs shrink under PRA")
		}
		for _, j := range s.jobs {
			if j.done < .999 {
				t.Fatalf("job %s has ended with %v of its work", j.ID, j.done)
			}
		}
	})
}

// TestKoalaTimes checks the end points in the text.
func TestKoalaTimes(t *testing.T) {
	gadget, ft := times(600, 240, 32, 46), times(120, 60, 16, 32)
	got := fmt.Sprintf("%.0f %.0f %.0f %.0f %.0f %.0f", gadget[2], gadget[32], gadget[46], ft[2], ft[16], ft[32])
	if got != "600 240 240 120 60 60" {
		t.Error(got)
	}
	for n := 3; n <= 32; n++ {
		if gadget[n] > gadget[n-1] || ft[n] > ft[n-1] {
			t.Errorf("slower on %d", n)
		}
	}
}

func TestKoalaStops(t *testing.T) {
	stop := errors.New("enough")
	if _, err := DefaultKoala.Play(1, 1, both(), func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	bad := DefaultKoala
	bad.Threshold = 0
	if _, err := bad.Play(1, 1, both(), nil); err == nil {
		t.Error("a threshold of 0")
	}
	if r, err := DefaultKoala.Play(1, 1, both()[:1], nil); err != nil || len(r.Findings) != 0 {
		t.Errorf("findings of one policy: %v, %v", r.Findings, err)
	}
}
