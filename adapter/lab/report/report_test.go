package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// sample returns two outcomes of the same jobs: under a strategy, and rigid at their peaks.
func sample() []outcome.Outcome {
	evolving := outcome.Outcome{Name: "2X+c", Run: outcome.Run{Nodes: 16}, Made: outcome.Made{Command: "evosim run w.json", Version: "v1", Seed: "7"}}
	rigid := outcome.Outcome{Name: "easy", Run: outcome.Run{Nodes: 16}}
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range int64(60) {
		at := i * 40
		wait, run, n := chance.Int64N(300), 60+chance.Int64N(100), 1+chance.IntN(3)
		j := outcome.Job{ID: fmt.Sprint(i), Submit: at, Start: at + wait, End: at + wait + run, State: outcome.Completed}
		j.Sizes = []outcome.Size{{At: j.Start, Nodes: n}, {At: j.End}}
		r := j
		if i%5 == 0 {
			j.Evolving = true
			j.Planned = []outcome.Size{{At: j.Start, Nodes: 1}, {At: j.Start + run/2, Nodes: n + 1}, {At: j.End}}
			j.Sizes = []outcome.Size{{At: j.Start, Nodes: 1}, {At: j.Start + run/2 + 1, Nodes: n + 1}, {At: j.End}}
			r.Sizes = []outcome.Size{{At: j.Start, Nodes: n + 1}, {At: j.End}}
		} else if i == 7 {
			r.Start, r.End = j.Submit, j.Submit+run
			r.Sizes = []outcome.Size{{At: r.Start, Nodes: n}, {At: r.End}}
		}
		evolving.Jobs, rigid.Jobs = append(evolving.Jobs, j), append(rigid.Jobs, r)
	}
	evolving.Jobs = append(evolving.Jobs, outcome.Job{ID: "</script><b>&'\"", Submit: 2500, Start: -1, End: -1, State: "REFUSED", Reason: "<img src=x onerror=alert(1)>"})
	return []outcome.Outcome{evolving, rigid}
}

func write(t *testing.T, all []outcome.Outcome) string {
	t.Helper()
	var b bytes.Buffer
	must.OK(t, report.Write(&b, all, report.Options{Command: "evosim report x", Version: "v1"}))
	return b.String()
}

// TestReport checks that a report is the same every time, fetches nothing, runs only the scripts of
// its policy, and says how it was made.
func TestReport(t *testing.T) {
	text := write(t, sample())
	if again := write(t, sample()); again != text {
		t.Error("equal outcomes, different reports")
	}
	if external := regexp.MustCompile(`(?i)(<[^>]*\b(src|href|action|srcset|data)\s*=|@import|url\()`).FindAllString(withoutScripts(text), -1); len(external) > 0 {
		t.Errorf("it refers to %q", external)
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	if policy == nil {
		t.Fatal("no policy")
	}
	named := strings.ReplaceAll(strings.ReplaceAll(policy[1], "&#39;", "'"), "&#43;", "+")
	if !strings.HasPrefix(named, "default-src 'none'; ") || strings.Contains(named, "unsafe") {
		t.Errorf("policy %s", named)
	}
	parts := regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(text, -1)
	if len(parts) != 3 {
		t.Fatalf("%d scripts and styles", len(parts))
	}
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p[2]))
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(named, want) {
			t.Errorf("a %s is not in the policy: %s", p[1], named)
		}
	}
	for _, want := range []string{"evosim run w.json", "<td>7</td>", "1 of 48 stock jobs start later under 2X&#43;c than beside rigid jobs under easy", "Good neighbour",
		"&lt;/script&gt;&lt;b&gt;", "&lt;img src=x onerror=alert(1)&gt;", "1 job of 2X&#43;c did not complete"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "<b>") || strings.Contains(text, "<img") {
		t.Error("what a job is called is markup")
	}
	var charts struct {
		Runs []struct {
			IDs  []string `json:"ids"`
			Of   int      `json:"of"`
			Part float64  `json:"part"`
		} `json:"runs"`
	}
	data := regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`).FindStringSubmatch(text)
	must.OK(t, json.Unmarshal([]byte(data[1]), &charts))
	if r := charts.Runs[0]; len(r.IDs) != 60 || r.Of != 60 || r.Part != 100 {
		t.Errorf("%d of %d jobs are drawn, %v %%", len(r.IDs), r.Of, r.Part)
	}
}

func withoutScripts(text string) string {
	return regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(text, "")
}

// TestReportMany checks that of too many jobs those with the most node-seconds are drawn, and that
// the file stays small.
func TestReportMany(t *testing.T) {
	o := outcome.Outcome{Name: "easy", Run: outcome.Run{Nodes: 1000}}
	for i := range int64(100_000) {
		j := outcome.Job{ID: fmt.Sprint(i), Submit: i, Start: i, End: i + 10 + i%7, State: outcome.Completed}
		j.Sizes = []outcome.Size{{At: j.Start, Nodes: 1 + int(i%40)}, {At: j.End}}
		o.Jobs = append(o.Jobs, j)
	}
	text := write(t, []outcome.Outcome{o})
	if len(text) > 2_000_000 {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.Contains(text, `"shade":"`) {
		t.Error("what is not drawn is not shown")
	}
}

// TestReportNone checks that impossible reports fail with a reason.
func TestReportNone(t *testing.T) {
	o := sample()[0]
	o.Nodes = 2
	if err := report.Write(&bytes.Buffer{}, []outcome.Outcome{o}, report.Options{}); err == nil || !strings.Contains(err.Error(), "jobs have more than 2 nodes together") {
		t.Errorf("got %v", err)
	}
}

// TestPower: the area under the line is the energy. Of nodes that went off there is no line.
func TestPower(t *testing.T) {
	all := sample()
	for i := range all {
		o := &all[i]
		end := o.Makespan()
		used, _, _ := o.Series(end, 1)
		busy := int64(used[0] * float64(end))
		o.Energy = outcome.NewEnergy(nil)
		o.Energy.Add("", o.Nodes, energy.Watts{energy.Busy: 350_000, energy.Idle: 200_000}, energy.Seconds{energy.Busy: busy, energy.Idle: int64(o.Nodes)*end - busy}, 0)
		o.Energy.Types = nil
	}
	all[1].Energy.Off = 1
	text := write(t, all)
	var c struct {
		End  int64
		X    []float64
		Runs []struct{ Power []float64 }
	}
	must.OK(t, json.Unmarshal([]byte(regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`).FindStringSubmatch(text)[1]), &c))
	sum := 0.
	for _, kW := range c.Runs[0].Power {
		sum += kW * float64(c.End) / float64(len(c.X)) / 3600
	}
	if want := all[0].Energy.KWh; math.Abs(sum-want) > want/100 {
		t.Errorf("the line has %.2f kWh, the outcome %.2f", sum, want)
	}
	if c.Runs[1].Power != nil || !strings.Contains(text, `<div id="power">`) || strings.Contains(write(t, sample()), `<div id="power">`) {
		t.Error("a line of nodes that went off, no chart, or one without energy")
	}
}
