package planner

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestMeasure computes the paper's metrics (section 5.1) by hand.
func TestMeasure(t *testing.T) {
	p := Problem{Nodes: 10, Jobs: []Job{
		{ID: "a", Submit: 10, Profile: Profile{{100, 5}, {100, 10}}},
		{ID: "b", Profile: Profile{{50, 4}}},
	}}
	got := Measure(p, Schedule{{Start: 20, Steps: Profile{{120, 5}, {100, 10}}}, {Steps: Profile{{50, 4}}}})
	want := Metrics{
		Waste:                100 * 100.0 / 1700,
		Utilisation:          100 * 1800.0 / 2400,
		EffectiveUtilisation: 100 * 1700.0 / 2400,
		Makespan:             240,
		Allocated:            1800, Used: 1700,
		AvgCompletion: 140, AvgWait: 5, ExpandedApps: 50,
		Apps: []AppMetrics{{230, 10, 10, 100 * 100.0 / 1500}, {50, 0, 0, 0}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rigid := Measure(p, Schedule{{Start: 10, Steps: Profile{{200, 10}}}, {Start: 210, Steps: Profile{{50, 4}}}})
	if math.Abs(rigid.Waste-100*500.0/1700) > 1e-9 || rigid.ExpandedApps != 0 {
		t.Errorf("rigid: %+v", rigid)
	}
	if empty := Measure(Problem{Nodes: 3}, nil); !cmp.Equal(empty, Metrics{Apps: []AppMetrics{}}) {
		t.Errorf("nothing to measure: %+v", empty)
	}
}
