package simulate_test

import (
	"context"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	figures "github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestBeside runs the same jobs, always at their largest size, and stock jobs unchanged.
func TestBeside(t *testing.T) {
	for seed := range uint64(2) {
		e := experiment(t, seed)
		with := outcome(t, e)
		for _, name := range simulate.Besides {
			r, err := e.Beside(context.Background(), name)
			must.OK(t, err)
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
				if name == simulate.Neighbour {
					continue
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
			if name == simulate.Neighbour {
				easy, err := e.Beside(context.Background(), "easy")
				must.OK(t, err)
				if n := figures.Compare(r.Outcome(), easy.Outcome()); n.Later > 0 {
					t.Errorf("seed %d: %d of %d stock jobs start later", seed, n.Later, n.Stock)
				}
			} else if r.Metrics.Waste < with.Metrics.Waste {
				t.Errorf("seed %d, %s wastes %v %%, evolving %v %%", seed, name, r.Metrics.Waste, with.Metrics.Waste)
			}
		}
	}
	e := experiment(t, 0)
	if _, err := e.Beside(context.Background(), "sjf"); err == nil {
		t.Error("an unknown scheduler")
	}
}

// TestLendingDelays shows why a sidecar that leaves stock jobs to Slurm has no rule by which none
// starts later than beside rigid jobs, except keeping nodes idle that an evolving job has not grown
// into. Job b starts on such nodes and on one more free node; c, which could not be foreseen, would
// have had that one. The delay is bounded by the growth that the nodes are held for: b ends before.
func TestLendingDelays(t *testing.T) {
	e := experiment(t, 0)
	e.Config.HoldShares = config.Default().HoldShares
	e.Cluster.Nodes = 3
	e.Jobs = []simulate.Submission{
		{ID: "a", Submit: 1, Profile: planner.Profile{{Duration: 900, Nodes: 1}, {Duration: 900, Nodes: 2}}},
		{ID: "b", Submit: 100, User: 1, Profile: planner.Profile{{Duration: 300, Nodes: 2}}, Limit: 360},
		{ID: "c", Submit: 200, User: 2, Profile: planner.Profile{{Duration: 600, Nodes: 1}}, Limit: 3600},
	}
	evolving := outcome(t, e)
	rigid, err := e.Beside(context.Background(), simulate.Slurm)
	must.OK(t, err)
	if b, before := evolving.Jobs[1].Start, rigid.Jobs[1].Start; b+900 > before {
		t.Errorf("b starts at %d, beside a rigid job at %d: nothing was lent", b, before)
	}
	growth := evolving.Jobs[0].Start + 900
	if c, before := evolving.Jobs[2].Start, rigid.Jobs[2].Start; c < before+60 || c > growth {
		t.Errorf("c starts at %d, beside a rigid job at %d; the growth is at %d", c, before, growth)
	}
	got := figures.Compare(evolving.Outcome(), rigid.Outcome())
	if got.Later != 1 || got.Earlier != 1 {
		t.Errorf("%+v", got)
	}
}
