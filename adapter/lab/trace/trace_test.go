package trace_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

const small = `; Version: 2.2
;	Note: see the tab
; UnixStartTime: 749458803
; MaxNodes: 8
; MaxProcs: 32
0 0 5 10 4 9.25 -1 4 20 -1 1 7 1 -1 0 1 -1 -1
3 2 -1 0 -1 -1 -1 2 60 -1 5 8 1 -1 0 1 -1 -1
4 2 0 1.5 32 -1 -1 -1 -1 -1 1 8 1 -1 0 1 3 30 17 0.5 x
`

func read(t *testing.T, text string, o trace.Options) trace.Trace {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), o)
	must.OK(t, err)
	all, err := r.ReadAll()
	must.OK(t, err)
	return all
}

func write(t testing.TB, format string, tr trace.Trace) string {
	t.Helper()
	var b bytes.Buffer
	w, err := trace.NewWriter(&b, format, tr.Header)
	must.OK(t, err)
	for _, j := range tr.Jobs {
		if err := w.Write(j); err != nil && err != trace.ErrNeverRan {
			t.Fatal(err)
		}
	}
	must.OK(t, w.Close())
	return b.String()
}

// TestSWF: what a line says, and that it is written as it was.
func TestSWF(t *testing.T) {
	tr := read(t, small, trace.Options{})
	h := tr.Header
	if h.Nodes != 8 || h.Processors != 32 || h.Machine() != 32 || h.UnixStart != 749458803 || len(h.Lines) != 5 {
		t.Errorf("header: %+v", h)
	}
	want := trace.Job{Submit: 0, Wait: 5, Run: 10, Processors: 4, CPU: 9.25, Memory: -1, Wanted: 4, Limit: 20, WantedMemory: -1, Status: 1, User: 7, Group: 1,
		Application: -1, Partition: 1, Preceding: -1, Think: -1}
	if diff := cmp.Diff(want, tr.Jobs[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	j := tr.Jobs[2]
	if j.More != "17 0.5 x" || j.Size() != 32 || j.Seconds() != 2 || j.LimitSeconds() != 0 || j.Start() != 2 || !j.Ran() {
		t.Errorf("job 4: %+v", j)
	}
	if j := tr.Jobs[1]; j.Size() != 2 || j.Ran() || j.Start() != -1 {
		t.Errorf("job 3: %+v", j)
	}
	if got := write(t, "swf", tr); got != small {
		t.Errorf("written:\n%s", got)
	}
}

// TestGzip checks that gzipped files are recognised, and that truncated ones are an error.
func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range 20_000 {
		fmt.Fprintf(z, "%d %d -1 %d 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n", i, 7*i, i*i%9973+1)
	}
	z.Close()
	whole := b.String()
	if tr := read(t, whole, trace.Options{}); len(tr.Jobs) != 20_000 {
		t.Errorf("%d jobs", len(tr.Jobs))
	}
	_, err := trace.Read(strings.NewReader(whole[:len(whole)/2]))
	if err == nil || !strings.HasPrefix(err.Error(), "line ") || !strings.HasSuffix(err.Error(), ": the file is cut short") {
		t.Errorf("got %v", err)
	}
	if _, err := trace.Read(strings.NewReader(whole[:8])); err == nil || err.Error() != "the file is cut short" {
		t.Errorf("in the header: %v", err)
	}
	tr := read(t, whole[:len(whole)/2], trace.Options{Lenient: true})
	if r := tr.Report; len(tr.Jobs) < 1000 || len(tr.Jobs) > 19_000 || len(r.First) != 1 || !strings.Contains(r.First[0], "cut short") {
		t.Errorf("%d jobs, %+v", len(tr.Jobs), r)
	}
}

// TestEndlessJob: a job of a workload file that has no end is given up before it fills the memory.
func TestEndlessJob(t *testing.T) {
	for _, begin := range []string{`{"nodes": 8, "jobs": [{"id": "`, `{"nodes": 8, "jobs": [{"id": "a", "profile": [{"duration": 1, "nodes": 1}]}, {"`} {
		rest := &io.LimitedReader{R: endless("a"), N: 1 << 28}
		r, err := trace.NewReader(io.MultiReader(strings.NewReader(begin), rest), trace.Options{})
		if err == nil {
			_, err = r.ReadAll()
		}
		if err == nil || !strings.HasSuffix(err.Error(), ": longer than 16777216 bytes") || rest.N < 1<<27 {
			t.Errorf("%s…: %v, with %d bytes left", begin, err, rest.N)
		}
	}
}

// TestHeaderLies checks that an invalid size in the header is reported.
func TestHeaderLies(t *testing.T) {
	for text, want := range map[string]string{"MaxNodes: -3": "the header's MaxNodes: -3 is no size; it is passed over", "MaxProcs: 99999999999999999999 (all)": "the header's MaxProcs: 99999999999999999999 is no size; it is passed over",
		"MaxJobs: many": "the header's MaxJobs: many is no size; it is passed over", "MaxNodes: -1": "", "MaxProcs:": "", "Note: -3": ""} {
		tr := read(t, "; "+text+"\n1 5"+line, trace.Options{})
		if got := strings.Join(tr.Report.Notes, "|"); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}

const line = " -1 10 4 -1 -1 4 20 -1 1 7 1 -1 0 1 -1 -1\n"

// TestFaults: what is wrong is named with its line and field, and left out where that is wanted.
func TestFaults(t *testing.T) {
	good := "1 5" + line + "2 6" + line
	for text, want := range map[string]string{
		"1 2 3\n":                      "line 3: 3 fields; a job has 18",
		"7 x" + line:                   `line 3: field 2 (submit): "x"; want a number`,
		"7 NaN" + line:                 `line 3: field 2 (submit): "NaN"; want a number`,
		"7 1e400" + line:               `line 3: field 2 (submit): "1e400"; want a number`,
		"7 -2" + line:                  "line 3: field 2 (submit): -2; want -1 … 2^53",
		"7 9007199254740993000" + line: "line 3: field 2 (submit): 9007199254740993000; want -1 … 2^53",
		"7 1645000000000" + line:       "line 3: field 2 (submit): 1645000000000 seconds are not a time (milliseconds?)",
		"7.5 8" + line:                 "line 3: field 1 (number): 7.5; want a whole number",
		"7 5" + line:                   "line 3: field 2 (submit): 5 is before the job in front of it, 6 (evosim trace convert --sort puts them in order)",
		"7 8 -1 2147483648 4 -1 -1 4 20 -1 1 7 1 -1 0 1 -1 -1\n": "line 3: field 4 (run): 2147483648 seconds are more than 2147483647",
		"7 8 -1 9 -5 -1 -1 4 20 -1 1 7 1 -1 0 1 -1 -1\n":         "line 3: field 5 (processors): -5; want -1 … 2^53",
		"7 8 -1 9 4294967296 -1 -1 4 20 -1 1 7 1 -1 0 1 -1 -1\n": "line 3: field 5 (processors): 4294967296 are more than 2147483647",
		"; MaxNodes: 3\n":                    "",
		strings.Repeat("7 ", 100_000) + "\n": "line 3: longer than 65536 bytes",
		"7 8\x00" + line:                     `line 3: field 2 (submit): "8\x00"; want a number`,
	} {
		_, err := trace.Read(strings.NewReader(good + text + "9 9" + line))
		if strings.HasPrefix(want, "line 3: field 2 (submit): 5") {
			var r *trace.Reader
			if r, err = trace.NewReader(strings.NewReader(good+text+"9 9"+line), trace.Options{}); err == nil {
				_, err = r.ReadAll()
			}
		}
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.40q\n got %v\nwant %s", text, err, want)
		}
		tr := read(t, good+text+"9 9"+line, trace.Options{Lenient: true})
		if want != "" && (len(tr.Jobs) != 3 || tr.Report.Jobs != 3 || tr.Report.Left != 1 || !reflect.DeepEqual(tr.Report.First, []string{want})) {
			t.Errorf("%.40q, lenient: %d jobs, %+v", text, len(tr.Jobs), tr.Report)
		}
	}
	// Larger than the machine, whose size the header gives in processors or in nodes.
	for head, field := range map[string]string{"; MaxProcs: 3\n": "3", "; MaxNodes: 3\n": "3", "; MaxNodes: 100\n; MaxProcs: 2 (as told)\n": "2"} {
		want := fmt.Sprintf("field 5 (processors): 4, and the machine has %s (by the header)", field)
		if _, err := trace.Read(strings.NewReader(head + good)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", head, err)
		}
	}
	// A header that lies about what is odd only.
	tr := read(t, "; MaxJobs: 700\n"+good+"; later\n"+"9 9"+line, trace.Options{})
	if got := fmt.Sprint(tr.Report.Notes); got != "[the header tells of 700 jobs (MaxJobs), there are 3 1 comments between jobs are left out]" {
		t.Errorf("notes: %s", got)
	}
}

// TestEndless: input without end, on one line or as a header, is not read into memory.
func TestEndless(t *testing.T) {
	if _, err := trace.Read(io.LimitReader(endless("7"), 1<<26)); err == nil || err.Error() != "line 1: longer than 65536 bytes" {
		t.Errorf("one line: %v", err)
	}
	if _, err := trace.Read(endless(";\n")); err == nil || err.Error() != "line 65537: a header of more than 65536 lines" {
		t.Errorf("a header: %v", err)
	}
	trace.SetMostFile(1 << 20)
	defer trace.SetMostFile(1 << 28)
	if _, err := trace.Read(io.MultiReader(strings.NewReader(`{"jobs": [`), endless(" "))); err == nil || !strings.Contains(err.Error(), "cannot be streamed") {
		t.Errorf("JSON: %v", err)
	}
}

type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestRoundTrip: any trace comes back from any format as it was.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := trace.Trace{}
		tr.Header.Set("MaxProcs", "1000")
		tr.Header.Set("Note", rapid.StringMatching(`[a-z:;"\\ é]*[a-z]`).Draw(rt, "note"))
		shapes := rapid.Bool().Draw(rt, "shapes")
		for i := range rapid.IntRange(1, 6).Draw(rt, "jobs") {
			value := func(name string) float64 {
				return rapid.SampledFrom([]float64{-1, 0, 1, 2.5, 86399, 1e9 + .125}).Draw(rt, name)
			}
			j := trace.Job{Number: int64(i), Submit: float64(10 * i), Wait: value("wait"), Run: value("run"), Processors: int64(rapid.IntRange(-1, 1000).Draw(rt, "processors")),
				CPU: value("cpu"), Memory: value("memory"), Wanted: int64(rapid.IntRange(-1, 1000).Draw(rt, "wanted")), Limit: value("limit"), WantedMemory: value("m"),
				Status: 1, User: 3, Group: -1, Application: 4, Queue: 0, Partition: -1, Preceding: -1, Think: value("think")}
			if rapid.Bool().Draw(rt, "more") {
				j.More = "5 6"
			}
			if shapes {
				step := planner.Profile{{Duration: 5, Nodes: 7}}
				j.Shape = rapid.SampledFrom([]*trace.Shape{nil, {ID: fmt.Sprint("job ", i)},
					{Kind: trace.Evolving, Profile: planner.Profile{{Duration: 5, Nodes: 7}, {Duration: 6, Nodes: 9}}, ExpandLimit: 2},
					{Kind: trace.Moldable, Profile: step, Alternatives: []planner.Profile{step}, By: planner.ByWaste, ID: fmt.Sprint("a b", i)},
					{Kind: trace.Malleable, Profile: step, Min: 2, Max: 16}}).Draw(rt, "shape")
			}
			tr.Jobs = append(tr.Jobs, j)
		}
		formats := []string{"json"}
		if !shapes {
			formats = trace.Formats
		}
		for _, format := range formats {
			text := write(t, format, tr)
			back := read(t, text, trace.Options{})
			want := tr.Jobs
			if format == "batsim" {
				want = nil
				for _, j := range tr.Jobs {
					if j.Ran() {
						want = append(want, j)
					}
				}
			}
			if diff := cmp.Diff(want, back.Jobs); diff != "" {
				rt.Fatalf("%s -want +got:\n%s\n%s", format, diff, text)
			}
			if back.Header.Machine() != 1000 || format != "batsim" && !reflect.DeepEqual(back.Header.Lines, tr.Header.Lines) {
				rt.Fatalf("%s: header %+v", format, back.Header)
			}
			if format == "json" { // it is also a workload file
				if _, err := workload.Read(strings.NewReader(text)); err != nil {
					rt.Fatalf("%v\n%s", err, text)
				}
			}
		}
	})
}

