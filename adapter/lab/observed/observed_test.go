package observed

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/report.json")

// TestFigures checks statistics and intervals by hand.
func TestFigures(t *testing.T) {
	m := Method{Block: "hour", Resamples: 500, Seed: 26}
	one := []observation{{10, 7}, {2, 7}, {1, 7}, {4, 7}, {3, 7}}
	same(t, "quantiles of one block", m.quantiles(one, .5, .95, .2), `[{"value":3,"low":null,"high":null},{"value":10,"low":null,"high":null},{"value":1,"low":null,"high":null}]`)
	same(t, "mean of one block", m.mean(one), `{"value":4,"low":null,"high":null}`)
	// Of two blocks either is drawn twice in half of the resamples: more often than in 2.5 %.
	two := []observation{{0, -3}, {0, -3}, {10, 9}, {10, 9}, {40, 9}}
	same(t, "mean of two blocks", m.mean(two), `{"value":12,"low":0,"high":20}`)
	same(t, "quantiles of two blocks", m.quantiles(two, .5, 1), `[{"value":10,"low":0,"high":10},{"value":40,"low":0,"high":40}]`)
	days := newMethod(3 * 86400)
	same(t, "blocks", []any{newMethod(3*3600 - 1).Block, newMethod(3*86400 - 1).Block, days.Block, days.block(time.Unix(86399, 0)), days.block(time.Unix(86400, 0))}, `["five minutes","hour","day",0,1]`)
}

// same compares a value's JSON.
func same(t *testing.T, what string, value any, want string) {
	t.Helper()
	if got, err := json.Marshal(value); err != nil || string(got) != want {
		t.Errorf("%s: %s, want %s (%v)", what, got, want, err)
	}
}

func second(s int64) time.Time { return time.Unix(1000+s, 0) }

// TestPredictions compares predictions with starts, by hand.
func TestPredictions(t *testing.T) {
	m := newMethod(1)
	p := m.predictions(time.Minute, []promise{
		{ours: second(100), slurm: second(50), start: second(110)}, // 10 and 60 late
		{ours: second(228), start: second(200)},                    // 28 early
		{ours: second(300), slurm: second(340), start: second(300)},
		{slurm: second(1), start: second(2)}, // none of ours
		{ours: second(9)},                    // never started
	})
	of := func(e *Errors) []any { return []any{e.Of, e.Median.Value, e.P95.Value, e.Bias.Value} }
	same(t, "errors", []any{p.None, of(p.Ours), of(p.OursSame), of(p.Slurm)}, `[1,[3,10,28,-6],[2,0,10,5],[2,40,60,10]]`)
	same(t, "none", m.predictions(time.Hour, nil), `{"lead":3600,"none":0,"ours":null,"ours_same":null,"slurm":null}`)
	until := second(5000)
	rows := m.calibrations([]promise{
		{made: second(0), ours: second(30), slurm: second(300), start: second(60), until: until},   // kept, at the last second
		{made: second(0), ours: second(60), slurm: second(300), start: second(61), until: until},   // broken within a minute
		{made: second(0), ours: second(60), until: until},                                          // never started
		{made: second(4990), ours: second(4991), start: second(4992), until: until},                // the record ends before the minute
		{made: second(0), ours: second(601), slurm: second(601), start: second(601), until: until}, // promised for later
	})
	same(t, "a minute", rows[0], `{"within":60,"ours":{"promised":3,"kept":{"value":0.3333333333333333,"low":null,"high":null}},"slurm":null}`)
	same(t, "a day", rows[4], `{"within":86400,"ours":null,"slurm":null}`)
	same(t, "ten minutes", []any{rows[1].Ours.Promised, rows[1].Slurm.Promised, rows[1].Slurm.Kept.Value}, `[3,2,1]`)
}

