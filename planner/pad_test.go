package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

func TestPad(t *testing.T) {
	for _, c := range []struct {
		name    string
		p, want Profile
	}{
		{"end", Profile{{10, 2}}, Profile{{15, 2}}},
		{"growth stays", Profile{{10, 2}, {10, 4}}, Profile{{10, 2}, {15, 4}}},
		{"shrinks move", Profile{{10, 4}, {10, 2}, {10, 1}}, Profile{{15, 4}, {10, 2}, {10, 1}}},
		{"shrink before a growth", Profile{{10, 4}, {10, 2}, {10, 3}}, Profile{{15, 4}, {5, 2}, {15, 3}}},
		{"step between shorter than the margin", Profile{{10, 4}, {3, 2}, {10, 3}}, Profile{{12, 4}, {1, 2}, {15, 3}}},
		{"two shrinks before a growth", Profile{{10, 4}, {2, 2}, {3, 1}, {10, 3}}, Profile{{13, 4}, {1, 2}, {1, 1}, {15, 3}}},
		{"equal is no shrink", Profile{{10, 4}, {10, 4}}, Profile{{10, 4}, {15, 4}}},
	} {
		if diff := cmp.Diff(c.want, Pad(c.p, 5)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestPadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProfile(t, 8, 30, 6)
		margin := rapid.Int64Range(0, 40).Draw(t, "margin")
		padded := Pad(p, margin)
		if err := padded.Validate(); err != nil || len(padded) != len(p) {
			t.Fatalf("%v padded by %d is %v: %v", p, margin, padded, err)
		}
		if padded.Duration() != p.Duration()+margin {
			t.Fatalf("the end moved by %d", padded.Duration()-p.Duration())
		}
		was, is := Placement{Steps: p}.Boundaries(), Placement{Steps: padded}.Boundaries()
		for i, s := range padded {
			if s.Nodes != p[i].Nodes {
				t.Fatalf("step %d has %d nodes", i, s.Nodes)
			}
			moved := is[i] - was[i]
			if i > 0 && (moved < 0 || moved > margin || p[i].Nodes >= p[i-1].Nodes && moved != 0) {
				t.Fatalf("boundary %d moved by %d", i, moved)
			}
		}
		for s := range p.Duration() {
			if padded.At(s) < p.At(s) && margin == 0 {
				t.Fatalf("at %d: %d nodes instead of %d", s, padded.At(s), p.At(s))
			}
		}
		// Expand the padded profile arbitrarily: without the padding, C1 must still hold.
		placement := Placement{Start: rapid.Int64Range(0, 100).Draw(t, "start"), Steps: Pad(p, margin)}
		for i := range len(p) - 1 {
			placement.Steps[i].Duration += rapid.Int64Range(0, 20).Draw(t, "expanded")
		}
		back := Unpad(placement, p, margin)
		if err := Verify(Problem{Nodes: 6, Jobs: []Job{{Profile: p}}}, Schedule{back}, Infinite); err != nil {
			t.Fatal(err)
		}
		if back.Start != placement.Start || back.End() != placement.End()-margin {
			t.Fatalf("%v without padding is %v", placement, back)
		}
		if plain := Unpad(Placement{Start: 7, Steps: padded}, p, margin); !cmp.Equal(plain, Placement{Start: 7, Steps: p}) {
			t.Fatalf("not expanded: %v", plain)
		}
	})
}
