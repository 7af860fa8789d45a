package sim_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

// TestOAR checks table 5.3 as far as it is reproduced: malleable jobs use what is left, all eight
// of them end, and rigid jobs wait for them. Best-effort jobs leave a fifth unused, four of them
// end, as in the thesis's text, and some are killed.
func TestOAR(t *testing.T) {
	e := sim.DefaultOAR
	e.Tests = 200
	rows, err := e.Run(t.Context(), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	within := func(strategy, column string, least, most float64) {
		for _, row := range rows {
			if avg := row.Columns[column].Avg; row.Strategy == strategy && (avg < least || avg > most) {
				t.Errorf("%s: %s %.1f, want %v … %v", strategy, column, avg, least, most)
			}
		}
	}
	for _, s := range []string{"dynamic-cpuset", "dynamic-mpi"} {
		within(s, "utilisation", 97, 100)
		within(s, "terminated", 7.9, 8.1)
		within(s, "errors", 0, 0)
	}
	within("moldable-besteffort", "utilisation", 70, 80)
	within("moldable-besteffort", "terminated", 3.8, 4.3)
	within("moldable-besteffort", "errors", 2.5, 5)
	within("moldable-besteffort", "wait", 8, 8)
	within("dynamic-mpi", "wait", 44, 120)
	within("dynamic-cpuset", "wait", 81, 300)
	if again, err := e.Run(t.Context(), 1, nil); err != nil || !reflect.DeepEqual(rows, again) {
		t.Errorf("one worker: %v, %v", again, err)
	}
}

func TestOARValidate(t *testing.T) {
	for what, change := range map[string]func(*sim.OAR){
		"work: 0 is not":      func(e *sim.OAR) { e.Work = 0 },
		"reaction: -1 is not": func(e *sim.OAR) { e.Reaction = -1 },
		"grace: 4000 is not":  func(e *sim.OAR) { e.Grace = 4000 },
		"tests: 0 is not":     func(e *sim.OAR) { e.Tests = 0 },
		"load: 0 is not":      func(e *sim.OAR) { e.Background.Load = 0 },
	} {
		e := sim.DefaultOAR
		change(&e)
		if _, err := e.Run(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}
