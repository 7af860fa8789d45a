package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var now = time.Unix(1_795_000_000, 0)

// busy returns the metrics of a sidecar that has seen all there is to see, with many jobs.
func busy(jobs int) *Metrics {
	s := Sight{Status: api.Status{Version: "1", LastCycle: now, Started: now, Nodes: 8, SlurmCalls: 3}, Holds: 2, HeldNodes: 3, IdleNodes: 2, Writable: true,
		Strategies: []api.Strategy{{Plans: 3, Faults: 1}, {Plans: 4, Fallen: 2, InUse: true, Seconds: 0.5}}}
	for i := range jobs {
		s.Jobs = append(s.Jobs, api.Job{ID: uint32(i), Name: fmt.Sprintf("secret-%d", i), User: "alice", Account: "physics", State: append(states, "odd")[i%6], Nodes: i % 3})
	}
	m := New(func() Sight { return s })
	for _, list := range [][]string{commands, {"odd", "odder"}} {
		for _, name := range list {
			m.Command(slurmctl.Ran{Args: []string{name}, Took: time.Second})
			m.Command(slurmctl.Ran{Args: []string{name}, Took: time.Second, Err: io.EOF})
		}
	}
	m.Cycle(map[string]any{"interval": 1.0, "observe": 0.1, "step": 0.01, "plan": 0.2, "save": 0.0, "publish": 0.0})
	for i := range 100 {
		m.Event(0, now, fmt.Sprintf("kind %d", i), nil)
		m.Event(int64(i), now, "ended", map[string]any{"state": fmt.Sprintf("STATE_%d", i)})
	}
	m.Planned(now)
	return m
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestSeries checks that there are never too many series, and that they name no job or user.
func TestSeries(t *testing.T) {
	text := scrape(t, busy(10_000))
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		if !strings.HasPrefix(line, "evoslurm_") {
			t.Errorf("series %q", line)
		}
	}
	if n > MostSeries {
		t.Errorf("%d series, want %d at most:\n%s", n, MostSeries, text)
	}
	t.Logf("%d series, %d bytes", n, len(text))
	for _, word := range []string{"secret", "alice", "physics", "STATE_", "kind 7", "odd"} {
		if strings.Contains(text, word) {
			t.Errorf("%q is in it", word)
		}
	}
	if problems, err := testutil.CollectAndLint(busy(1)); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestEvents(t *testing.T) {
	m := busy(0)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	begun := func(planned int, nodes string) map[string]any {
		return map[string]any{"planned": at(planned).Unix(), "nodes": nodes, "step": 2}
	}
	m.Event(1, at(3), "started", begun(0, "n1"))
	m.Event(1, at(60), "step ended", nil)
	m.Event(1, at(64), "step begun", begun(60, "n[1-3]")) // 4 s late, waited 4 s
	m.Event(1, at(100), "step ended", nil)
	m.Event(1, at(101), "step begun", begun(90, "n[1-4]")) // asked for late: 1 s late
	m.Event(1, at(150), "step begun", begun(120, "n1"))    // a shrink
	m.Event(2, at(150), "started", begun(150, "n5"))
	m.Event(2, at(160), "delayed", map[string]any{"step": 2, "was": at(170).Unix(), "start": at(180).Unix()})
	m.Event(2, at(165), "delayed", map[string]any{"step": 2, "was": at(180).Unix(), "start": at(190).Unix()})
	m.Event(2, at(170), "step ended", nil)
	m.Event(2, at(190), "step begun", begun(190, "n[5-6]")) // as planned at last, and 20 s later than promised
	m.Event(1, at(200), "overrun", nil)
	m.Event(1, at(200), "failed", map[string]any{"suppressed": 29})
	m.Event(1, at(201), "lapsed", map[string]any{"step": 2})
	m.Event(1, at(202), "lapsed", map[string]any{"before": 3, "budget": int64(0)})
	m.Event(1, at(300), "ended", map[string]any{"state": "TIMEOUT"})
	m.Event(1, at(301), "step begun", begun(0, "n[1-4]")) // of nothing that is known
	m.Holding(3, at(0))
	m.Holding(1, at(10))
	m.Holding(0, at(15))
	text := scrape(t, m)
	for _, want := range []string{
		`evoslurm_start_late_seconds_sum 3`, `evoslurm_growth_late_seconds_sum 25`, `evoslurm_growth_late_seconds_count 3`, `evoslurm_growth_wait_seconds_sum 25`,
		`evoslurm_events_total{kind="overrun"} 1`, `evoslurm_events_total{kind="failed"} 30`, `evoslurm_jobs_ended_total{state="TIMEOUT"} 1`, `evoslurm_jobs_ended_total{state="other"} 100`,
		`evoslurm_held_idle_node_seconds_total 35`, `evoslurm_strategy_plans_total 7`, `evoslurm_strategy_faults_total 1`, `evoslurm_strategy_fallbacks_total 2`,
		`evoslurm_strategy_seconds 0.5`, `evoslurm_slurm_commands_total{command="squeue",outcome="failed"} 1`, `evoslurm_slurm_command_seconds_total{command="other"} 4`,
		`evoslurm_cycle_seconds_count{part="plan"} 1`, `evoslurm_last_plan_timestamp_seconds 1.795e+09`, `evoslurm_database_writable 1`, `evoslurm_failing 0`,
		`evoslurm_promises_gave_way_total 1`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		s    Sight
		want string
	}{
		{Sight{}, "not polled yet"},
		{Sight{Status: api.Status{LastCycle: now.Add(-time.Hour)}, Writable: true}, "polled last 1h0m0s ago"},
		{Sight{Status: api.Status{LastCycle: now}}, "database"},
		{Sight{Status: api.Status{LastCycle: now}, Writable: true}, "<nil>"},
	} {
		if got := fmt.Sprint(New(func() Sight { return c.s }).Ready(now)); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestServer scrapes a server with an address of its own, many at once.
func TestServer(t *testing.T) {
	m := busy(100)
	s, err := Listen(api.Port{Address: "127.0.0.1:0"}, m.Handler(), func() error { return fmt.Errorf("not so") }, func() []error { return []error{fmt.Errorf("soon over")} })
	must.OK(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context()) }()
	answers := make(chan string, 100)
	for range cap(answers) {
		go func() {
			out, err := get("http://" + s.Addr().String() + "/metrics")
			answers <- fmt.Sprint(strings.Contains(out, "evoslurm_jobs{"), err)
		}()
	}
	for range cap(answers) {
		if a := <-answers; a != "true <nil>" {
			t.Fatal(a)
		}
	}
	for path, want := range map[string]string{"healthz": "200 OK ok\nwarning: soon over\n", "readyz": "503 Service Unavailable not so\n", "v1/jobs": "404 Not Found 404 page not found\n"} {
		if got, _ := get("http://" + s.Addr().String() + "/" + path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if s, err := Listen(api.Port{}, m.Handler(), nil, nil); err != nil || s.Serve(t.Context()) != nil {
		t.Error("nowhere is an error", err)
	}
}

// TestContrib sees that every metric is in an alert rule or in the dashboard, and that these
// have no other.
func TestContrib(t *testing.T) {
	names := map[string]bool{}
	for line := range strings.Lines(scrape(t, busy(10))) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == "TYPE" {
			names[f[2]] = true
		}
	}
	used := map[string]bool{}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join("../../../contrib/prometheus", file))
		must.OK(t, err)
		var any any
		if file == "alerts.yaml" {
			err = yaml.Unmarshal(text, &any)
		} else {
			err = json.Unmarshal(text, &any)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, name := range regexp.MustCompile(`evoslurm_[a-z_]+`).FindAllString(string(text), -1) {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if bare := strings.TrimSuffix(name, suffix); names[bare] {
					name = bare
				}
			}
			if used[name] = true; !names[name] {
				t.Errorf("%s has %s, which there is not", file, name)
			}
		}
	}
	for name := range names {
		if !used[name] {
			t.Errorf("%s is in neither file", name)
		}
	}
	// promtool comes from Debian's package prometheus, which `make test` installs (.ci/deps).
	if out, err := exec.Command("promtool", "check", "rules", "../../../contrib/prometheus/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// BenchmarkScrape: 10,000 jobs.
// BenchmarkScrape: its figures are in BENCHMARKS.md.
func BenchmarkScrape(b *testing.B) {
	h := busy(10_000).Handler()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	}
}

func get(url string) (string, error) {
	r, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if r.StatusCode == http.StatusOK && strings.HasSuffix(url, "/metrics") {
		return string(text), err
	}
	return r.Status + " " + string(text), err
}

func TestKinds(t *testing.T) {
	for _, list := range [][]string{kinds, ends, states, commands} {
		if slices.Contains(list, other) || len(slices.Compact(slices.Sorted(slices.Values(list)))) != len(list) {
			t.Errorf("%q", list)
		}
	}
}

// TestReadyWithPause checks that a sidecar that polls seldom, to keep to slurm.share, counts as ready.
func TestReadyWithPause(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for apart, ready := range map[float64]bool{0: false, 100: false, 200: true, 600: true} {
		m := New(func() Sight {
			return Sight{Writable: true, Status: api.Status{LastCycle: now.Add(-5 * time.Minute), PollsApart: apart}}
		})
		if err := m.Ready(now); (err == nil) != ready {
			t.Errorf("polled 5 minutes ago, polls up to %v s apart: %v", apart, err)
		}
	}
}