// TestRules reads rules and applies them.
func TestRules(t *testing.T) {
	for text, want := range map[string]string{
		"[{name: 'amr-[', shape: amr}]": "pattern",
		"[{name: x}]":                   "give a profile or a shape",
		"[{shape: round}]":              "--shape=round",
		"[{profile: '50%@'}]":           "step",
		"[{profile: '50%@2000%'}]":      "at most 1000 %",
		"[{profile: '0%@20%'}]":         "above 0",
		"[{profile: 'x@1h'}]":           "step 1",
		"[{shape: amr, wrong: 1}]":      "wrong",
		"shape: amr":                    "no list of rules",
		"[{profile: '" + strings.Repeat("1%@1%,", 100_000) + "1%@1%'}]": "more than",
	} {
		if _, err := ReadRules(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
	rules, err := ReadRules(strings.NewReader("[{name: 'amr-*', user: anna, profile: '25%@50%,50%@10%,50%@15%,25%@25%'}, {account: physics, profile: '1@10m,2@5m'}, {name: big, shape: amr}]"))
	must.OK(t, err)
	applyRules(t, Evolve{Rules: rules, Shortest: 60, Seed: 1}.evolver())
}

func applyRules(t *testing.T, e *evolver) {
	for _, c := range []struct {
		name, user, account string
		seconds             int64
		want                string
	}{
		{"amr-1", "anna", "", 1000, "2@8m20s,4@4m10s,2@4m10s"},
		{"amr-1", "bob", "", 1000, ""},
		{"amr-1", "bob", "physics", 1000, "1@10m,2@5m"},
		{"amr-1", "anna", "", 59, ""}, // too short
	} {
		s := simulate.Submission{ID: "7", User: 3, Limit: 9, Profile: planner.Profile{{Duration: c.seconds, Nodes: 8}}}
		is := e.apply(&s, &observed.Job{Name: c.name, User: c.user, Account: c.account}, 8)
		if is != (c.want != "") || is && s.Profile.String() != c.want || is && s.Limit != 0 {
			t.Errorf("%+v: %v, %v", c, is, s.Profile)
		}
	}
	s := simulate.Submission{ID: "7", User: 3, Submit: 40, Partition: "p", Nice: -5, Profile: planner.Profile{{Duration: 5000, Nodes: 4}}}
	same(t, "by a shape", []any{e.apply(&s, &observed.Job{Name: "big"}, 8), len(s.Profile), s.Submit, s.Partition, s.User, s.Nice, s.ID}, `[true,9,40,"p",3,-5,"7"]`)
	for peak, want := range map[bool]string{false: "2@31m15s,3@31m15s,5@31m15s,6@31m15s", true: "1@31m15s,2@31m15s,3@31m15s,4@31m15s"} {
		s = simulate.Submission{Profile: planner.Profile{{Duration: 7500, Nodes: 4}}}
		if e := (Evolve{Share: 1, Shape: "ramp", Peak: peak}).evolver(); !e.apply(&s, &observed.Job{}, 8) || s.Profile.String() != want {
			t.Errorf("peak %v: %v, want %s", peak, s.Profile, want)
		}
	}
}

// folder makes a folder of records, from texts by file name; a name that ends in .gz is written as it stands.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		var b bytes.Buffer
		if strings.HasSuffix(name, ".gz") {
			b.WriteString(text)
		} else {
			z := gzip.NewWriter(&b)
			if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			name += ".gz"
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644))
	}
	return dir
}

func kept(t *testing.T) string {
	t.Helper()
	text := must.Read(t, "testdata/2026-03-01.jsonl")
	return string(text)
}

var third = Options{Days: 7, Evolve: Evolve{Share: .3, Shape: "uniform", Seed: 1, Shortest: 60}}

// TestKept: the figures of a kept record that the model has no part in are those of testdata/report.json.
func TestKept(t *testing.T) {
	o := third
	o.Days = 0
	r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": kept(t)}), o)
	must.OK(t, err)
	got, err := json.MarshalIndent(r, "", " ")
	must.OK(t, err)
	const file = "testdata/report.json"
	if *rewrite {
		must.OK(t, os.WriteFile(file, append(got, '\n'), 0o644))
	}
	want := must.Read(t, file)
	if string(bytes.TrimSpace(want)) != string(got) {
		t.Errorf("-rewrite if you mean it:\n%s", got)
	}
}

// TestPlayed plays the kept record: the site's means are those of its lines, and the page has every answer.
func TestPlayed(t *testing.T) {
	r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": kept(t)}), third)
	must.OK(t, err)
	if len(r.Gain) != 9 || r.Gain[0].Of != 24 || r.Gain[0].Of != r.Gain[1].Of+r.Gain[2].Of {
		t.Fatalf("%+v", r.Gain)
	}
	// Of the 24 jobs' lines counted from submit, start, end, and nodes by another program.
	for i, want := range map[int]float64{0: 4102.416666666667, 3: 5602.416666666667, 6: 1.65625} {
		m := r.Gain[i]
		for _, wrong := range []float64{m.Site.Value - want, m.Model.Value - m.Site.Value - m.Error.Value, m.Evolving.Value - m.Model.Value - m.Gain.Value} {
			if math.Abs(wrong) > 1e-6 {
				t.Errorf("%s: %+v, on the site %v", m.Name, m, want)
			}
		}
	}
	d := r.Days[0]
	same(t, "the day", []int{d.Jobs, d.Evolving - r.Gain[2].Of, r.Cost.Later[0].Stock + d.Evolving, len(d.Notes)}, `[24,0,24,5]`)
	checkPage(t, r)
}

