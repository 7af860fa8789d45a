package sim_test

import (
	"errors"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func paper(t *testing.T, tests int) sim.PaperResult {
	t.Helper()
	var strategies []planner.Strategy
	for _, name := range planner.PaperStrategies() {
		s, err := planner.StrategyByName(name)
		must.OK(t, err)
		strategies = append(strategies, s)
	}
	got, err := sim.Paper(workload.DefaultPaper, tests, 1, strategies, nil)
	must.OK(t, err)
	return got
}

// TestPaperTables: 1,000 tests on 100 nodes give the published averages, within 1.5 points
// (percent) or .02 (relative to rigid). Subtests are named after the table, the column, and the
// strategy.
func TestPaperTables(t *testing.T) {
	got := paper(t, 1000)
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
				avg, want := row.Columns[column].Avg, sim.Published[row.Strategy][column].Avg
				t.Logf("%+.3v, published %v", row.Columns[column], sim.Published[row.Strategy][column])
				if avg < want-tolerance || avg > want+tolerance {
					t.Errorf("average %.4g, published %.4g", avg, want)
				}
			})
		}
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
