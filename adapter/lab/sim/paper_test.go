package sim_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// paper returns 1,000 tests.
var paper = sync.OnceValues(func() (sim.PaperResult, error) {
	var strategies []planner.Strategy
	for _, name := range planner.PaperStrategies() {
		s, err := planner.StrategyByName(name)
		if err != nil {
			return sim.PaperResult{}, err
		}
		strategies = append(strategies, s)
	}
	return sim.Paper(workload.DefaultPaper, 1000, 1, strategies, nil)
})

// TestPaperTables: 1,000 tests on 100 nodes give the published averages, within 1.5 points
// (percent) or .02 (relative to rigid), and minima and maxima as doc.go says. Subtests are named after the table, the column,
// and the strategy.
func TestPaperTables(t *testing.T) {
	got, err := paper()
	must.OK(t, err)
	for i, column := range sim.Columns {
		if column == "schedule_ms" {
			continue // another machine, another language
		}
		table, tolerance := "Table1/", 1.5
		if i >= 5 {
			table = "Table2/"
		}
		if sim.Relative(column) {
			tolerance = .02
		}
		for _, row := range got.Rows {
			t.Run(table+column+"/"+row.Strategy, func(t *testing.T) {
				got, want := row.Columns[column], sim.Published[row.Strategy][column]
				t.Logf("%+.3v, published %v", got, want)
				if math.Abs(got.Avg-want.Avg) > tolerance {
					t.Errorf("average %.4g, published %.4g", got.Avg, want.Avg)
				}
				within := .3 * (want.Max - want.Min)
				if math.Abs(got.Min-want.Min) > within {
					t.Errorf("minimum %.4g, published %.4g", got.Min, want.Min)
				}
				if perApp := column == "app_expansion" || column == "app_waste"; perApp && (got.Max > 4*want.Max || got.Max < want.Max/4) || !perApp && math.Abs(got.Max-want.Max) > within {
					t.Errorf("maximum %.4g, published %.4g", got.Max, want.Max)
				}
			})
		}
	}
}

// TestPaperTruncated: more averages equal the published ones if both are cut to the printed digits than if ours are rounded.
func TestPaperTruncated(t *testing.T) {
	got, err := paper()
	must.OK(t, err)
	cut, rounded, all := 0, 0, 0
	for _, row := range got.Rows {
		for _, column := range sim.Columns {
			if column == "schedule_ms" {
				continue
			}
			ours, printed := row.Columns[column].Avg, sim.Published[row.Strategy][column].Avg
			if sim.Relative(column) { // two decimals
				ours, printed = 100*ours, 100*printed
			}
			if printed == sim.Epsilon {
				printed = 0
			}
			all++
			if math.Floor(ours+1e-9) == math.Round(printed) {
				cut++
			}
			if math.Round(ours) == math.Round(printed) {
				rounded++
			}
		}
	}
	if cut != 47 || rounded != 26 || all != 54 {
		t.Errorf("of %d averages, %d equal the published ones if cut, %d if rounded", all, cut, rounded)
	}
}

func TestPaperStops(t *testing.T) {
	stop := errors.New("enough")
	_, err := sim.Paper(workload.DefaultPaper, 10, 1, nil, func(done int) error {
		if done == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	model := workload.DefaultPaper
	model.StepNodes.Max = 101
	if _, err := sim.Paper(model, 1, 1, nil, nil); err == nil {
		t.Error("a job larger than the cluster")
	}
}
