package sim_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestPECS23Published checks that on the publication's workloads its schedulers give its averages
// within 2 %, with no job and with all jobs malleable. It also checks that first-fit+gain beats
// pref_agreement.
func TestPECS23Published(t *testing.T) {
	e := sim.DefaultPECS23
	e.Phases, e.Shares = 0, []int{0, 100}
	e.Schedulers = []string{"rigid_backfill", "pref_agreement", "first-fit+gain"} // rigid_easy_backfill is pref_agreement without malleable jobs
	got, err := e.Run(t.Context(), runtime.GOMAXPROCS(0), nil)
	must.OK(t, err)
	for _, row := range got.Rows[:2] {
		for i, share := range e.Shares {
			f := row.Figures[i]
			for metric, value := range map[string]float64{"wait": f.Wait, "turnaround": f.Turnaround,
				"utilisation": f.Utilisation, "runtime": f.Runtime, "makespan": f.Makespan} {
				want := sim.PublishedPECS23[row.Name][metric][share/10]
				if off := value/want - 1; off < -.02 || off > .02 {
					t.Errorf("%s, %d %%: %s %.1f, published %.1f", row.Name, share, metric, value, want)
				}
			}
		}
	}
	backfill, theirs, ours := got.Rows[0], got.Rows[1], got.Rows[2]
	for i, share := range e.Shares {
		a, b, c := theirs.Figures[i], ours.Figures[i], backfill.Figures[i]
		if b.Wait >= a.Wait || b.Turnaround >= a.Turnaround || b.Utilisation <= a.Utilisation || b.Makespan > a.Makespan+10 {
			t.Errorf("%d %%: pref_agreement %+v, first-fit+gain %+v", share, a, b)
		}
		if b.Wait >= c.Wait || b.Turnaround >= c.Turnaround || b.Makespan >= c.Makespan {
			t.Errorf("%d %%: rigid_backfill %+v, first-fit+gain %+v", share, c, b)
		}
	}
}

// TestPECS23Evolving checks that declared profiles beat rigid requests, that bounds per phase beat
// bounds for all phases, and that no declared growth is late.
func TestPECS23Evolving(t *testing.T) {
	e := sim.DefaultPECS23
	e.Seeds, e.Shares, e.Schedulers = 2, []int{0, 100}, nil
	got, err := e.Run(t.Context(), runtime.GOMAXPROCS(0), nil)
	must.OK(t, err)
	wait := make(map[string]float64)
	for _, row := range got.Evolving {
		wait[row.Name] = row.Figures[1].Wait
		if row.Figures[1].Late > 0 {
			t.Errorf("%s: %v s late", row.Name, row.Figures[1].Late)
		}
		if row.Figures[0] != got.Evolving[0].Figures[0] {
			t.Errorf("%s: without any such job %+v", row.Name, row.Figures[0])
		}
	}
	if !(wait["evolving+malleable"] < wait["malleable"] && wait["malleable"] < wait["evolving"] && wait["evolving"] < wait["rigid"]) {
		t.Errorf("%v", wait)
	}
}

// TestPECS23Workers checks that any number of workers gives the same result.
func TestPECS23Workers(t *testing.T) {
	e := sim.DefaultPECS23
	e.Model.Days, e.Model.Nodes, e.Seeds, e.Shares = 1, 32, 3, []int{30, 0}
	var all []sim.PECS23Result
	for _, workers := range []int{1, 3, 8} {
		steps := 0
		got, err := e.Run(t.Context(), workers, func() { steps++ })
		if err != nil || steps != e.Runs() {
			t.Fatalf("%d of %d steps, %v", steps, e.Runs(), err)
		}
		all = append(all, got)
	}
	if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
		t.Errorf("%+v", all)
	}
}

func TestPECS23Validate(t *testing.T) {
	for what, change := range map[string]func(*sim.PECS23){
		"seeds: 0 is not":            func(e *sim.PECS23) { e.Seeds = 0 },
		"shares: 101 is not":         func(e *sim.PECS23) { e.Shares = []int{10, 101} },
		"shares: 10 is there twice":  func(e *sim.PECS23) { e.Shares = []int{10, 10} },
		"shares: there is none":      func(e *sim.PECS23) { e.Shares = nil },
		"phases: -1 is not":          func(e *sim.PECS23) { e.Phases = -1 },
		"schedulers: there is none":  func(e *sim.PECS23) { e.Phases, e.Schedulers = 0, nil },
		`unknown scheduler "x+gain"`: func(e *sim.PECS23) { e.Schedulers = []string{"x+gain"} },
		`scheduler "easy+x": there is no malleability policy "x"`: func(e *sim.PECS23) { e.Schedulers = []string{"easy+x"} },
		`there is no malleability policy ""`:                      func(e *sim.PECS23) { e.Policy = "" },
		"ahead: -1 is not":                                        func(e *sim.PECS23) { e.Ahead = -1 },
		"days: 0 is not":                                          func(e *sim.PECS23) { e.Model.Days = 0 },
	} {
		e := sim.DefaultPECS23
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}
