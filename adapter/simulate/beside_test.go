package simulate_test

import (
	"context"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/simulate"
	figures "github.com/evoslurm/evoslurm/planner/outcome"
)

// TestBeside: the same jobs, at their largest size for all of their time, and stock jobs as they are.
func TestBeside(t *testing.T) {
	for seed := range uint64(3) {
		e := experiment(t, seed)
		with := outcome(t, e)
		for _, name := range simulate.Besides {
			r, err := e.Beside(context.Background(), name)
			if err != nil {
				t.Fatal(err)
			}
			if r.Sidecar || r.Strategy != name {
				t.Errorf("%s: sidecar %v, %s", name, r.Sidecar, r.Strategy)
			}
			for i, j := range r.Jobs {
				s := e.Jobs[i]
				if j.State != "COMPLETED" || j.Evolving != s.Evolves() || j.Area != s.Profile.Area() || j.Start < j.Submit {
					t.Errorf("seed %d, %s: %+v", seed, name, j)
				}
				if lasts := j.End - j.Start; lasts < s.Profile.Duration() || lasts > s.Profile.Duration()+10 {
					t.Errorf("seed %d, %s: job %s lasts %d s; want %d", seed, name, j.ID, lasts, s.Profile.Duration())
				}
				if len(j.Sizes) != 2 || j.Sizes[0].Nodes != s.Profile.Peak() {
					t.Errorf("seed %d, %s: job %s of %v has %v", seed, name, j.ID, s.Profile, j.Sizes)
				}
			}
			if n := figures.Compare(with.Outcome(), r.Outcome()); n.Stock == 0 || n.Lost > 0 {
				t.Errorf("seed %d, %s: %+v", seed, name, n)
			}
			if same := figures.Compare(r.Outcome(), r.Outcome()); same.Later+same.Earlier > 0 {
				t.Errorf("seed %d, %s: beside itself %+v", seed, name, same)
			}
			if r.Metrics.Waste < with.Metrics.Waste {
				t.Errorf("seed %d, %s wastes %v %%, evolving %v %%", seed, name, r.Metrics.Waste, with.Metrics.Waste)
			}
		}
	}
	e := experiment(t, 0)
	if _, err := e.Beside(context.Background(), "sjf"); err == nil {
		t.Error("an unknown scheduler")
	}
}
