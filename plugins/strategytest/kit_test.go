package strategytest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// faulty is noX with faulty plans.
type faulty struct {
	planner.Strategy
	spoil func(planner.Problem, planner.Schedule) planner.Schedule
}

func (f faulty) ExpandLimit() planner.ExpandLimit { return 1 }

func (f faulty) Plan(p planner.Problem) (planner.Schedule, error) {
	s, err := f.Strategy.Plan(p)
	if err != nil {
		return nil, err
	}
	return f.spoil(p, s), nil
}

// TestKitFindsFaults checks that some case fails for a strategy with each of these faults.
func TestKitFindsFaults(t *testing.T) {
	calls := 0
	kinds := map[string]struct {
		spoil func(planner.Problem, planner.Schedule) planner.Schedule
		cases []string
	}{
		"delays": {func(_ planner.Problem, s planner.Schedule) planner.Schedule {
			for i := range s {
				s[i].Start += 1
			}
			return s
		}, []string{"a free cluster"}},
		"loses a job": {func(_ planner.Problem, s planner.Schedule) planner.Schedule { return s[:max(len(s)-1, 0)] },
			[]string{"a free cluster", "random queues", "pinned jobs stay", "infeasible jobs", "extreme values", "10,000 jobs of 5 steps", "deadlines", "several at once", "the same again", "refuses what is no parameter"}},
		"all at once": {func(p planner.Problem, s planner.Schedule) planner.Schedule {
			for i := range s {
				s[i].Start = p.Jobs[i].Submit
			}
			return s
		}, []string{"random queues", "extreme values", "10,000 jobs of 5 steps"}},
		"not the same again": {func(_ planner.Problem, s planner.Schedule) planner.Schedule {
			calls++
			if len(s) > 0 {
				s[len(s)-1].Start = last(s) + int64(calls)
			}
			return s
		}, []string{"the same again", "several at once"}},
	}
	for name, kind := range kinds {
		noX, err := planner.StrategyByName("noX")
		must.OK(t, err)
		subject := Built(strategy.Definition{Name: "faulty", Version: "1", Help: "Wrong.",
			New: func(strategy.Values) (planner.Strategy, error) { return faulty{noX, kind.spoil}, nil }})
		for _, c := range Cases() {
			if !slices.Contains(kind.cases, c.Name) || name == "not the same again" && c.Name == "several at once" {
				continue // (not the latter: the faulty strategy itself would race)
			}
			if err := c.Run(context.Background(), subject); err == nil {
				t.Errorf("a strategy that %s passes %q", name, c.Name)
			}
		}
	}
}

// spoilt is FPSMA with faulty changes.
type spoilt struct {
	malleable.FPSMA
	spoil func(jobs []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change
}

func (s spoilt) Apply(jobs []malleable.Job, r malleable.Request, ask malleable.Ask) []malleable.Change {
	return s.spoil(jobs, r, s.FPSMA.Apply(jobs, r, ask))
}

// TestKitFindsFaultyPolicies does the same for malleability policies.
func TestKitFindsFaultyPolicies(t *testing.T) {
	calls := 0
	for name, kind := range map[string]struct {
		spoil func(jobs []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change
		cases []string
	}{
		"never grows anybody": {func(_ []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			if r.Kind == malleable.Grow {
				return nil
			}
			return c
		}, []string{"a job alone grows"}},
		"gives nothing back": {func(_ []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			if r.Kind == malleable.Shrink {
				return nil
			}
			return c
		}, []string{"random malleable jobs", "mandatory shrinks to the last node", "malleable jobs of extreme sizes"}},
		"gives one node too many": {func(jobs []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			if len(c) > 0 && r.Kind == malleable.Grow {
				c[len(c)-1].Accepted++
			}
			return c
		}, []string{"random malleable jobs"}},
		"grows where it should shrink": {func(_ []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			for i := range c {
				c[i].Kind = malleable.Grow
			}
			return c
		}, []string{"random malleable jobs", "mandatory shrinks to the last node"}},
		"changes who cannot be asked": {func(jobs []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			if len(jobs) > 0 && jobs[0].Held && r.Kind == malleable.Grow {
				return append(c, malleable.Change{Request: malleable.Request{Nodes: 1}, Accepted: 1})
			}
			return c
		}, []string{"nobody to resize", "random malleable jobs"}},
		"not the same again": {func(_ []malleable.Job, r malleable.Request, c []malleable.Change) []malleable.Change {
			if calls++; calls%2 == 0 && r.Kind == malleable.Grow {
				return nil
			}
			return c
		}, []string{"the same sizes again"}},
	} {
		subject := Built(strategy.Definition{Name: "faulty", Version: "1", Help: "Wrong.",
			NewPolicy: func(strategy.Values) (malleable.Policy, error) { return spoilt{spoil: kind.spoil}, nil }})
		found := 0
		for _, c := range CasesFor(context.Background(), subject) {
			if slices.Contains(kind.cases, c.Name) {
				found++
				if err := c.Run(context.Background(), subject); err == nil {
					t.Errorf("a policy that %s passes %q", name, c.Name)
				}
			}
		}
		if found != len(kind.cases) {
			t.Errorf("%s: %d of the cases %q apply", name, found, kind.cases)
		}
	}
}

// hurried finds a better plan at every second try.
type hurried struct {
	planner.Strategy
	calls *atomic.Int64
}

func (h hurried) ExpandLimit() planner.ExpandLimit { return 1 }

func (h hurried) Plan(p planner.Problem) (planner.Schedule, error) {
	if h.calls.Add(1)%2 == 0 {
		return planner.Search{Limit: 1, MaxEvaluations: 2000}.Plan(p)
	}
	return h.Strategy.Plan(p)
}

// TestTimeLimit checks that a strategy that stops after a time may answer differently each time if
// it has too little time. Without a parameter for that time, it must not.
func TestTimeLimit(t *testing.T) {
	noX, err := planner.StrategyByName("noX")
	must.OK(t, err)
	calls := new(atomic.Int64)
	definition := strategy.Definition{Name: "hurried", Version: "1", Help: "Takes its time.",
		Parameters: []strategy.Parameter{{Name: "time", Type: strategy.Duration, Default: "1s", Min: "10ms", Max: "1m", Help: "to search for"}},
		New: func(v strategy.Values) (planner.Strategy, error) {
			if v.Duration("time") < time.Minute {
				return hurried{noX, calls}, nil
			}
			return noX, nil
		}}
	Run(t, Built(definition))
	definition.New = func(strategy.Values) (planner.Strategy, error) { return hurried{noX, calls}, nil }
	for _, c := range Cases() {
		if c.Name == "several at once" {
			if err := c.Run(context.Background(), Built(definition)); err == nil {
				t.Errorf("a strategy that answers differently with time to spare passes %q", c.Name)
			}
		}
	}
}

func last(s planner.Schedule) int64 {
	end := int64(0)
	for _, p := range s {
		end = max(end, p.End())
	}
	return end
}

func TestNoPlugin(t *testing.T) {
	for _, path := range []string{"/bin/true", "/nonexistent"} {
		for _, c := range Cases()[:1] {
			if err := c.Run(context.Background(), Process(path)); err == nil || !strings.Contains(err.Error(), "start") {
				t.Errorf("%s as a plugin: %v", path, err)
			}
		}
	}
	began := time.Now()
	if err := Cases()[0].Run(context.Background(), Process("/bin/true")); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}
