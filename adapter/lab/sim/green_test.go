package sim_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestGreen checks what holds in table 6.2: the normal mode's energy, hardly a wait there, and that a small saving is what is
// left at 89.62 %. It does not check what is not reproduced.
func TestGreen(t *testing.T) {
	e := sim.DefaultGreen
	e.Tests = 4
	tables, err := e.Run(t.Context(), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		checkGreen(t, table)
	}
	if again, err := e.Run(t.Context(), 1, nil); err != nil || !reflect.DeepEqual(tables, again) {
		t.Errorf("one worker: %v, %v", again, err)
	}
}

func checkGreen(t *testing.T, table sim.GreenTable) {
	t.Helper()
	normal, clairvoyant := table.Rows[0], table.Rows[len(table.Rows)-1]
	if kwh := table.Published["normal"].KWh; math.Abs(normal.KWh.Avg-kwh) > 1e-6 || normal.Wait.Max != 0 || normal.Boots.Max != 0 {
		t.Errorf("%v %%: normal is %+v", table.Load, normal)
	}
	if table.Least.Avg > clairvoyant.KWh.Avg || clairvoyant.Wait.Max != 0 {
		t.Errorf("%v %%: at least %v kWh, clairvoyant %+v", table.Load, table.Least, clairvoyant)
	}
	best := false
	for _, r := range table.Rows {
		if r.KWh.Avg > normal.KWh.Avg || r.KWh.Avg < clairvoyant.KWh.Avg {
			t.Errorf("%v %%: %s is not between normal and clairvoyant", table.Load, r.Mode)
		}
		best = best || r.Mode == table.Best && r.Wait.Avg <= table.Tenth
	}
	if !best || *table.BreakEven != 77 {
		t.Errorf("%v %%: best %q, break-even %d", table.Load, table.Best, *table.BreakEven)
	}
}

// drawGreen returns a small experiment.
func drawGreen(t *rapid.T) (sim.Green, sim.GreenLoad) {
	e, load := sim.DefaultGreen, sim.DefaultGreen.Loads[rapid.IntRange(0, 1).Draw(t, "load")]
	load.Nodes, load.Jobs, load.Load = 8, rapid.IntRange(20, 60).Draw(t, "jobs"), rapid.Float64Range(5, 60).Draw(t, "percent")
	e.Loads, e.Tests, e.Seed = []sim.GreenLoad{load}, 1, rapid.Uint64().Draw(t, "seed")
	e.Boot, e.Shutdown = rapid.Int64Range(1, 400).Draw(t, "boot"), rapid.Int64Range(1, 60).Draw(t, "shutdown")
	e.Off = rapid.Float64Range(0, 120).Draw(t, "off")
	e.Suspend, e.Reserves, e.Declared = []int64{0, 200}, []int{0, 3, 9}, []int{40}
	return e, load
}

// TestGreenNodes: in every mode, nodes change as nodes do, none is off while a job has it, no second is lost, every job has its
// time, and none starts before it was submitted.
func TestGreenNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, load := drawGreen(t)
		jobs, err := load.Generate(e.Seed, 0)
		if err != nil {
			return
		}
		tables, err := e.Run(t.Context(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		work := int64(0)
		for _, j := range jobs {
			work += int64(j.Nodes) * j.Length
		}
		for _, row := range tables[0].Rows[:len(tables[0].Rows)-1] {
			seconds := followGreen(t, e, load, row.Mode, len(jobs))
			sum := int64(0)
			for _, s := range seconds {
				sum += s
			}
			if want := int64(load.Nodes) * max(load.Seconds, int64(row.End.Max)); sum != want || seconds[energy.Busy] != work || row.Wait.Min < 0 {
				t.Fatalf("%s: %v of %d node-seconds, %d with jobs, wait %v", row.Mode, seconds, want, work, row.Wait)
			}
		}
	})
}

// followGreen checks every change of a node's state, and returns the node-seconds.
func followGreen(t *rapid.T, e sim.Green, load sim.GreenLoad, mode string, jobs int) energy.Seconds {
	state := slices.Repeat([]energy.State{energy.Idle}, load.Nodes)
	starts, seconds, err := e.Starts(context.Background(), load, mode, func(now int64, node int, s energy.State, job bool) {
		if !slices.Contains(state[node].Follows(), s) {
			t.Fatalf("%s: second %d: node %d: %v after %v", mode, now, node, s, state[node])
		}
		if state[node] = s; job && (s == energy.Off || s == energy.Shutdown) || !job && s == energy.Busy {
			t.Fatalf("%s: second %d: node %d is %v, job: %v", mode, now, node, s, job)
		}
	})
	if err != nil || len(starts) != jobs {
		t.Fatalf("%s: %d of %d jobs, %v", mode, len(starts), jobs, err)
	}
	return seconds
}

