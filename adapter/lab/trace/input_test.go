package trace_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// readErr returns what a reader says of a text.
func readErr(text string, o trace.Options) error {
	r, err := trace.NewReader(strings.NewReader(text), o)
	if err == nil {
		_, err = r.ReadAll()
	}
	return err
}

// TestMark checks that a byte order mark is ignored.
func TestMark(t *testing.T) {
	const mark = "\ufeff"
	for _, text := range []string{small, "1 5" + line, `{"nodes": 8, "jobs": [{"id": "a", "profile": [{"duration": 1, "nodes": 1}]}]}`} {
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		fmt.Fprint(z, mark, text)
		z.Close()
		want := read(t, text, trace.Options{})
		for _, marked := range []string{mark + text, zipped.String()} {
			got := read(t, marked, trace.Options{})
			if len(got.Jobs) != len(want.Jobs) || got.Header.Machine() != want.Header.Machine() || len(got.Header.Lines) != len(want.Header.Lines) {
				t.Errorf("%.20q: %d jobs, header %+v", marked, len(got.Jobs), got.Header)
			}
		}
	}
}

// TestEmpty checks that an empty file is not read as a trace without jobs.
func TestEmpty(t *testing.T) {
	for _, text := range []string{"", "\n \r\n\t", "\ufeff", "\ufeff\n"} {
		if err := readErr(text, trace.Options{Lenient: true}); err == nil || err.Error() != "the file is empty" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNoneLeft checks that a trace without any valid job is bad input, even for a lenient reader.
func TestNoneLeft(t *testing.T) {
	for text, want := range map[string]string{
		"1 x" + line + "2 y" + line:         `no job is left of 2; the first fault is: line 1: field 2 (submit): "x"; want a number`,
		`{"nodes": 4, "jobs": [{"id": 5}]}`: "no job is left of 1; the first fault is: job 1: id: ",
		`{"nodes": 4, "jobs": [{"id`:        "job 1: the file is cut short",
	} {
		if err := readErr(text, trace.Options{Lenient: true}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestNegativeLimit: a requested time of -1 is none, another negative one is a fault.
func TestNegativeLimit(t *testing.T) {
	swf := "1 0 0 10 4 -1 -1 4 %s -1 1 7 -1 -1 0 -1 -1 -1\n"
	batsim := `{"nb_res": 4, "jobs": [{"id": "1", "subtime": 1, "res": 4, "profile": "p", "walltime": %s}], "profiles": {"p": {"type": "delay", "delay": 3}}}`
	elastisim := `{"jobs": [{"type": "rigid", "submit_time": 3, "num_nodes": 16, "walltime": %s, "arguments": {"iterations": 1, "flops": 1e12}}]}`
	for text, want := range map[string]string{swf: "line 1: field 9 (requested time): -5; want -1 … 2^53", batsim: "job 1: walltime: -5; want seconds, or -1 for none",
		elastisim: "job 1: walltime: -5; want seconds, or -1 for none"} {
		if err := readErr(fmt.Sprintf(text, "-5"), trace.Options{}); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
		if tr := read(t, fmt.Sprintf(text, "-1"), trace.Options{}); tr.Jobs[0].Limit != -1 {
			t.Errorf("%s: a limit of %v", text, tr.Jobs[0].Limit)
		}
	}
}

// TestParts: a job that was swapped out or checkpointed is one job.
func TestParts(t *testing.T) {
	part := func(number int, rest string, status int) string {
		return fmt.Sprintf("%d %s 4 5 -1 4 100 -1 %d 7 1 -1 0 1 -1 -1\n", number, rest, status)
	}
	whole := part(1, "10 5 60", 1)
	parts := part(1, "10 5 20", 2) + part(1, "-1 3 30", 2) + part(1, "-1 2 10", 3)
	other := part(2, "20 0 7", 1)
	passed := "3 lines are parts (status 2 to 4) of jobs that are there as a whole; they are passed over"
	joined := "1 jobs are there in parts only (status 2 to 4); these are added up"
	for _, c := range []struct {
		text   string
		jobs   int
		status int64
		note   string
	}{
		{whole + parts + other, 2, 1, passed},
		{parts + whole + other, 2, 1, passed},
		{whole + other + parts, 2, 1, passed},
		{parts + other, 2, 1, joined},
		{other + parts, 2, 1, joined},
		{part(1, "10 5 40", 2) + part(1, "-1 2 20", 4) + other, 2, 0, joined},
		{part(1, "10 5 60", 2) + other, 2, -1, joined},
	} {
		tr := read(t, c.text, trace.Options{AnyOrder: true})
		if len(tr.Jobs) != c.jobs || len(tr.Report.Notes) != 1 || tr.Report.Notes[0] != c.note {
			t.Errorf("%s%d jobs, %q", c.text, len(tr.Jobs), tr.Report.Notes)
			continue
		}
		for _, j := range tr.Jobs {
			if j.Number == 1 && (j.Submit != 10 || j.Wait != 5 || j.Run != 60 || j.Size() != 4 || j.Status != c.status) {
				t.Errorf("%s%+v", c.text, j)
			}
		}
	}
	// An error on a line after parts names that line.
	if err := readErr(part(1, "10 5 20", 2)+"2 x"+line, trace.Options{}); err == nil || !strings.HasPrefix(err.Error(), "line 2: field 2 ") {
		t.Error(err)
	}
}

// TestTwice checks that a number or name belongs to one job only.
func TestTwice(t *testing.T) {
	job := `{"id": "%s", "profile": [{"duration": 1, "nodes": 1}]}`
	for text, want := range map[string]string{
		"64 5" + line + "1 5" + line + "64 6" + line:                                  "line 3: field 1 (number): 64 is that of an earlier job, too",
		"7 5" + line + "-1 5" + line:                                                  "line 2: field 1 (number): -1; every job has one",
		fmt.Sprintf(`{"nodes": 4, "jobs": [`+job+","+job+`]}`, "a", "a"):              `job 2: id: "a" is that of an earlier job, too`,
		fmt.Sprintf(`{"nodes": 4, "jobs": [`+job+","+job+","+job+`]}`, "b", "2", "2"): "job 3: field 1 (number): 2 is that of an earlier job, too",
	} {
		if err := readErr(text, trace.Options{}); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
		if tr := read(t, text, trace.Options{Lenient: true}); tr.Report.Left != 1 || tr.Report.First[0] != want {
			t.Errorf("%s, lenient: %+v", text, tr.Report)
		}
	}
	// Numbers made for names clash with no job's.
	if tr := read(t, fmt.Sprintf(`{"nodes": 4, "jobs": [`+job+","+job+`]}`, "2", "a"), trace.Options{}); len(tr.Jobs) != 2 {
		t.Errorf("%+v", tr.Jobs)
	}
}

// TestOldText checks that a header from before UTF-8 is kept, also in JSON.
func TestOldText(t *testing.T) {
	tr := read(t, "; Acknowledge: Andr\xe9\n; MaxProcs: 9\n; Note: é\n1 5"+strings.TrimSuffix(line, "\n")+" \xfc\n", trace.Options{})
	for range 2 {
		if tr.Header.Value("Acknowledge") != "André" || tr.Header.Value("Note") != "é" || tr.Jobs[0].More != "ü" {
			t.Errorf("%q %q", tr.Header.Lines, tr.Jobs[0].More)
		}
		tr = read(t, write(t, "json", tr), trace.Options{})
	}
}

// TestMisread: what would be read as something else than it says, or lead astray what reads it next, is refused.
func TestMisread(t *testing.T) {
	own := func(job string) string { return `{"nodes": 8, "jobs": [{` + job + `}]}` }
	bat := func(job string) string {
		return `{"nb_res": 4, "jobs": [{` + job + `, "subtime": 1, "res": 4, "profile": "p"}], "profiles": {"p": {"type": "delay", "delay": 20}}}`
	}
	const logged = `"swf": [1, 0, -1, 5, 4, -1, -1, 4, 200, -1, 1, 7, -1, -1, 0, -1, -1, -1]`
	for text, want := range map[string]string{
		"; MaxProcs: 4\r1 5" + strings.TrimSpace(line):                                            "line 1: has a carriage return in it",
		"1 5" + strings.TrimSpace(line) + "\r2 6" + line:                                          "line 1: has a carriage return in it",
		`{"nodes": 8, "header": [" a\n1 2 3"], "jobs": []}`:                                       `header: " a\n1 2 3" has a line break in it`,
		`{"nodes": 8, "header": [1], "jobs": []}`:                                                 "header: is a number",
		`{"nb_res": 8, "jobs": {}, "profiles": {}}`:                                               "jobs: is an object",
		own(`"id": "1", "profile": [{"duration": 5, "nodes": 4}], "more": "x\n1 2 3", ` + logged): "job 1: more: has a line break in it",
		own(`"id": "1", "profile": [{"duration": 6, "nodes": 4}], ` + logged):                     "job 1: swf: says 4@5s, and the profile 4@6s",
		own(`"id": "1", "profile": [], ` + logged):                                                "job 1: swf: says 4@5s, and the profile that it never ran",
		bat(`"id": {}`):   "job 1: id: {} is neither a text nor a whole number",
		bat(`"id": null`): "job 1: id: null is neither a text nor a whole number",
		bat(`"id": 1.5`):  "job 1: id: 1.5 is neither a text nor a whole number",
		bat(`"id": ""`):   "job 1: id: is missing",
		bat(`"id": "1", "swf": "1 1 -1 20 4 -1 -1 4 200 -1 1 7 -1 -1 0 -1 -1 -1 x\n7"`):                                                                         "job 1: swf: has a line break in it",
		bat(`"id": "1", "swf": "1 1 -1 30 4 -1 -1 4 200 -1 1 7 -1 -1 0 -1 -1 -1"`):                                                                              "job 1: swf: is another job's: submitted at 1, 30 s on 4",
		`{"jobs": [{"type": "malleable", "submit_time": 3, "num_nodes_min": 1, "num_nodes_max": 8, "arguments": {"iterations": 1, "flops": 1, "alpha": 1e6}}]}`: "job 1: arguments.alpha: 1e+06: 8 nodes are too many times as fast as one",
	} {
		if err := readErr(text, trace.Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	// Numbers that no float64 holds are names.
	const large = "9007199254740993"
	for _, text := range []string{own(`"id": "` + large + `", "profile": [{"duration": 5, "nodes": 4}]`), bat(`"id": ` + large)} {
		if tr := read(t, text, trace.Options{}); tr.Jobs[0].Number != 1 || tr.Jobs[0].Shape.ID != large {
			t.Errorf("%s: %+v", text, tr.Jobs[0])
		}
	}
	further := trace.Format{Name: "further", Is: func([]byte) bool { return true }, Open: func(io.Reader) func() (trace.Job, string, error) {
		return func() (trace.Job, string, error) {
			j := trace.Unknown
			j.Number = 1<<53 + 1
			return j, "line 1", nil
		}
	}}
	if _, err := trace.Read(strings.NewReader("x"), further); err == nil || err.Error() != "line 1: field 1 (number): 9007199254740993 is more than 2^53" {
		t.Error(err)
	}
}

// TestNested: Batsim's profiles within profiles are looked into to some depth, not until the stack is full.
func TestNested(t *testing.T) {
	text := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, `"p%d": {"type": "composed", "seq": ["p%d"]}, `, i, i+1)
		}
		return fmt.Sprintf(`{"nb_res": 4, "jobs": [{"id": "1", "subtime": 1, "res": 4, "profile": "p0"}], "profiles": {%s"p%d": {"type": "delay", "delay": 20}}}`, b.String(), depth)
	}
	if tr := read(t, text(1000), trace.Options{}); tr.Jobs[0].Run != 20 {
		t.Errorf("%+v", tr.Jobs[0])
	}
	if err := readErr(text(200_000), trace.Options{}); err == nil || err.Error() != "job 1: profile: more than 1000 profiles are one within the other" {
		t.Error(err)
	}
}

// TestNull: null is not 0, neither in a job's fields nor in what is in use.
func TestNull(t *testing.T) {
	job := `{"id": "1", "submit": 0, "profile": [{"duration": 10, "nodes": 4}], "swf": %s}`
	fields := `[1, 0, %s, 10, 4, -1, -1, 4, 20, -1, 1, 7, -1, -1, 0, -1, -1, -1]`
	for text, want := range map[string]string{
		`{"nodes": 8, "jobs": [` + fmt.Sprintf(job, fmt.Sprintf(fields, "null")) + `]}`:                         "job 1: swf: field 3 is null; what is not known is -1",
		`{"nodes": 8, "jobs": [` + fmt.Sprintf(job, fmt.Sprintf(fields, `"x"`)) + `]}`:                          "job 1: swf: is a string, not a number",
		`{"nodes": 8, "busy": [{"start": null, "duration": 5, "nodes": 1}], "jobs": []}`:                        "busy: interval 1: start, duration or nodes is missing",
		`{"nodes": 8, "busy": [{"start": 0, "duration": 5, "nodes": 1}, {"start": 0, "nodes": 1}], "jobs": []}`: "busy: interval 2: start, duration or nodes is missing",
	} {
		if err := readErr(text, trace.Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	for _, told := range []string{"null", fmt.Sprintf(fields, "-1")} {
		tr := read(t, `{"nodes": 8, "busy": null, "jobs": [`+fmt.Sprintf(job, told)+`]}`, trace.Options{})
		if j := tr.Jobs[0]; j.Wait != -1 {
			t.Errorf("%s: a wait of %v", told, j.Wait)
		}
	}
}
