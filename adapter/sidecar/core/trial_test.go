package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/planner"
)

// tardy is a steady strategy that plans everything so much later.
type tardy struct {
	statetest.Builtin
	by int64
}

func (tardy) Steady() bool { return true }

func (s tardy) Plan(p planner.Problem) (planner.Schedule, error) {
	plan, err := s.Builtin.Plan(p)
	for i := range plan {
		plan[i].Start += s.by
	}
	return plan, err
}

// TestTry: each strategy that is tried plans itself, of the same name too (with other
// parameters, say), and what was planned before a change of strategy is not kept.
func TestTry(t *testing.T) {
	b := newBench(t, 4)
	b.Evolving(1, 1, "2@10m", time.Hour)
	noX, _ := planner.StrategyByName("noX")
	for _, by := range []int64{5, 7} {
		_, rows, err := view.Problem(b.Core).Try(tardy{statetest.Builtin{noX}, by})
		if err != nil || len(rows) != 1 || rows[0].TriedStart.Sub(b.s.Taken) != time.Duration(by)*time.Second {
			t.Errorf("%d s later: %+v %v", by, rows, err)
		}
	}
	p := view.Problem(b.Core)
	for _, by := range []int64{5, 7} { // of the same problem, as TryStrategy does
		if _, rows, err := p.Try(tardy{statetest.Builtin{noX}, by}); err != nil || rows[0].TriedStart.Sub(b.s.Taken) != time.Duration(by)*time.Second {
			t.Errorf("%d s later: %+v %v", by, rows, err)
		}
	}
	plan.TakePlans(b.Core, refit.Problem(b.Core, b.s).Plan(tardy{statetest.Builtin{noX}, 5}))
	if len(b.Last) == 0 || b.Last[0] == nil {
		t.Fatal("nothing is kept")
	}
	cfg := config.Default()
	configured(b.Core, msg.Configuration{Config: &cfg})
	if got := refit.Problem(b.Core, b.s).Plan(tardy{statetest.Builtin{noX}, 7}).Jobs[0].Steps[0].Start - b.s.Taken.Unix(); got != 7 {
		t.Errorf("planned %d s later, want 7", got)
	}
}

// expanding is a built-in strategy that tells its expand limit, as those of a site do.
type expanding struct {
	statetest.Builtin
	limit planner.ExpandLimit
}

func (s expanding) ExpandLimit() planner.ExpandLimit { return s.limit }

// TestTryExpands: a strategy is tried with its own expand limit for jobs that have none, not
// with that of the strategy in use.
func TestTryExpands(t *testing.T) {
	b := newBench(t, 8)
	b.Evolving(1, 2, "2@3m,4@2m,1@1m", time.Hour)
	b.Evolving(2, 1, "1@20s,5@20s,1@20s,7@1m", 2*time.Hour)
	start := func(name string, limit planner.ExpandLimit) time.Duration {
		t.Helper()
		s, err := planner.StrategyByName(name)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, err := view.Problem(b.Core).Try(expanding{statetest.Builtin{s}, limit})
		if err != nil || len(rows) != 2 || rows[1].TriedUnfit != "" {
			t.Fatalf("%s: %+v %v", name, rows, err)
		}
		return rows[1].TriedStart.Sub(b.s.Taken)
	}
	if rigid, expanded := start("noX", 1), start("infX", planner.Infinite); expanded >= rigid {
		t.Errorf("the second job starts after %v, expanded after %v", rigid, expanded)
	}
}