// TestGreenBounds: nothing draws more than nodes that are always on, if it ends with them and a boot draws no more than an idle
// node, and nothing less than nodes that are off whenever they have no job. No mode without a wait is below the clairvoyant one.
func TestGreenBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, load := drawGreen(t)
		e.Booting, e.Off = 100, rapid.Float64Range(0, 100).Draw(t, "off")
		if rapid.Bool().Draw(t, "at once") {
			e.Boot = 1
		}
		if _, err := load.Generate(e.Seed, 0); err != nil {
			return
		}
		tables, err := e.Run(t.Context(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, least := tables[0].Rows, tables[0].Least.Avg
		normal, clairvoyant := rows[0], rows[len(rows)-1]
		for _, r := range rows {
			if r.End.Max <= float64(load.Seconds) && r.KWh.Avg > normal.KWh.Avg+1e-9 {
				t.Fatalf("%s: %v kWh, always on %v", r.Mode, r.KWh.Avg, normal.KWh.Avg)
			}
			if r.KWh.Avg < least-1e-9 || r.Wait.Avg == 0 && r.KWh.Avg < clairvoyant.KWh.Avg-1e-9 {
				t.Fatalf("%s: %v kWh, at least %v, clairvoyant %v", r.Mode, r.KWh.Avg, least, clairvoyant.KWh.Avg)
			}
		}
	})
}

// TestGreenBoots: the plan counts a boot for a node that is off, and one more than the rest of its shutdown for a node that goes
// off. Here, the second job has two of three nodes when the first ends, so that the third runs before it on the one that is
// awake. If a node were ready right after its shutdown, the plan would keep that one for the second job.
func TestGreenBoots(t *testing.T) {
	e := sim.DefaultGreen
	job := func(submit, length int64, nodes int) workload.GreenJob {
		return workload.GreenJob{Submit: submit, Length: length, Limit: length, Nodes: nodes}
	}
	for _, c := range []struct {
		what string
		jobs []workload.GreenJob
		want []int64
	}{
		{"goes off", []workload.GreenJob{job(0, 100, 1), job(5, 100, 2), job(5, 50, 1)}, []int64{0, 100, 5}},
		{"goes off, and comes first", []workload.GreenJob{job(0, 200, 1), job(5, 100, 2), job(5, 50, 1)}, []int64{0, 15 + 154, 5}},
		{"off", []workload.GreenJob{job(0, 100, 1), job(20, 100, 2), job(20, 50, 1)}, []int64{0, 100, 20}},
		{"off, and comes first", []workload.GreenJob{job(0, 200, 1), job(20, 100, 2), job(20, 50, 1)}, []int64{0, 20 + 154, 20}},
	} {
		if got, err := e.PlanStarts(t.Context(), 3, c.jobs); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: starts at %v, %v, want %v", c.what, got, err, c.want)
		}
	}
}

// TestGreenClairvoyant: a gap of 216 s is the first in which a node that is off draws less: 15 s down, 154 s up, 47 s off.
func TestGreenClairvoyant(t *testing.T) {
	e := sim.DefaultGreen
	w := energy.Watts{energy.Busy: 200, energy.Idle: 200, energy.Boot: 260, energy.Shutdown: 200}
	for _, c := range []struct {
		what  string
		nodes int
		jobs  []workload.GreenJob
		until int64
		want  energy.Seconds
		boots int
	}{
		{"no job", 2, nil, 100, energy.Seconds{energy.Shutdown: 30, energy.Off: 170}, 0},
		{"never without one", 1, []workload.GreenJob{{Submit: 0, Length: 50, Nodes: 1}, {Submit: 50, Length: 50, Nodes: 1}}, 100, energy.Seconds{energy.Busy: 100}, 0},
		{"too short a gap", 1, []workload.GreenJob{{Submit: 0, Length: 50, Nodes: 1}, {Submit: 265, Length: 50, Nodes: 1}}, 315, energy.Seconds{energy.Busy: 100, energy.Idle: 215}, 0},
		{"a gap", 1, []workload.GreenJob{{Submit: 0, Length: 50, Nodes: 1}, {Submit: 266, Length: 50, Nodes: 1}}, 316,
			energy.Seconds{energy.Busy: 100, energy.Shutdown: 15, energy.Boot: 154, energy.Off: 47}, 1},
		{"before the first and after the last", 2, []workload.GreenJob{{Submit: 1000, Length: 100, Nodes: 2}}, 1200,
			energy.Seconds{energy.Busy: 200, energy.Shutdown: 60, energy.Boot: 308, energy.Off: 2*831 + 2*85}, 2},
		{"the second node takes over", 2, []workload.GreenJob{{Submit: 0, Length: 500, Nodes: 1}, {Submit: 400, Length: 600, Nodes: 1}}, 1000,
			energy.Seconds{energy.Busy: 1100, energy.Shutdown: 30, energy.Boot: 154, energy.Off: 400 - 169 + 485}, 1},
	} {
		if got, boots := e.Clairvoyant(w, c.nodes, c.jobs, c.until); got != c.want || boots != c.boots {
			t.Errorf("%s: %v, %d boots, want %v, %d", c.what, got, boots, c.want, c.boots)
		}
	}
}

