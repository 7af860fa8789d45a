package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func built(t testing.TB, source string) string {
	path := filepath.Join(t.TempDir(), filepath.Base(source))
	if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func started(t testing.TB, cmd *exec.Cmd) *strategy.Client {
	c, err := strategy.Start(strategy.Launch{Command: cmd})
	must.OK(t, err)
	t.Cleanup(c.Close)
	return c
}

// asleep is a request with three nodes that are powered down.
func asleep() strategy.Request {
	return strategy.Request{Problem: planner.Problem{Nodes: 4, Busy: []planner.Busy{{Duration: 60, Nodes: 1}, {Duration: 30, Nodes: 3}}, Jobs: []planner.Job{
		{ID: "1", ExpandLimit: 1, Profile: planner.Profile{{Duration: 100, Nodes: 1}}}, {ID: "2", ExpandLimit: 1, Profile: planner.Profile{{Duration: 50, Nodes: 1}}}}},
		Sets: []planner.NodeSet{{Nodes: 1, Weight: 1}, {Nodes: 3, Free: 3, Weight: 1, Power: planner.PoweredDown, Ready: 30}}}
}

// TestOldContract checks that plugins of the contracts before get the messages of theirs, whatever is known of the nodes.
func TestOldContract(t *testing.T) {
	path := built(t, "./internal/old")
	for version := 1; version <= 2; version++ {
		c := started(t, exec.Command(path, fmt.Sprint(version)))
		d, err := c.Describe(t.Context(), nil)
		must.OK(t, err)
		if c.Version() != version || d.NodeSets || d.Name != "old" {
			t.Errorf("version %d: %d, %+v", version, c.Version(), d)
		}
		a, err := c.Plan(t.Context(), nil, d, asleep())
		must.OK(t, err)
		if a.Schedule[0].Start != 60 || a.Schedule[1].Start != 160 {
			t.Errorf("version %d: %+v", version, a)
		}
		d.NodeSets = true // as no host would have it
		if _, err := c.Plan(t.Context(), nil, d, asleep()); err == nil || !strings.Contains(err.Error(), "not in my contract") {
			t.Errorf("version %d: with sets of nodes: %v", version, err)
		}
	}
}

// TestSetsArrive checks that a strategy gets the sets over the wire, and what the bounds are.
func TestSetsArrive(t *testing.T) {
	c := started(t, exec.Command(built(t, "../cmd/awake")))
	d, err := c.Describe(t.Context(), nil)
	must.OK(t, err)
	if c.Version() != 3 || !d.NodeSets {
		t.Errorf("version %d, %+v", c.Version(), d)
	}
	starts := func(r strategy.Request) (starts []int64, err error) {
		a, err := c.Plan(context.Background(), map[string]string{"wait": "60s"}, d, r)
		for _, s := range a.Schedule {
			starts = append(starts, s.Start)
		}
		return starts, err
	}
	r := asleep()
	if got, err := starts(r); err != nil || !slices.Equal(got, []int64{60, 30}) {
		t.Errorf("it plans %v, %v", got, err)
	}
	r.Sets[1].Features = []string{strings.Repeat("x", 5000)} // then nothing is known of these nodes
	if got, err := starts(r); err != nil || !slices.Equal(got, []int64{30, 30}) {
		t.Errorf("with a long name it plans %v, %v", got, err)
	}
	r.Sets[1].Features = []string{"\xff"}
	if got, err := starts(r); err != nil || !slices.Equal(got, []int64{30, 30}) {
		t.Errorf("with a name that is no UTF-8 it plans %v, %v", got, err)
	}
	for _, bad := range [][]planner.NodeSet{{{Nodes: 5}}, {{Nodes: 2}, {Nodes: 3}}, {{Nodes: 0}}, {{Nodes: 1, Free: 2}}, {{Nodes: 1, Power: 9}}, {{Nodes: 1, Features: make([]string, 65)}}, make([]planner.NodeSet, 1025)} {
		r.Sets = bad
		if _, err := starts(r); err == nil || errors.Is(err, strategy.ErrBroken) {
			t.Errorf("%.100s: %v", fmt.Sprint(bad), err)
		}
	}
}

// BenchmarkSets measures a call with the sets of 5,000 nodes: on 300 leaf switches of two levels, each with two power states.
func BenchmarkSets(b *testing.B) {
	for _, sets := range []int{0, 600, planner.MaxNodeSets} {
		b.Run(fmt.Sprint(sets), func(b *testing.B) {
			r := strategy.Request{Problem: planner.Problem{Nodes: 5000, Jobs: []planner.Job{{ID: "1", ExpandLimit: 1, Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}}}
			for i := range sets {
				r.Sets = append(r.Sets, planner.NodeSet{Nodes: 4, Free: 2, Weight: 1, Switches: []string{fmt.Sprint("leaf", i/2), fmt.Sprint("island", i/60), "top"},
					Features: []string{"icelake", "ib", "scratch"}, Power: planner.Power(i % 2 * 2)})
			}
			c := started(b, exec.Command(built(b, "../cmd/awake")))
			d, err := c.Describe(b.Context(), nil)
			must.OK(b, err)
			for b.Loop() {
				_, err := c.Plan(b.Context(), nil, d, r)
				must.OK(b, err)
			}
		})
	}
}
