package workload_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestRead(t *testing.T) {
	got, err := workload.Read(strings.NewReader(`{"nodes": 100,
		"busy": [{"start": 0, "duration": 1200, "nodes": 10}],
		"jobs": [{"id": "a", "submit": 7, "profile": [{"duration": 500, "nodes": 5}, {"duration": 3600, "nodes": 10}], "expand_limit": 2},
		         {"id": "b", "profile": [{"duration": 1, "nodes": 100}], "expand_limit": "inf"},
		         {"id": "c", "profile": [{"duration": 2147483647, "nodes": 1}]}]}`))
	want := planner.Problem{Nodes: 100, Busy: []planner.Busy{{Start: 0, Duration: 1200, Nodes: 10}}, Jobs: []planner.Job{
		{ID: "a", Submit: 7, Profile: planner.Profile{{Duration: 500, Nodes: 5}, {Duration: 3600, Nodes: 10}}, ExpandLimit: 2},
		{ID: "b", Profile: planner.Profile{{Duration: 1, Nodes: 100}}, ExpandLimit: planner.Infinite},
		{ID: "c", Profile: planner.Profile{{Duration: 2147483647, Nodes: 1}}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadErrors(t *testing.T) {
	job := func(fields string) string {
		return `{"nodes": 10, "jobs": [{"id": "ok", "profile": [{"duration": 1, "nodes": 1}]}, ` + fields + `]}`
	}
	step := func(fields string) string {
		return job(`{"id": "x", "profile": [{"duration": 1, "nodes": 1}, ` + fields + `]}`)
	}
	busy := func(fields string) string { return `{"nodes": 10, "jobs": [], "busy": [` + fields + `]}` }
	for text, want := range map[string]string{
		``:                          "the file is empty",
		`{"nodes": 10`:              "JSON is truncated",
		`{"nodes": 10, "jobs": [{"`: "job 1: JSON is truncated",
		`{"nodes": 10, "jobs": [{"id": "ok", "profile": [`: "job 1: JSON is truncated",
		`[]`:                                                             "workload: is not an object",
		`{"nodes": 10, "jobs": {}}`:                                      "jobs: is not an array",
		`{"nodes": 10}`:                                                  "jobs: is missing",
		`{"jobs": []}`:                                                   "nodes: is missing",
		`{"nodes": null, "jobs": []}`:                                    "nodes: is null",
		`{"nodes": "10", "jobs": []}`:                                    "nodes: is a string, not a whole number in range",
		`{"nodes": 1.5, "jobs": []}`:                                     "nodes: is a number 1.5, not a whole number in range",
		`{"nodes": 0, "jobs": []}`:                                       "nodes: 0 is not within 1",
		`{"nodes": 2147483648, "jobs": []}`:                              "nodes: 2147483648 is not within",
		`{"nodes": 1e99, "jobs": []}`:                                    "nodes: is a number 1e99",
		`{"nodes": 10, "nodes": 11, "jobs": []}`:                         "nodes: is given twice",
		`{"nodes": 10, "jobs": []} x`:                                    "there is more after the workload",
		`{"nodes": 10, "jobs": []}{}`:                                    "there is more after the workload",
		`{"nodes": 10, "jobs": [], "extra": 1}`:                          "extra: unknown field",
		job(`{"profile": []}`):                                           `job 2 (""): id: is missing`,
		job(`{"id": "", "profile": []}`):                                 `job 2 (""): id: is empty`,
		job(`{"id": 7, "profile": []}`):                                  `job 2 (""): id: is a number, not a string`,
		job(`{"id": "ok", "profile": [{"duration": 1, "nodes": 1}]}`):    `job 2 ("ok"): id: is that of job 1, too`,
		job(`{"id": "x"}`):                                               `job 2 ("x"): profile: is missing`,
		job(`{"id": "x", "profile": []}`):                                `job 2 ("x"): profile: profile has no steps`,
		job(`{"id": "x", "profile": [], "submit": -1}`):                  `job 2 ("x"): submit: -1 is not within`,
		job(`{"id": "x", "profile": [], "submit": 9223372036854775807}`): `job 2 ("x"): submit: 9223372036854775807 is not within`,
		job(`{"id": "x", "profile": [], "submit": 9223372036854775808}`): `job 2 ("x"): submit: is a number 9223372036854775808`,
		job(`{"id": "x", "profile": [], "expand_limit": 0.5}`):           `job 2 ("x"): expand_limit: expand limit 0.5 is below 1`,
		job(`{"id": "x", "profile": [], "expand_limit": "2"}`):           `job 2 ("x"): expand_limit: expand limit "2" is neither`,
		job(`{"id": "x", "profile": [], "limit": 2}`):                    `job 2 ("x"): limit: unknown field`,
		job(`7`):                                         `job 2: is a number, not an object`,
		step(`{"duration": 1}`):                          `job 2 ("x"): profile: step 2: nodes is missing`,
		step(`{"nodes": 1}`):                             `job 2 ("x"): profile: step 2: duration is missing`,
		step(`{"duration": 0, "nodes": 1}`):              `job 2 ("x"): profile: step 2: duration is 0`,
		step(`{"duration": -5, "nodes": 1}`):             `job 2 ("x"): profile: step 2: duration is -5`,
		step(`{"duration": 2147483648, "nodes": 1}`):     `job 2 ("x"): profile: step 2: duration is 2147483648`,
		step(`{"duration": 1, "nodes": 0}`):              `job 2 ("x"): profile: step 2: nodes is 0`,
		step(`{"duration": 1, "nodes": -2147483649}`):    `job 2 ("x"): profile: step 2: nodes is -2147483649`,
		step(`{"duration": 1, "nodes": 11}`):             `job 2 ("x"): profile: needs 11 nodes, the cluster has 10`,
		step(`{"duration": NaN, "nodes": 1}`):            `job 2: broken JSON at byte`,
		step(`{"duration": 1.5, "nodes": 1}`):            `job 2 ("x"): profile.duration: is a number 1.5`,
		step(`{"duration": 1, "nodes": 1, "x": 1}`):      `job 2 ("x"): x: unknown field`,
		busy(`{"start": 0, "duration": 1}`):              `busy[0].nodes: is missing`,
		busy(`{"start": -1, "duration": 1, "nodes": 1}`): `busy[0].start: -1 is not within`,
		busy(`{"start": 0, "duration": 0, "nodes": 1}`):  `busy[0].duration: 0 is not within`,
		busy(`{"start": 0, "duration": 1, "nodes": -1}`): `busy[0].nodes: -1 is not within`,
		busy(`{"start": 0, "duration": 9, "nodes": 6}, {"start": 8, "duration": 9, "nodes": 6}`): `busy: 12 nodes are in use at second 8, the cluster has 10`,
	} {
		if _, err := workload.Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestReadEndless: input without end is refused at a bound, not read into memory.
func TestReadEndless(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"nodes": 10, "jobs": [`), spaces{})
	if _, err := workload.ReadAtMost(endless, 1<<20); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := planner.Problem{Nodes: rapid.IntRange(1, planner.MaxNodes).Draw(t, "nodes")}
		if rapid.Bool().Draw(t, "busy") {
			p.Busy = []planner.Busy{{Start: rapid.Int64Range(0, workload.MaxTime).Draw(t, "start"), Duration: 5, Nodes: 1}}
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "jobs") {
			j := planner.Job{
				ID:          fmt.Sprintf("%s%d", rapid.StringN(0, 9, 9).Draw(t, "id"), i),
				Submit:      rapid.Int64Range(0, 99).Draw(t, "submit"),
				ExpandLimit: rapid.SampledFrom([]planner.ExpandLimit{0, 1, 1.5, planner.Infinite}).Draw(t, "limit"),
			}
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				j.Profile = append(j.Profile, planner.Step{Duration: rapid.Int64Range(1, planner.MaxDuration).Draw(t, "duration"), Nodes: 1})
			}
			p.Jobs = append(p.Jobs, j)
		}
		var b bytes.Buffer
		must.OK(t, workload.Write(&b, p))
		got, err := workload.Read(bytes.NewReader(b.Bytes()))
		if err != nil || !cmp.Equal(p, got) {
			t.Fatalf("%v\n%s", err, cmp.Diff(p, got))
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"nodes": 3, "busy": [{"start": 0, "duration": 5, "nodes": 1}], "jobs": [{"id": "a", "submit": 1, "profile": [{"duration": 5, "nodes": 2}], "expand_limit": "inf"}]}`))
	f.Add([]byte(`{"nodes": 3, "jobs": [{"id": "a", "profile": [{"duration": 1e3, "nodes": NaN}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := workload.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		must.OK(t, workload.Write(&b, p))
		if again, err := workload.Read(&b); err != nil || !cmp.Equal(p, again) {
			t.Fatalf("%v\n%s", err, cmp.Diff(p, again))
		}
	})
}

// TestPaperModel: every draw is within its range, every value comes up, and a
// test does not depend on others.
func TestPaperModel(t *testing.T) {
	model := workload.Paper{Jobs: workload.Range{Min: 2, Max: 4}, Steps: workload.Range{Min: 1, Max: 3}, Duration: workload.Range{Min: 5, Max: 8}, StepNodes: workload.Range{Min: 1, Max: 9}, Nodes: 9}
	seen := make(map[string]bool)
	for test := range 300 {
		p := model.Generate(7, test)
		must.OK(t, p.Validate())
		if !cmp.Equal(p, model.Generate(7, test)) {
			t.Fatalf("test %d is not always the same", test)
		}
		seen[fmt.Sprint("jobs ", len(p.Jobs))] = true
		for _, j := range p.Jobs {
			seen[fmt.Sprint("steps ", len(j.Profile))] = true
			for _, s := range j.Profile {
				seen[fmt.Sprint("duration ", s.Duration)] = true
				seen[fmt.Sprint("nodes ", s.Nodes)] = true
			}
		}
	}
	if len(seen) != 3+3+4+9 {
		t.Errorf("seen %v", seen)
	}
	if cmp.Equal(model.Generate(7, 1), model.Generate(7, 2)) || cmp.Equal(model.Generate(7, 1), model.Generate(8, 1)) {
		t.Error("tests and seeds do not differ")
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]workload.Range{"15-20": {Min: 15, Max: 20}, "5": {Min: 5, Max: 5}} {
		if got, err := workload.ParseRange(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "0", "2-1", "1-", "-5", "a-b", "1-2-3"} {
		if got, err := workload.ParseRange(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
