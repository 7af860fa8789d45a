package demo

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// good returns a phase of one evolving job that had what it had asked for.
func good(t *testing.T) outcome {
	t.Helper()
	tr, err := parseTrace(goodTrace)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{Job: evolving("x", 0, 0, "1@10s,3@10s"), id: 7, owner: "alice", submitted: time.UnixMicro(0), endState: "COMPLETED", trace: tr}
	return outcome{title: "test", nodes: 8, jobs: []*result{r}}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*result, *outcome)
		want   string // "": all is well
	}{
		{"as requested", func(*result, *outcome) {}, ""},
		{"a failed job", func(r *result, _ *outcome) { r.endState = "FAILED" }, "it ended failed"},
		{"forgotten by Slurm", func(r *result, _ *outcome) { r.endState = "" }, "Slurm does not know how it ended"},
		{"too few nodes at first", func(r *result, _ *outcome) { r.trace.steps[1].first.nodes = []string{"n1", "n2"} }, "step 2: 2 nodes at its beginning, requested are 3"},
		{"too many nodes at last", func(r *result, _ *outcome) { r.trace.steps[0].last.nodes = []string{"n1", "n2"} }, "step 1: 2 nodes at its end, requested are 1"},
		{"srun failed", func(r *result, _ *outcome) { r.trace.steps[1].first.status = 1 }, "srun failed at its beginning"},
		{"srun never run", func(r *result, _ *outcome) { r.trace.steps[1].last = answer{} }, "srun was not run at its end"},
		{"a step missing", func(r *result, _ *outcome) { r.trace.steps = r.trace.steps[:1] }, "step 2 never began"},
		{"no end", func(r *result, _ *outcome) { r.trace.end = time.Time{} }, "did not come to its end"},
		{"too short", func(r *result, _ *outcome) { r.trace.end = time.UnixMicro(21.3e6) }, "step 2 lasted 9.9 s"},
		{"too long", func(r *result, _ *outcome) { r.trace.end = time.UnixMicro(23.5e6) }, "step 2 lasted 12.1 s"},
		{"longer, as its limit allows", func(r *result, _ *outcome) { r.Limit, r.trace.end = 2, time.UnixMicro(31.4e6) }, ""},
		{"longer than its limit allows", func(r *result, _ *outcome) { r.Limit, r.trace.end = 2, time.UnixMicro(33.5e6) }, "allowed 22.0 s"},
		{"no limit", func(r *result, _ *outcome) { r.Limit, r.trace.end = planner.Infinite, time.UnixMicro(99e6) }, ""},
		{"late nodes", func(r *result, _ *outcome) { r.trace.steps[1].first.came = time.UnixMicro(13.01e6) }, "usable 2.01 s after its boundary"},
		{"later nodes, as its limit allows", func(r *result, _ *outcome) { r.Limit, r.trace.steps[1].first.came = 2, time.UnixMicro(22.9e6) }, ""},
		{"later nodes than its limit allows", func(r *result, _ *outcome) { r.Limit, r.trace.steps[1].first.came = 2, time.UnixMicro(23.1e6) }, "allowed are 12 s"},
		{"a reservation left", func(_ *result, o *outcome) { o.leftovers = slurmtest.Leftovers{Reservations: []string{"evo_1_2_1"}} }, "evo_1_2_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good(t)
			c.change(o.jobs[0], &o)
			got := strings.Join(judge(o, outcome{}), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
	t.Run("a rigid job is judged by its end only", func(t *testing.T) {
		o := good(t)
		o.jobs[0].endState = "TIMEOUT"
		o.jobs[0].trace.steps = nil
		got := judge(outcome{}, o)
		if len(got) != 1 || !strings.Contains(got[0], "at peak size") || !strings.Contains(got[0], "timeout") {
			t.Errorf("judged %q", got)
		}
	})
}

func TestAccount(t *testing.T) {
	got := good(t).account()
	want := account{makespan: 21.4, wait: 1, allocated: 40.4, wasted: 0.4, idle: 21.4*8 - 40.4}
	near := func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
	if !near(got.makespan, want.makespan) || !near(got.wait, want.wait) || !near(got.allocated, want.allocated) ||
		!near(got.wasted, want.wasted) || !near(got.idle, want.idle) {
		t.Errorf("account %+v, want %+v", got, want)
	}
}

// A job that never ran must not break the summary of the others.
func TestSummaryOfWhatIsMissing(t *testing.T) {
	o := good(t)
	o.jobs = append(o.jobs, &result{Job: evolving("y", 1, 0, "2@10s"), id: 8, owner: "bob", submitted: time.UnixMicro(0)},
		&result{Job: stock("z", 1, 0, "2@10s"), id: 9, owner: "bob", submitted: time.UnixMicro(0)})
	var b strings.Builder
	summarise(&b, terminal{}, o, outcome{})
	for _, want := range []string{"7 x ✓", "8 y ✗", "1@10.4s", "0.60s", "stock"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestScale(t *testing.T) {
	jobs, err := scale(Standard(), scenarioNodes, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range Standard() {
		if got, want := jobs[i].Profile.Peak(), j.Profile.Peak()*20/8; got != want {
			t.Errorf("%s has a peak of %d nodes, want %d", j.Name, got, want)
		}
		if err := jobs[i].Profile.Validate(); err != nil {
			t.Errorf("%s: %v", j.Name, err)
		}
	}
	if _, err := scale(Standard(), scenarioNodes, 7); err == nil {
		t.Error("a cluster that is too small was not refused")
	}
}

func TestFramesFitTheTerminal(t *testing.T) {
	f := frame{title: strings.Repeat("title ", 30), begin: time.Unix(0, 0), now: time.Unix(30, 0), nodes: 8,
		events: []string{strings.Repeat("event ", 40), "last"}}
	l := live{header: strings.Repeat("header ", 30), out: os.Stdout}
	text := l.compose(f)
	lines := strings.Split(text, "\r\n")
	if len(lines) > 23 {
		t.Errorf("%d lines on a terminal of 24", len(lines))
	}
	for _, line := range lines {
		line = strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(line)
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns on a terminal of 80: %q", n, line)
		}
	}
	if !strings.Contains(text, "last") {
		t.Error("the last event is not shown")
	}
}