// TestForeign: workload files of others, and of ours that were no traces.
func TestForeign(t *testing.T) {
	own := read(t, `{"nodes": 9, "busy": [{"start": 0, "duration": 5, "nodes": 1}], "jobs": [
		{"id": "a", "submit": 3, "profile": [{"duration": 5, "nodes": 2}, {"duration": 6, "nodes": 9}], "expand_limit": "inf"},
		{"id": "7", "submit": 4, "profile": [{"duration": 5, "nodes": 2}]}]}`, trace.Options{})
	a, b := own.Jobs[0], own.Jobs[1]
	if own.Header.Machine() != 9 || a.Kind() != trace.Evolving || a.Run != 11 || a.Size() != 9 || a.Shape.ID != "a" || b.Number != 7 || b.Shape != nil {
		t.Errorf("%+v %+v", own.Header, own.Jobs)
	}
	if again := read(t, write(t, "json", own), trace.Options{}); cmp.Diff(own, again) != "" {
		t.Errorf("%s", cmp.Diff(own, again))
	}
	bat := read(t, `{"description": "x", "nb_res": 4, "jobs": [
		{"id": "w0!1", "subtime": 1.5, "walltime": 100, "res": 4, "profile": "p", "custom": 1},
		{"id": 2, "subtime": 2, "res": 1, "profile": "twice"}],
		"profiles": {"p": {"type": "delay", "delay": 20}, "twice": {"type": "composed", "repeat": 2, "seq": ["p", "p"]}}}`, trace.Options{})
	if j := bat.Jobs[0]; bat.Header.Machine() != 4 || j.Submit != 1.5 || j.Limit != 100 || j.Run != 20 || j.Wanted != 4 || j.Shape.ID != "w0!1" || bat.Jobs[1].Run != 80 {
		t.Errorf("%+v", bat)
	}
	ela := read(t, `{"jobs": [
		{"type": "rigid", "submit_time": 3, "num_nodes": 16, "arguments": {"iterations": 10, "flops": 16000000000000, "alpha": 1}},
		{"type": "moldable", "submit_time": 4, "num_nodes_min": 3, "num_nodes_max": 8, "arguments": {"iterations": 12, "flops": 8000000000000, "alpha": 1}},
		{"type": "evolving", "submit_time": 5, "num_nodes_min": 1, "num_nodes_max": 2, "arguments": {"iterations": 1, "flops": 8000000000000, "alpha": 1}}]}`, trace.Options{})
	if j := ela.Jobs; j[0].Run != 10 || j[0].Size() != 16 || j[1].Kind() != trace.Moldable || len(j[1].Shape.Alternatives) != 2 || j[1].Shape.Alternatives[0][0] != (planner.Step{Duration: 32, Nodes: 3}) ||
		j[2].Kind() != trace.Malleable || j[2].Shape.Min != 1 || j[2].Run != 4 || len(ela.Report.Notes) != 1 {
		t.Errorf("%+v", ela)
	}
}

