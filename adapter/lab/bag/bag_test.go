package bag_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/bag"
)

// TestOneProcessor follows tasks of 1500 s beside a local job from second 1000 to 2000.
func TestOneProcessor(t *testing.T) {
	c := bag.Cluster{Uses: [][]bag.Use{{{Job: 7, Start: 1000, End: 2000}}}, Until: 6000}
	known := c
	known.Plans = []bag.Plan{{At: 0, Next: []int64{1000}}, {At: 1000, Next: []int64{bag.Never}}}
	m := bag.Model{Task: 1500, Grace: 4, Period: 400}
	slow := m
	slow.Checkpoint = 1e9
	overhead := m
	overhead.Overhead = 100
	late := bag.Model{Task: 1500, Grace: 4, Period: 400, Reaction: 150}
	for _, test := range []struct {
		name     string
		model    bag.Model
		cluster  bag.Cluster
		strategy bag.Strategy
		want     bag.Tally
	}{
		{"begins again", m, c, bag.None, bag.Tally{Terminated: 2, Running: 1, Wasted: 1, Lost: 1000}},
		{"two checkpoints", m, c, bag.Periodic, bag.Tally{Terminated: 3, Running: 1, Valuable: 1, Lost: 200}},
		{"checkpoints cost time", overhead, c, bag.Periodic, bag.Tally{Terminated: 2, Running: 1, Valuable: 1}},
		{"on demand", m, c, bag.Triggered, bag.Tally{Terminated: 3, Running: 1, Valuable: 1}},
		{"starts cost time", late, c, bag.Triggered, bag.Tally{Terminated: 2, Running: 1, Valuable: 1}},
		{"too slow for the grace", slow, c, bag.Triggered, bag.Tally{Terminated: 2, Running: 1, Wasted: 1, Lost: 1000}},
		{"nothing known", m, c, bag.Planned, bag.Tally{Terminated: 3, Running: 1, Valuable: 1}},
		{"known", m, known, bag.Planned, bag.Tally{Terminated: 3, Running: 1, Valuable: 1}},
		{"value only if it terminates", m, bag.Cluster{Uses: c.Uses, Until: 2200}, bag.Triggered, bag.Tally{Running: 1, Wasted: 1}},
		{"no checkpoint at the end", bag.Model{Task: 800, Period: 400, Overhead: 100}, bag.Cluster{Uses: make([][]bag.Use, 1), Until: 1000}, bag.Periodic, bag.Tally{Terminated: 1, Running: 1}},
		{"all known", m, c, bag.Clairvoyant, bag.Tally{Terminated: 3, Running: 1, Valuable: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := bag.Count(test.model.Simulate(test.cluster, test.strategy, 1)); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestMakesRoom: a known local job finds its processor empty; an unknown one waits for the
// checkpoint, and never longer than the grace.
func TestMakesRoom(t *testing.T) {
	c := bag.Cluster{Uses: [][]bag.Use{{{Job: 7, Start: 1000, End: 2000}}}, Until: 2000, Plans: []bag.Plan{{At: 0, Next: []int64{1000}}}}
	m := bag.Model{Task: 1500, Grace: 4, Period: 400, Checkpoint: 2}
	runs := m.Simulate(c, bag.Planned, 1)
	if r := runs[0]; len(runs) != 1 || r.End != 990 || r.Job != -1 || r.Kept != 990 || r.Delay != 0 {
		t.Errorf("known: %+v", runs)
	}
	m.Checkpoint = 1e9
	if r := m.Simulate(c, bag.Triggered, 1)[0]; r.End != 1000 || r.Job != 7 || r.Kept != 0 || r.Delay != 4 {
		t.Errorf("unknown: %+v", r)
	}
}

// TestFits places two interrupted tasks with 900 and 500 s to go. The plan leaves a gap on the first
// processor.
func TestFits(t *testing.T) {
	m := bag.Model{Task: 1500, Period: 400}
	for _, test := range []struct {
		gap  int64
		want []int // tasks on the first and the second processor
	}{{400, []int{1, 0}}, {600, []int{1, 0}}, {1000, []int{0, 1}}, {1800, []int{2, 1}}, {2400, []int{0, 1}}} {
		c := bag.Cluster{Until: 2001, Uses: [][]bag.Use{{{Start: 600, End: 2000}}, {{Start: 1000, End: 2000}}},
			Plans: []bag.Plan{{At: 2000, Next: []int64{2000 + test.gap, bag.Never}}}}
		got := []int{-1, -1}
		for _, r := range m.Simulate(c, bag.Planned, 1) {
			if r.Start == 2000 {
				got[r.Processor] = r.Task
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("gap of %d s: tasks %v, want %v", test.gap, got, test.want)
		}
	}
}

func drawModel(t *rapid.T) bag.Model {
	chance := rapid.SampledFrom([]float64{0, .1, 1})
	return bag.Model{
		Task: rapid.Int64Range(1, 500).Draw(t, "task"), Reaction: rapid.Int64Range(0, 20).Draw(t, "reaction"), Grace: rapid.Int64Range(0, 20).Draw(t, "grace"),
		Checkpoint: rapid.SampledFrom([]float64{0, 3, 50}).Draw(t, "checkpoint"), Error: chance.Draw(t, "error"), RestartError: chance.Draw(t, "restart error"),
		Period: rapid.Int64Range(1, 300).Draw(t, "period"), Overhead: rapid.Int64Range(0, 100).Draw(t, "overhead"),
	}
}

// drawCluster draws a cluster, with plans that may be wrong.
func drawCluster(t *rapid.T) bag.Cluster {
	c := bag.Cluster{Uses: make([][]bag.Use, rapid.IntRange(1, 4).Draw(t, "processors")), Until: rapid.Int64Range(1, 3000).Draw(t, "until")}
	for p := range c.Uses {
		at := int64(0)
		for range rapid.IntRange(0, 6).Draw(t, "uses") {
			start := at + rapid.Int64Range(0, 600).Draw(t, "gap")
			at = start + rapid.Int64Range(1, 600).Draw(t, "length")
			c.Uses[p] = append(c.Uses[p], bag.Use{Job: rapid.IntRange(0, 3).Draw(t, "job"), Start: start, End: at})
		}
	}
	at := int64(0)
	for range rapid.IntRange(0, 5).Draw(t, "plans") {
		plan := bag.Plan{At: at}
		for range c.Uses {
			plan.Next = append(plan.Next, rapid.OneOf(rapid.Just(int64(bag.Never)), rapid.Int64Range(0, 3000)).Draw(t, "next"))
		}
		c.Plans = append(c.Plans, plan)
		at += rapid.Int64Range(1, 600).Draw(t, "until next plan")
	}
	return c
}

// TestProperties checks what must be true of every strategy beside any local jobs.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, c, seed := drawModel(t), drawCluster(t), rapid.Uint64().Draw(t, "seed")
		left := int64(0) // seconds without local jobs
		for _, uses := range c.Uses {
			left += c.Until
			for _, u := range uses {
				left -= max(min(u.End, c.Until)-u.Start, 0)
			}
		}
		most := 0
		for _, s := range bag.Strategies {
			runs := m.Simulate(c, s, seed)
			if diff := cmp.Diff(runs, m.Simulate(c, s, seed)); diff != "" {
				t.Fatalf("%s: the same again: %s", s, diff)
			}
			checkRuns(t, m, s, runs)
			checkProcessors(t, c, runs)
			n := bag.Count(runs)
			if n.Total() != len(runs) {
				t.Fatalf("%s: %d runs, counted %+v", s, len(runs), n)
			}
			if int64(n.Terminated)*m.Task > left {
				t.Fatalf("%s: %d tasks terminated in %d s", s, n.Terminated, left)
			}
			if m.Checkpoint == 0 && s >= bag.Triggered && s != bag.Clairvoyant && n.Lost > 0 {
				t.Fatalf("%s: lost %d s though checkpoints take no time", s, n.Lost)
			}
			if most = max(most, n.Terminated); s == bag.Clairvoyant && n.Terminated < most {
				t.Fatalf("clairvoyant terminates %d, another strategy %d", n.Terminated, most)
			}
		}
	})
}

// checkRuns checks each task's runs: it ends at most once, never runs twice at a time, and goes on
// from what its last run kept.
func checkRuns(t *rapid.T, m bag.Model, s bag.Strategy, runs []bag.Run) {
	last := make(map[int]bag.Run)
	for _, r := range runs {
		before, again := last[r.Task]
		last[r.Task] = r
		if again && (before.Outcome != bag.Interrupted || r.Start < before.End || before.Kept == 0) {
			t.Fatalf("%s: task %d cannot run again: %+v, %+v", s, r.Task, before, r)
		}
		if r.From != before.Kept {
			t.Fatalf("%s: task %d goes on from %d s: %+v", s, r.Task, before.Kept, r)
		}
		checkWork(t, m, s, r)
		checkDelay(t, m, s, r)
	}
}

// checkWork checks that a run computes no longer than it runs, keeps no more than that, and ends
// when the task is done.
func checkWork(t *rapid.T, m bag.Model, s bag.Strategy, r bag.Run) {
	switch {
	case r.Kept < r.From || r.Kept > r.From+r.Done || s == bag.None && r.Kept > 0:
		t.Fatalf("%s: impossible checkpoint: %+v", s, r)
	case r.Done < 0 || r.Done > max(r.End-r.Start-m.Reaction, 0):
		t.Fatalf("%s: computes longer than it runs: %+v", s, r)
	case r.Outcome == bag.Terminated && r.From+r.Done != m.Task:
		t.Fatalf("%s: ends before it is done: %+v", s, r)
	}
}

// checkDelay checks that only a checkpoint on demand delays a local job, by the grace at most, and
// that one that takes longer is lost.
func checkDelay(t *rapid.T, m bag.Model, s bag.Strategy, r bag.Run) {
	if r.Delay < 0 || r.Delay > float64(m.Grace) || r.Delay > 0 && (r.Job < 0 || s < bag.Triggered) {
		t.Fatalf("%s: delays a local job: %+v", s, r)
	}
	demand := r.Job >= 0 && (s == bag.Triggered || s == bag.Planned)
	if demand && m.Checkpoint > 0 && r.Delay == float64(m.Grace) && r.Kept > r.From {
		t.Fatalf("%s: has a checkpoint that took longer than the grace: %+v", s, r)
	}
}

// checkProcessors checks that a processor is never used twice at a time.
func checkProcessors(t *rapid.T, c bag.Cluster, runs []bag.Run) {
	free := make([]int64, len(c.Uses))
	for _, r := range runs {
		if r.Start < free[r.Processor] || r.End > c.Until {
			t.Fatalf("the processor is not free: %+v", r)
		}
		free[r.Processor] = r.End
		for _, u := range c.Uses[r.Processor] {
			if r.Start < u.End && u.Start < r.End {
				t.Fatalf("a local job has the processor from %d to %d: %+v", u.Start, u.End, r)
			}
		}
	}
}

// TestAlone checks that without local jobs all strategies terminate the same number, and that no
// processor is ever idle.
func TestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, seed := drawModel(t), rapid.Uint64().Draw(t, "seed")
		m.Overhead, m.Error = 0, 0
		c := bag.Cluster{Uses: make([][]bag.Use, 3), Until: rapid.Int64Range(1, 3000).Draw(t, "until")}
		for _, s := range bag.Strategies {
			if got, want := bag.Count(m.Simulate(c, s, seed)).Terminated, 3*int((c.Until-1)/(m.Task+m.Reaction)); got != want {
				t.Fatalf("%s: %d terminated, want %d", s, got, want)
			}
		}
	})
}
