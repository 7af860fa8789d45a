package workload_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
)

// TestGreenFits: the jobs fit beside each other at the times at which they are submitted, and are the load.
func TestGreenFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := workload.Green{Nodes: rapid.IntRange(4, 64).Draw(t, "nodes"), Seconds: 5 * 3600, Load: rapid.Float64Range(5, 80).Draw(t, "load"),
			Jobs: rapid.IntRange(150, 400).Draw(t, "jobs"), LargeJobs: rapid.IntRange(0, 20).Draw(t, "large")}
		if g.LargeJobs > 3 {
			g.LargeWork = rapid.IntRange(0, 60).Draw(t, "work")
		}
		seed := rapid.Uint64().Draw(t, "seed")
		jobs, err := g.Generate(seed, 3)
		if err != nil {
			return // such jobs need not fit
		}
		var used planner.Timeline
		area, before := int64(0), int64(0)
		for _, j := range jobs {
			if j.Submit < before || j.Length < 1 || j.Limit < j.Length || j.Nodes < 1 || j.Submit+j.Length > g.Seconds {
				t.Fatalf("%+v after %d", j, before)
			}
			before, area = j.Submit, area+j.Length*int64(j.Nodes)
			used.Add(j.Submit, j.Submit+j.Length, j.Nodes)
		}
		if most := used.Max(0, g.Seconds); most > g.Nodes || len(jobs) != g.Jobs {
			t.Fatalf("%d jobs have %d nodes of %d", len(jobs), most, g.Nodes)
		}
		// A length is rounded to a second, and is one at least.
		all := float64(g.Nodes) * float64(g.Seconds)
		if got := float64(area) / all * 100; math.Abs(got-g.Load) > 100*float64(g.Jobs*g.Nodes)/all {
			t.Fatalf("load %v, want %v", got, g.Load)
		}
		if again, _ := g.Generate(seed, 3); !reflect.DeepEqual(jobs, again) {
			t.Fatal("equal seeds give other jobs")
		}
	})
}

func TestGreenRefuses(t *testing.T) {
	good := workload.Green{Nodes: 32, Seconds: 18_000, Load: 50, Jobs: 300, LargeJobs: 5, LargeWork: 90}
	for want, change := range map[string]func(*workload.Green){
		"nodes: 3 is not":          func(g *workload.Green) { g.Nodes = 3 },
		"seconds: 10 is not":       func(g *workload.Green) { g.Seconds = 10 },
		"load: 200 is not":         func(g *workload.Green) { g.Load = 200 },
		"load: NaN is not":         func(g *workload.Green) { g.Load = math.NaN() },
		"jobs: 0 is not":           func(g *workload.Green) { g.Jobs = 0 },
		"large jobs: -1 is not":    func(g *workload.Green) { g.LargeJobs = -1 },
		"large work: 101 is not":   func(g *workload.Green) { g.LargeWork = 101 },
		"do not fit beside each o": func(g *workload.Green) { g.Jobs, g.Load, g.LargeJobs = 1, 90, 0 },
	} {
		g := good
		change(&g)
		err := g.Validate()
		if err == nil {
			_, err = g.Generate(1, 0)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
