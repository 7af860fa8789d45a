package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func comparison(t *testing.T, tests int, names ...string) sim.Comparison {
	t.Helper()
	var workloads []planner.Problem
	for test := range tests {
		p := workload.DefaultPaper.Generate(1, test)
		p.Busy = []planner.Busy{{Start: 0, Duration: 5000, Nodes: 30}, {Start: 1 << 40, Duration: planner.Forever, Nodes: 1}}
		workloads = append(workloads, p)
	}
	var strategies []planner.Strategy
	for _, name := range names {
		s, err := planner.StrategyByName(name)
		must.OK(t, err)
		strategies = append(strategies, s)
	}
	c, err := sim.Compare(t.Context(), workloads, strategies, 1, nil)
	must.OK(t, err)
	return c
}

// TestCompare checks that every format is well-formed and shows every strategy.
func TestCompare(t *testing.T) {
	for _, tests := range []int{1, 3} {
		c := comparison(t, tests, "rigid", "noX", "infX")
		for _, format := range Formats() {
			var out bytes.Buffer
			if err := Compare(&out, c, tests-1, format); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			switch format {
			case "svg":
				for _, title := range []string{"rigid: ", "noX: ", "infX: "} {
					if !strings.Contains(out.String(), title) {
						t.Errorf("no %q", title)
					}
				}
				if boxes := strings.Contains(out.String(), "Effective utilisation (%)"); boxes != (tests > 1) {
					t.Errorf("%d workloads: box plots: %v", tests, boxes)
				}
				wellFormed(t, &out)
			case "html":
				if text := out.String(); !strings.HasPrefix(text, "<!DOCTYPE html>") || strings.Count(text, "<svg") != 1 || strings.Contains(text, "<?xml") {
					t.Errorf("page starts with %.100q", text)
				}
			}
		}
	}
}

func wellFormed(t *testing.T, in io.Reader) {
	t.Helper()
	for d := xml.NewDecoder(in); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestGreen checks that the picture is well-formed, names every series once for each load, and has a point for every mode.
func TestGreen(t *testing.T) {
	e := sim.DefaultGreen
	e.Tests = 1
	tables, err := e.Run(t.Context(), 2, nil)
	must.OK(t, err)
	var out bytes.Buffer
	must.OK(t, Green(&out, tables, "svg"))
	series, points := map[string]int{}, 0
	for _, table := range tables {
		for i, r := range table.Rows {
			if points++; i == 0 || table.Rows[i-1].Series != r.Series {
				series[r.Series]++
			}
		}
	}
	for name, n := range series {
		if got := strings.Count(out.String(), ">"+name+"<"); got != n || n != len(tables) {
			t.Errorf("%q is there %d times, in %d tables %d times", name, got, len(tables), n)
		}
	}
	if got := strings.Count(out.String(), "<circle"); got != points+len(series)*len(tables) {
		t.Errorf("%d circles for %d modes of %d series", got, points, len(series))
	}
	wellFormed(t, &out)
	if Green(io.Discard, tables, "png") == nil {
		t.Error("png is accepted")
	}
}

func TestCompareErrors(t *testing.T) {
	c := comparison(t, 1, "noX")
	for _, f := range []func() error{
		func() error { return Compare(io.Discard, c, 1, "svg") },
		func() error { return Compare(io.Discard, c, -1, "svg") },
		func() error { return Compare(io.Discard, c, 0, "png") },
		func() error { return Compare(io.Discard, sim.Comparison{Workloads: c.Workloads}, 0, "svg") },
	} {
		if f() == nil {
			t.Error("no error")
		}
	}
}

// TestPlan checks that an expanded step is first used and then held, and that jobs are stacked on
// each other and on busy nodes.
func TestPlan(t *testing.T) {
	p := planner.Problem{Nodes: 10, Busy: []planner.Busy{{Start: 0, Duration: 10, Nodes: 1}, {Start: 900, Duration: 1, Nodes: 1}}, Jobs: []planner.Job{
		{Profile: planner.Profile{{Duration: 5, Nodes: 2}, {Duration: 5, Nodes: 3}}},
		{Profile: planner.Profile{{Duration: 4, Nodes: 1}}}}}
	schedule := planner.Schedule{
		{Start: 0, Steps: planner.Profile{{Duration: 10, Nodes: 2}, {Duration: 5, Nodes: 3}}},
		{Start: 8, Steps: planner.Profile{{Duration: 4, Nodes: 1}}}}
	want := []bar{
		{0, 5, 1, 2, 2, 0}, {5, 8, 1, 0, 2, 0}, {8, 10, 1, 0, 2, 0}, {10, 12, 0, 3, 3, 0}, {12, 15, 0, 3, 3, 0},
		{8, 10, 3, 1, 1, 1}, {10, 12, 3, 1, 1, 1}}
	g := newPlan(p, schedule)
	if diff := cmp.Diff(want, g.bars, cmp.AllowUnexported(bar{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]planner.Span{{Start: 0, End: 10, Nodes: 1}}, g.busy); diff != "" {
		t.Error(diff)
	}
}

func TestBox(t *testing.T) {
	got := newBox([]float64{5, 1, 3, 2, 4, 100})
	want := box{first: 2.25, median: 3.5, third: 4.75, low: 1, high: 5, beyond: []float64{100}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(box{})); diff != "" {
		t.Error(diff)
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      []float64
	}{{0, 100, []float64{0, 20, 40, 60, 80, 100}}, {.93, 1.07, []float64{.95, 1, 1.05}}, {0, 1. / 3600, []float64{0, .0001, .0002}}} {
		if got := ticks(test.low, test.high, 5); !cmp.Equal(got, test.want) {
			t.Errorf("%g to %g: %v, want %v", test.low, test.high, got, test.want)
		}
	}
}