func checkPage(t *testing.T, r *Report) {
	t.Helper()
	var page, again bytes.Buffer
	if err := errors.Join(r.Page(&page, report.Options{Version: "v1"}), r.Page(&again, report.Options{Version: "v1"})); err != nil || page.String() != again.String() {
		t.Fatal("another page", err)
	}
	for _, has := range []string{`id="predictions"`, `id="calibration"`, `id="gain"`, `id="later"`, `id="cost"`, `id="days"`, "2026-03-01 on the site", "2026-03-01 in the model, evolving", "width=device-width"} {
		if !strings.Contains(page.String(), has) {
			t.Errorf("the page has no %s", has)
		}
	}
	if found := regexp.MustCompile(`(?i)<[^>]*\b(src|href)\s*=`).FindString(page.String()); found != "" {
		t.Errorf("it refers to %s", found)
	}
}

// TestLong: a job without an end, as a damaged record has it, is not played for its years; jobs that share nodes have no charts.
func TestLong(t *testing.T) {
	text := regexp.MustCompile(`"start":(\d+),"end":\d+`).ReplaceAllString(kept(t), `"start":$1,"end":9223372036854775807`)
	r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": text}), third)
	if err != nil || len(r.Days) != 1 || r.Days[0].Jobs != 24 {
		t.Fatalf("%v: %+v", err, r)
	}
	shared := strings.ReplaceAll(kept(t), `"cpus":24,"exclusive":true`, `"cpus":6`)
	shared = regexp.MustCompile(`"start":\d+,"end":\d+`).ReplaceAllString(shared, `"start":1772343000,"end":1772343600`)
	if r, err = New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": shared}), third); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.Page(&page, report.Options{}); err != nil || !strings.Contains(page.String(), "No charts of 2026-03-01 on the site: jobs share nodes.") {
		t.Error(err, "or charts")
	}
}

