package sim

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/bag"
)

// Cigri is the experiment of Georgiou's thesis (2010, section 4.4) with a bag of tasks on what the
// local jobs of clusters leave; see doc.go for what its text leaves open.
type Cigri struct {
	Nodes   []int     `json:"nodes"` // of each cluster
	CPUs    int       `json:"cpus"`  // of a node; a task takes one
	Seconds int64     `json:"seconds"`
	Load    int       `json:"load"`   // percent of the CPUs that local jobs use
	Length  int64     `json:"length"` // mean seconds that a local job has a CPU
	Limit   int       `json:"limit"`  // requested time of a local job, as a multiple of what it takes
	Ahead   int64     `json:"ahead"`  // seconds for which a plan knows a local job before it may start
	Bag     bag.Model `json:"bag"`
	Tests   int       `json:"tests"`
	Seed    uint64    `json:"seed"`
}

// CigriTables holds the experiments of tables 4.1 and 4.2.
var CigriTables = []Cigri{cigriTable([]int{32}, 40, 2375), cigriTable([]int{72, 32, 32, 32, 32}, 60, 7435)}

func cigriTable(nodes []int, load int, length int64) Cigri {
	return Cigri{Nodes: nodes, CPUs: 2, Seconds: 5 * 3600, Load: load, Length: length, Limit: 2, Tests: 100, Seed: 1, Bag: bag.Model{Task: 45 * 60,
		Reaction: 8, Grace: 4, Checkpoint: 2.9, Error: .01, RestartError: .3, Period: 20 * 60, Overhead: 1600}}
}

// Validate returns what cannot be simulated.
func (e Cigri) Validate() error {
	cpus := 0
	for _, n := range e.Nodes {
		if n < 1 || n > 1000 {
			return fmt.Errorf("nodes: %d is not within 1 … 1000", n)
		}
		cpus += n * e.CPUs
	}
	if len(e.Nodes) == 0 || cpus > 4000 {
		return fmt.Errorf("nodes: %d clusters with %d CPUs; must have 1 … 4000 in all", len(e.Nodes), cpus)
	}
	for _, v := range []struct {
		name             string
		got, least, most int64
	}{
		{"cpus", int64(e.CPUs), 1, 64}, {"seconds", e.Seconds, 60, 100_000}, {"load", int64(e.Load), 0, 90}, {"length", e.Length, 60, 100_000},
		{"limit", int64(e.Limit), 1, 100}, {"ahead", e.Ahead, 0, 100_000}, {"task", e.Bag.Task, 60, 100_000}, {"reaction", e.Bag.Reaction, 0, 3600}, {"grace", e.Bag.Grace, 0, 3600},
		{"period", e.Bag.Period, 60, 100_000}, {"overhead", e.Bag.Overhead, 0, 100_000}, {"tests", int64(e.Tests), 1, 10_000},
	} {
		if v.got < v.least || v.got > v.most {
			return fmt.Errorf("%s: %d is not within %d … %d", v.name, v.got, v.least, v.most)
		}
	}
	for _, v := range []struct {
		name      string
		got, most float64
	}{{"checkpoint", e.Bag.Checkpoint, 3600}, {"error", e.Bag.Error, 1}, {"restart-error", e.Bag.RestartError, 1}} {
		if !(v.got >= 0 && v.got <= v.most) {
			return fmt.Errorf("%s: %v is not within 0 … %v", v.name, v.got, v.most)
		}
	}
	return nil
}

// CigriColumns lists the columns of tables 4.1 and 4.2, the CPU-hours of computation that
// interruptions lost, and the mean and the worst seconds that tasks delay a local job.
var CigriColumns = []string{"total", "terminated", "running", "error", "not_valuable", "valuable", "lost", "delay", "worst_delay"}

// CigriPublished is tables 4.1 and 4.2, by strategy and column. The last total is a misprint: the
// columns' sum is 1402.
var CigriPublished = []map[string]map[string]float64{{
	"triggered": {"total": 338, "terminated": 156, "running": 14, "error": 20, "not_valuable": 70, "valuable": 78},
	"periodic":  {"total": 302, "terminated": 50, "running": 6, "error": 45, "not_valuable": 168, "valuable": 33},
	"none":      {"total": 343, "terminated": 134, "running": 14, "error": 1, "not_valuable": 194, "valuable": 0},
}, {
	"triggered": {"total": 1377, "terminated": 762, "running": 74, "error": 103, "not_valuable": 226, "valuable": 212},
	"none":      {"total": 1420, "terminated": 739, "running": 74, "error": 8, "not_valuable": 581, "valuable": 0},
}}

// CigriRow holds one strategy's figures, by column.
type CigriRow struct {
	Strategy string           `json:"strategy"`
	Columns  map[string]Range `json:"columns"`
}

// CigriResult is the result of an experiment.
type CigriResult struct {
	Jobs   Range      `json:"local_jobs"`
	Waited Range      `json:"local_wait"` // percent of them that waited for other local jobs, so that a plan knew their start
	Room   Range      `json:"room"`       // tasks that the time without local jobs is enough for: no strategy exceeds it
	Rows   []CigriRow `json:"strategies"`

	// WayToClairvoyant is how far plan-aware goes from none to clairvoyant in terminated tasks, in
	// percent; WayToRoom, to the room. They are nil without a way to go.
	WayToClairvoyant *float64 `json:"way_to_clairvoyant"`
	WayToRoom        *float64 `json:"way_to_room"`

	// Beyond holds what plan-aware has more than triggered, by column.
	Beyond map[string]Paired `json:"plan_aware_beyond_triggered"`
}