// TestGreenOffDrawsMore: where a node that is off draws as much as an idle one, no plan switches it off.
func TestGreenOffDrawsMore(t *testing.T) {
	e := sim.DefaultGreen
	e.Tests, e.Off = 1, 100
	tables, err := e.Run(t.Context(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tables[0].Rows {
		if strings.HasPrefix(r.Mode, "plan") && r.Boots.Max > 0 || r.Mode == "clairvoyant" && r.Boots.Max > 0 {
			t.Errorf("%s: %v boots", r.Mode, r.Boots.Max)
		}
	}
	if tables[0].BreakEven != nil {
		t.Error("there is a break-even time")
	}
}

// TestGreenSlurm compares Slurm's power saving with that of the model of slurmctld, on the same jobs. There, slurmctld sees some
// seconds later that a node is up, so waits are longer, but not by half.
func TestGreenSlurm(t *testing.T) {
	noX, err := planner.StrategyByName("noX")
	if err != nil {
		t.Fatal(err)
	}
	for _, suspend := range []int64{60, 300, 600} {
		mine, slurm := 0., 0.
		for seed := range uint64(3) {
			for _, load := range sim.DefaultGreen.Loads {
				e := sim.DefaultGreen
				e.Seed, e.Suspend = seed, []int64{suspend}
				jobs, err := load.Generate(seed, 0)
				if err != nil {
					t.Fatal(err)
				}
				starts, _, err := e.Starts(t.Context(), load, fmt.Sprintf("Slurm, SuspendTime=%d", suspend), nil)
				if err != nil {
					t.Fatal(err)
				}
				x := simulate.Experiment{Config: config.Default(), Strategy: noX, Cluster: slurmsim.Options{CPUs: 1, Nodes: load.Nodes, Seed: 1, PowerSaving: slurmsim.PowerSaving{
					SuspendTime: time.Duration(suspend) * time.Second, SuspendTimeout: time.Duration(e.Shutdown) * time.Second,
					ResumeTimeout: time.Hour, Boot: time.Duration(e.Boot) * time.Second}}}
				wait := 0.
				for i, j := range jobs {
					x.Jobs = append(x.Jobs, simulate.Submission{ID: fmt.Sprint(i), Submit: j.Submit, Limit: j.Limit, Profile: planner.Profile{{Duration: j.Length, Nodes: j.Nodes}}})
					wait += float64(starts[i]-j.Submit) / float64(len(jobs))
				}
				r, err := x.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				mine, slurm = mine+wait/6, slurm+r.Metrics.Wait.Mean/6
			}
		}
		t.Logf("SuspendTime=%d: mean wait %.0f s, and %.0f s by the model of slurmctld", suspend, mine, slurm)
		if mine > slurm*1.1 || slurm > mine*1.5 {
			t.Errorf("SuspendTime=%d: mean wait %.0f s, and %.0f s by the model of slurmctld", suspend, mine, slurm)
		}
	}
}

func TestGreenValidate(t *testing.T) {
	for what, change := range map[string]func(*sim.Green){
		"boot: -1 is not":        func(e *sim.Green) { e.Boot = -1 },
		"shutdown: 90000 is not": func(e *sim.Green) { e.Shutdown = 90_000 },
		"sleep time: -1 is not":  func(e *sim.Green) { e.SleepTime = -1 },
		"notice: -1 is not":      func(e *sim.Green) { e.Notice = -1 },
		"suspend: -1 is not":     func(e *sim.Green) { e.Suspend = []int64{-1} },
		"reserves: 2000 is not":  func(e *sim.Green) { e.Reserves = []int{2000} },
		"declared: 101 is not":   func(e *sim.Green) { e.Declared = []int{101} },
		"tests: 0 is not":        func(e *sim.Green) { e.Tests = 0 },
		"off: -40 is not":        func(e *sim.Green) { e.Off = -40 },
		"booting: NaN is not":    func(e *sim.Green) { e.Booting = math.NaN() },
		"busy: +Inf is not":      func(e *sim.Green) { e.Busy = math.Inf(1) },
		"load: 0 is not": func(e *sim.Green) {
			e.Loads = []sim.GreenLoad{{}}
			e.Loads[0].Green = sim.DefaultGreen.Loads[0].Green
			e.Loads[0].Load = 0
		},
	} {
		e := sim.DefaultGreen
		change(&e)
		if _, err := e.Run(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}
