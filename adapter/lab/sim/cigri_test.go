package sim_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/bag"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

// TestCigri checks tables 4.1 and 4.2 as far as they are reproduced: triggered terminates most and
// periodic least, and as many tasks are interrupted, fail, and go on with value.
func TestCigri(t *testing.T) {
	near := func(table int, r sim.CigriResult, strategy, column string, percent float64) {
		published := sim.CigriPublished[table][strategy][column]
		for _, row := range r.Rows {
			if avg := row.Columns[column].Avg; row.Strategy == strategy && math.Abs(avg-published) > percent/100*published {
				t.Errorf("table %d: %s: %s %.1f, want %v ± %v %%", table+1, strategy, column, avg, published, percent)
			}
		}
	}
	for i, e := range sim.CigriTables {
		e.Tests = 40 / len(e.Nodes)
		r, err := e.Run(t.Context(), 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		near(i, r, "none", "not_valuable", 15)
		near(i, r, "none", "terminated", 35)
		near(i, r, "triggered", "terminated", 35)
		near(i, r, "triggered", "valuable", 20)
		for s, row := range r.Rows {
			terminated, most := row.Columns["terminated"], r.Rows[bag.Clairvoyant].Columns["terminated"]
			if terminated.Avg > most.Avg || most.Max > r.Room.Max || row.Columns["worst_delay"].Max > float64(e.Bag.Grace) {
				t.Errorf("table %d: %s: %+v", i+1, bag.Strategy(s), row)
			}
		}
		if i > 0 {
			continue
		}
		near(i, r, "periodic", "terminated", 35)
		if again, err := e.Run(t.Context(), 1, nil); err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("one worker: %v, %v", again, err)
		}
	}
}

// TestCigriPublished: every run of the tables is in one of their columns, except in the last row,
// whose total is a misprint.
func TestCigriPublished(t *testing.T) {
	for i, table := range sim.CigriPublished {
		for strategy, columns := range table {
			sum := 0.
			for _, column := range sim.CigriColumns[1:6] {
				sum += columns[column]
			}
			if misprint := i == 1 && strategy == "none"; (sum == columns["total"]) == misprint {
				t.Errorf("table %d: %s: sum %v, total %v", i+1, strategy, sum, columns["total"])
			}
		}
	}
}

// TestCigriAlone: without local jobs every strategy terminates the same, and there is no way to go.
func TestCigriAlone(t *testing.T) {
	e := sim.CigriTables[0]
	e.Load, e.Tests, e.Bag.Overhead = 0, 2, 0
	r, err := e.Run(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Columns["terminated"] != r.Rows[0].Columns["terminated"] || row.Columns["valuable"].Max > 0 {
			t.Errorf("%+v", row)
		}
	}
	if r.Jobs.Max != 0 || r.WayToClairvoyant != nil || r.WayToRoom == nil || *r.WayToRoom != 0 {
		t.Errorf("%+v", r)
	}
}

// TestCigriPlans: where local jobs wait, and request the time they take, a plan knows when they
// start. Then plan-aware terminates more than triggered, and fewer interruptions have no value.
func TestCigriPlans(t *testing.T) {
	e := sim.CigriTables[0]
	e.Load, e.Limit, e.Tests, e.Bag.RestartError = 80, 1, 30, .01
	r, err := e.Run(t.Context(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if more, wasted := r.Beyond["terminated"], r.Beyond["not_valuable"]; more.Mean < more.Half || wasted.Mean > -wasted.Half {
		t.Errorf("beyond triggered: terminated %+v, not valuable %+v", more, wasted)
	}
}

// TestCigriAhead: where local jobs are known five minutes before they start, plan-aware terminates
// more than triggered, and delays them less. Their schedule is the same.
func TestCigriAhead(t *testing.T) {
	e := sim.CigriTables[0]
	e.Tests = 20
	before, err := e.Run(t.Context(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Ahead = 300
	r, err := e.Run(t.Context(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []bag.Strategy{bag.None, bag.Periodic, bag.Triggered} {
		if !reflect.DeepEqual(r.Rows[s], before.Rows[s]) {
			t.Errorf("%s: %+v, before %+v", s, r.Rows[s], before.Rows[s])
		}
	}
	more, wasted, delay := r.Beyond["terminated"], r.Beyond["not_valuable"], r.Beyond["delay"]
	if more.Mean < more.Half || wasted.Mean > -wasted.Half || delay.Mean > -1 {
		t.Errorf("beyond triggered: terminated %+v, not valuable %+v, delay %+v", more, wasted, delay)
	}
}

func TestCigriValidate(t *testing.T) {
	for what, change := range map[string]func(*sim.Cigri){
		"nodes: 0 is not":       func(e *sim.Cigri) { e.Nodes = []int{32, 0} },
		"nodes: 0 clusters":     func(e *sim.Cigri) { e.Nodes = nil },
		"with 6000 CPUs":        func(e *sim.Cigri) { e.Nodes = []int{1000, 1000, 1000} },
		"cpus: 0 is not":        func(e *sim.Cigri) { e.CPUs = 0 },
		"load: 200 is not":      func(e *sim.Cigri) { e.Load = 200 },
		"load: -1 is not":       func(e *sim.Cigri) { e.Load = -1 },
		"ahead: -1 is not":      func(e *sim.Cigri) { e.Ahead = -1 },
		"grace: -1 is not":      func(e *sim.Cigri) { e.Bag.Grace = -1 },
		"task: 0 is not":        func(e *sim.Cigri) { e.Bag.Task = 0 },
		"period: 0 is not":      func(e *sim.Cigri) { e.Bag.Period = 0 },
		"checkpoint: NaN is":    func(e *sim.Cigri) { e.Bag.Checkpoint = math.NaN() },
		"restart-error: 1.5 is": func(e *sim.Cigri) { e.Bag.RestartError = 1.5 },
		"tests: 0 is not":       func(e *sim.Cigri) { e.Tests = 0 },
		"do not load 4 CPUs":    func(e *sim.Cigri) { e.Nodes, e.Load, e.Seconds, e.Length = []int{2}, 90, 60, 100_000 },
	} {
		e := sim.CigriTables[0]
		change(&e)
		if _, err := e.Run(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}