// Paired is the mean of the differences within the tests, and two of its standard errors: half of
// its 95 % confidence interval.
type Paired struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_interval"`
}

// Run runs the experiment on that many workers. progress, if not nil, is called after every test.
func (e Cigri) Run(ctx context.Context, workers int, progress func()) (CigriResult, error) {
	if err := e.Validate(); err != nil {
		return CigriResult{}, err
	}
	tests := make([]cigriTest, e.Tests)
	err := each(ctx, e.Tests, workers, func(ctx context.Context, i int) (err error) {
		tests[i], err = e.test(ctx, i)
		return err
	}, progress)
	if err != nil {
		return CigriResult{}, err
	}
	return summarize(tests), nil
}

// cigriTest holds the figures of a test: of its local jobs, and by strategy and column.
type cigriTest struct {
	jobs, waited, room float64
	figures            []map[string]float64
}

// test simulates all strategies beside the same local jobs. Clusters share nothing: a checkpoint
// stays in its own, and the bag is never empty.
func (e Cigri) test(ctx context.Context, test int) (t cigriTest, err error) {
	for range bag.Strategies {
		t.figures = append(t.figures, make(map[string]float64))
	}
	for c, nodes := range e.Nodes {
		cpus := nodes * e.CPUs
		seed := rand.New(rand.NewPCG(e.Seed, uint64(test)<<16|uint64(c))).Uint64()
		jobs, err := e.local(ctx, cpus, seed)
		if err != nil {
			return t, fmt.Errorf("test %d: %w", test+1, err)
		}
		t.jobs += float64(jobs.number)
		t.waited += float64(jobs.waited)
		for _, uses := range jobs.Uses {
			left := e.Seconds
			for _, u := range uses {
				left -= u.End - u.Start
			}
			t.room += float64(left) / float64(e.Bag.Task)
		}
		for i, s := range bag.Strategies {
			runs := e.Bag.Simulate(jobs.Cluster, s, ^seed)
			addFigures(t.figures[i], runs)
		}
	}
	for _, f := range t.figures {
		f["delay"] /= max(t.jobs, 1)
	}
	t.waited *= 100 / max(t.jobs, 1)
	return t, nil
}

// addFigures adds a cluster's runs to a strategy's figures.
func addFigures(f map[string]float64, runs []bag.Run) {
	n := bag.Count(runs)
	for column, v := range map[string]int{"total": n.Total(), "terminated": n.Terminated, "running": n.Running, "error": n.Failed,
		"not_valuable": n.Wasted, "valuable": n.Valuable} {
		f[column] += float64(v)
	}
	f["lost"] += float64(n.Lost) / 3600
	delays := make(map[int]float64) // a local job waits for the last of its CPUs
	for _, r := range runs {
		if r.Job >= 0 {
			delays[r.Job] = max(delays[r.Job], r.Delay)
		}
	}
	for _, job := range slices.Sorted(maps.Keys(delays)) { // in order, so that sums are equal in every run
		f["delay"] += delays[job]
		f["worst_delay"] = max(f["worst_delay"], delays[job])
	}
}

// summarize returns the ranges over all tests.
func summarize(tests []cigriTest) (r CigriResult) {
	of := func(value func(t cigriTest) float64) Range {
		var g gather
		for _, t := range tests {
			g.add(value(t))
		}
		return g.Range
	}
	r.Jobs = of(func(t cigriTest) float64 { return t.jobs })
	r.Waited = of(func(t cigriTest) float64 { return t.waited })
	r.Room = of(func(t cigriTest) float64 { return t.room })
	for i, s := range bag.Strategies {
		row := CigriRow{s.String(), make(map[string]Range)}
		for _, column := range CigriColumns {
			row.Columns[column] = of(func(t cigriTest) float64 { return t.figures[i][column] })
		}
		r.Rows = append(r.Rows, row)
	}
	terminated := func(s bag.Strategy) float64 { return r.Rows[s].Columns["terminated"].Avg }
	way := func(to float64) *float64 {
		if to <= terminated(bag.None) {
			return nil
		}
		percent := 100 * (terminated(bag.Planned) - terminated(bag.None)) / (to - terminated(bag.None))
		return &percent
	}
	r.WayToClairvoyant, r.WayToRoom = way(terminated(bag.Clairvoyant)), way(r.Room.Avg)
	r.Beyond = make(map[string]Paired)
	for _, column := range CigriColumns {
		beyond := func(t cigriTest) float64 { return t.figures[bag.Planned][column] - t.figures[bag.Triggered][column] }
		mean, n := of(beyond).Avg, float64(len(tests))
		squares := of(func(t cigriTest) float64 { return (beyond(t) - mean) * (beyond(t) - mean) }).Avg
		r.Beyond[column] = Paired{mean, 2 * math.Sqrt(squares/max(n-1, 1))}
	}
	return r
}