// TestJSONFaults: the same of JSON.
func TestJSONFaults(t *testing.T) {
	bat := func(job, profiles string) string {
		return `{"nb_res": 4, "jobs": [` + job + `], "profiles": {` + profiles + `}}`
	}
	job := `{"id": "1", "subtime": 1, "res": 4, "profile": "p"}`
	for text, want := range map[string]string{
		``:                                 "the file is empty",
		`{`:                                "the file is cut short",
		`{"nodes": 4, "jobs": [{"id"`:      "job 1: the file is cut short",
		`{"nodes": 4, "jobs": [}`:          "broken JSON at byte",
		`{"nodes": 0, "jobs": []}`:         "nodes: 0 is not within",
		`{"nodes": "x", "jobs": []}`:       "nodes: is a string",
		`{"nodes": 4, "nodes": 5}`:         "nodes: is given twice",
		`{"nodes": 4, "extra": 5}`:         "extra: unknown field",
		`{"nodes": 4, "jobs": [], "x": 1}`: "x: stands behind the jobs",
		`{"nodes": 4, "jobs": []}}`:        "there is more after the workload",
		`{"other": 1}`:                     "neither a workload file",
		`{"nodes": 4, "jobs": [{"id": "a", "profile": [{"duration": 5, "nodes": 5}, {"duration": 5, "nodes": 1}]}]}`:                              "job 1: field 8 (requested processors): 5, and the machine has 4",
		`{"nodes": 4, "jobs": [{"id": "a", "profile": [{"duration": -5, "nodes": 5}]}]}`:                                                          "job 1: profile: step 1: duration is -5",
		`{"nodes": 4, "jobs": [{"id": "a", "profile": [{"duration": 5, "nodes": 1}], "malleable": {"min": 3, "max": 2}}]}`:                        "job 1: malleable: 3 … 2 nodes",
		`{"nodes": 4, "jobs": [{"id": "a", "profile": [{"duration": 5, "nodes": 2}], "malleable": {"min": 1, "max": 2, "speedup": "amdahl:2"}}]}`: "job 1: malleable.speedup: ",
		`{"nodes": 4, "jobs": [{"id": "a", "profile": [{"duration": 5, "nodes": 1}], "swf": [1, 2]}]}`:                                            "job 1: swf: 2 fields; a job has 18",
		bat(`{"id": "1", "subtime": 1, "res": 4}`, ``):                                                                                            "job 1: profile: is missing",
		bat(`{"id": "1", "subtime": -1, "res": 4, "profile": "p"}`, ``):                                                                           "job 1: subtime: -1 is negative",
		bat(job, ``): `job 1: profile: there is no profile "p"`,
		bat(job, `"p": {"type": "parallel_homogeneous", "cpu": 1}`):                                                                         `job 1: profile: profile "p" is of type "parallel_homogeneous"`,
		bat(job, `"p": {"type": "composed", "seq": ["p"]}`):                                                                                 `job 1: profile: profile "p" contains itself`,
		bat(job, `"p": {"type": "delay", "delay": 0}`):                                                                                      `job 1: profile: profile "p": 0 seconds`,
		`{"jobs": [{"type": "rigid", "submit_time": 3, "num_nodes": 16}]}`:                                                                  "job 1: arguments.iterations: must be a number",
		`{"jobs": [{"type": "odd", "submit_time": 3, "num_nodes_min": 1, "num_nodes_max": 2, "arguments": {"iterations": 1, "flops": 1}}]}`: `job 1: type: "odd" is not`,
	} {
		_, err := trace.Read(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small), false)
	f.Add([]byte("1 5"+line+"2 6"+line+"x"), true)
	f.Add([]byte(`{"nodes": 4, "header": ["a"], "jobs": [{"id": "1", "profile": [], "swf": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]}]}`), false)
	f.Add([]byte(`{"nb_res": 4, "jobs": [{"id": "1", "subtime": 1, "res": 4, "profile": "p"}], "profiles": {"p": {"type": "delay", "delay": 2.5}}}`), true)
	f.Add([]byte(`{"jobs": [{"type": "malleable", "submit_time": 3, "num_nodes_min": 2, "num_nodes_max": 6, "arguments": {"iterations": 1, "flops": 1e13}}]}`), false)
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), true)
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		r, err := trace.NewReader(bytes.NewReader(data), trace.Options{Lenient: lenient})
		if err != nil {
			return
		}
		tr, err := r.ReadAll()
		if err != nil || tr.Header.Machine() < 1 {
			return
		}
		back, err := trace.Read(strings.NewReader(write(t, "json", tr)))
		if err != nil || !cmp.Equal(tr.Jobs, back.Jobs) {
			t.Fatalf("%v\n%s", err, cmp.Diff(tr.Jobs, back.Jobs))
		}
	})
}