// TestMissing: what cannot be read or played is named, and the rest is reported.
func TestMissing(t *testing.T) {
	whole := kept(t)
	heading, _, _ := strings.Cut(whole, "\n")
	later := strings.NewReplacer(`"at":17723`, `"at":17727`).Replace(heading) // 2026-03-05
	r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": whole, "2026-03-01.2.jsonl.gz": "no record", "2026-03-01.3.jsonl": heading + "\n{broken\n",
		"2026-03-05.jsonl": later + "\n"}), third)
	must.OK(t, err)
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"2026-03-01.2.jsonl.gz: not a file of observed days", "2026-03-01.3.jsonl.gz: the rest of the file cannot be read", "no record between 2026-03-01 and 2026-03-05", "2026-03-05: nothing was recorded"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
	soon := third
	soon.Within = 1
	if r, err := New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": whole}), soon); err != nil || !strings.Contains(strings.Join(r.Days[0].Notes, ""), "longer than 1ns") {
		t.Errorf("%v: %+v", err, r)
	}
	same(t, "the rest", []int{r.Starts, len(r.Days), r.Days[0].Jobs}, `[24,1,24]`)
	short := heading + "\n" + `{"at":1772323260,"gap":{"from":1772323200,"until":1772323260,"why":"x"}}` + "\n"
	if r, err = New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": short}), third); err != nil || len(r.Days) != 1 || !strings.Contains(r.Days[0].Notes[0], "too short") {
		t.Errorf("%v: %+v", err, r)
	}
	unseen := strings.ReplaceAll(whole, `"from":1772340200`, `"from":1772324000`)
	if r, err = New(t.Context(), folder(t, map[string]string{"2026-03-01.jsonl": unseen}), third); err != nil || !strings.Contains(r.Days[0].Notes[0], "nothing was seen") {
		t.Errorf("%v: %+v", err, r.Days)
	}
	for want, dir := range map[string]string{"nothing was recorded": t.TempDir(), "not a file of observed days": folder(t, map[string]string{"2026-03-01.jsonl.gz": "x"}),
		"is not of this day": folder(t, map[string]string{"2026-03-01.jsonl": heading + "\n" + `{"at":-9223372036854775808,"gap":{}}` + "\n"})} {
		if r, err = New(t.Context(), dir, third); !errors.Is(err, ErrNothing) || r == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestDay: a day in the model has the jobs and outages that it had.
func TestDay(t *testing.T) {
	const from = 1772323200 // 2026-03-01
	site := observed.Site{Nodes: []observed.NodeKind{{Nodes: "n[1-4]", CPUs: 4}}, Partitions: []observed.Partition{{Name: "main", Nodes: "n[1-4]", Up: true, Default: true, MaxTime: -1}},
		Settings: map[string]string{"PriorityType": "priority/multifactor"}}
	r := &record{site: site, from: from - 86400, until: from + 90000, jobs: map[jobKey]observed.Job{}}
	job := func(j observed.Job) { r.add(observed.Record{At: from, Job: &j}) }
	job(observed.Job{ID: 1, Nodes: 1, CPUs: 4, Exclusive: true, Limit: 7200, Submit: from - 4000, Start: from - 1000, End: from + 500, Priority: 1000}) // runs
	job(observed.Job{ID: 2, Nodes: 1, CPUs: 2, Limit: 600, Submit: from - 10, Eligible: from - 10, Start: from + 100, End: from + 200})                 // waits
	job(observed.Job{ID: 3, Nodes: 2, CPUs: 8, Limit: 600, Submit: from + 50, Eligible: from + 300, Begin: from + 300, Start: from + 310, End: from + 400})
	job(observed.Job{ID: 4, Nodes: 2, CPUs: 8, Limit: 600, Submit: from + 60, Eligible: from + 60, Standing: true}) // never started yet
	job(observed.Job{ID: 5, Nodes: 2, CPUs: 8, Limit: 600, Submit: from + 70, End: from + 90})                      // cancelled
	job(observed.Job{ID: 6, Nodes: 2, CPUs: 8, Limit: 600, Submit: from + 80, Eligible: from + 80, Standing: true, Evolving: true})
	job(observed.Job{ID: 7, Nodes: 2, CPUs: 8, Limit: 600, Submit: from - 9000, Start: from - 9000, End: from - 10})      // over
	job(observed.Job{ID: 8, Nodes: 1, CPUs: 1, Limit: 600, Submit: from + 86401, Start: from + 86401, End: from + 86500}) // of the next day
	job(observed.Job{ID: 9, Nodes: 1, CPUs: 1, Limit: 60, Submit: from + 90, Start: from + 95, End: from + 295})          // beyond its limit
	r.add(observed.Record{At: from - 100, Nodes: &observed.NodeState{Nodes: "n[1-2]"}})
	r.add(observed.Record{At: from + 600, Nodes: &observed.NodeState{Nodes: "n1", Usable: true}})
	r.add(observed.Record{At: from - 50, Reservation: &observed.Reservation{Name: "a", Start: from + 1000, End: from + 2000, Nodes: "n3"}})
	r.add(observed.Record{At: from + 1500, Reservation: &observed.Reservation{Name: "a", Start: from + 1000, End: from + 2000, Nodes: "n3", Ended: true}})
	d, err := r.newDay("2026-03-01")
	must.OK(t, err)
	type s struct {
		submit, seconds, limit int64
		cpus, nice             int
		first, counts          bool
	}
	want := map[string]s{"1": {0, 500, 6200, 0, -1000, true, false}, "2": {0, 100, 600, 2, 0, false, false}, "3": {300, 90, 600, 0, 0, false, true}, "4": {60, 600, 660, 0, 0, false, false}, "9": {90, 200, 260, 1, 0, false, true}}
	for i, j := range d.e.Jobs {
		if got := (s{j.Submit, j.Profile[0].Duration, j.Limit, j.CPUs, j.Nice, j.First, d.counts[i]}); got != want[j.ID] {
			t.Errorf("job %s: %+v, want %+v", j.ID, got, want[j.ID])
		}
		delete(want, j.ID)
	}
	if len(want) > 0 || len(d.notes) != 3 {
		t.Errorf("not there: %v; %q", want, d.notes)
	}
	outages, _ := json.Marshal(d.e.Outages)
	if string(outages) != `[{"From":0,"Until":600,"Nodes":["n1"],"Announced":-1},{"From":0,"Until":0,"Nodes":["n2"],"Announced":-1},{"From":1000,"Until":1500,"Nodes":["n3"],"Announced":0}]` {
		t.Errorf("%s", outages)
	}
}

// FuzzReport: no record ends the report, whatever its lines say.
func FuzzReport(f *testing.F) {
	text := must.Read(f, "testdata/2026-03-01.jsonl")
	f.Add(string(text))
	f.Add(strings.ReplaceAll(string(text), `"start":17723`, `"start":-9999999999917723`))
	f.Add(strings.ReplaceAll(string(text), `"nodes":2`, `"nodes":2000000000`))
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := New(ctx, folder(t, map[string]string{"2026-03-01.jsonl": text}), third)
		if err != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		if err := errors.Join(r.Table(io.Discard), r.Page(io.Discard, report.Options{})); err != nil {
			t.Error(err)
		}
	})
}
