package science

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden figure and page")

// The stream is the same for each way, and it fills the cluster.
func TestStream(t *testing.T) {
	jobs := Stream(7, 3600)
	if !reflect.DeepEqual(jobs, Stream(7, 3600)) || reflect.DeepEqual(jobs, Stream(8, 3600)) {
		t.Error("a stream is not that of its seed")
	}
	nodeSeconds, last := 0., 0.
	for i, j := range jobs {
		if i < backlog && j.Submit != 0 || j.Submit < last || j.Nodes < 1 || j.Nodes > 4 || j.Seconds > 60*j.Minutes-5 || j.Seconds < 60*j.Minutes-14 {
			t.Fatalf("job %d: %+v", i, j)
		}
		nodeSeconds, last = nodeSeconds+float64(j.Nodes*j.Seconds), j.Submit
	}
	if nodeSeconds < 12*3600*0.9 || last < 3500 {
		t.Errorf("%d jobs with %.0f node-seconds", len(jobs), nodeSeconds)
	}
}

// sample is a case of three steps: planned, and with a growth that waits for 30 seconds. Its shrink takes a second.
func sample(t *testing.T) Trial {
	trial := Trial{Seed: 1, Nodes: 10, Steps: []Step{{2, 64, 40}, {6, 128, 50}, {3, 64, 10}}}
	for _, wait := range []float64{0, 30} {
		w := Way{Name: "planned", Submit: 10, HeldIdle: 36, Counted: true}
		if wait > 0 {
			w.Name, w.HeldIdle = "on demand", 0
		}
		notes := "begun 1 1030.5\ndone 1 1070.5\n" + fmt.Sprintf("begun 2 %g\ndone 2 %g\nbegun 3 %g\ndone 3 %g\n", 1070.5+wait, 1120.5+wait, 1121.5+wait, 1131.5+wait)
		if err := w.notes(notes, 1000, 3); err != nil {
			t.Fatal(err)
		}
		printed := "iteration 64: 700 cells, 0.5 s\n2 ranks, iterations 0 to 64 of 256: 0.5 s, cells 700, 64 to 700 so far, mass 1e-02, error 2e-03\n" +
			"iteration 128: 2100 cells, 0.4 s\niteration 192: 90 cells, 0.9 s\n6 ranks, iterations 64 to 192 of 256: 0.9 s, cells 90, 64 to 2100 so far, mass 5e-05, error 6e-05\n" +
			"iteration 256: 64 cells, 0.1 s\n3 ranks, iterations 192 to 256 of 256: 0.1 s, cells 64, 64 to 2100 so far, mass 5e-05, error 6e-05\n"
		if err := w.read(printed); err != nil {
			t.Fatal(err)
		}
		for at := 0.5; at < 180; at++ {
			p := Poll{At: at, Others: 8, Waiting: 3}
			switch {
			case at >= 70.5+wait && at < 120.5+wait:
				p.Case, p.Others = 6, 3
			case at >= 120.5+wait && at < 131.5+wait:
				p.Case, p.Others = 3, 7
			case at >= 30.5 && at < 70.5+wait:
				p.Case = 2
			}
			w.Polls = append(w.Polls, p)
		}
		trial.Ways = append(trial.Ways, w)
	}
	return trial
}

func TestRow(t *testing.T) {
	trial := sample(t)
	want := []Row{
		{Before: 20.5, Inside: 1, Growths: []float64{0}, Makespan: 121.5, Had: 2*40 + 6*50 + 3*11, Needed: 410, Unused: 2*20.5 + 50, HeldIdle: 36},
		{Before: 20.5, Inside: 31, Growths: []float64{30}, Makespan: 151.5, Had: 2*70 + 6*50 + 3*11, Needed: 410, Unused: 2*20.5 + 50},
	}
	for i, w := range trial.Ways {
		want[i].Shrinks = []float64{1}
		thin := w
		if thin.Polls = Thin(w.Polls); len(thin.Polls) > 8 {
			t.Errorf("%d polls are left", len(thin.Polls))
		}
		for _, w := range []Way{w, thin} {
			if got := trial.Row(w); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: %+v, want %+v", w.Name, got, want[i])
			}
		}
	}
	if s, n := trial.Ideal(); math.Abs(s-410./6) > 1e-9 || n != 410 {
		t.Errorf("ideal: %g s, %g node-seconds", s, n)
	}
	a, b := trial.Ways[0], trial.Ways[1]
	if !Same(a, b) {
		t.Error("equal answers differ")
	}
	if b.Fixed = true; len(trial.Row(b).Growths)+len(trial.Row(b).Shrinks) > 0 {
		t.Error("a fixed job changes its size")
	}
	b.Mass += 2e-12
	if Same(a, b) {
		t.Error("other mass is the same")
	}
	for iteration, at := range map[int]float64{0: 30.5, 32: 50.5, 64: 70.5, 128: 95.5, 192: 120.5} {
		if got := trial.At(a, iteration); got != at {
			t.Errorf("iteration %d at %g, want %g", iteration, got, at)
		}
	}
}

func TestBadNotes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "step 1 did not end",
		"begun 1 5\n":                     "step 1 did not end",
		"begun 1\n":                       `note "begun 1\n"`,
		"begun 1 soon\n":                  `note "begun 1 soon\n"`,
		"begun 1 5\ndone 1 6\nfailed 2 7": "step 2 did not end",
	} {
		var w Way
		if err := w.notes(text, 0, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var w Way
	if err := w.read("iteration 64: 700 cells, 0.5 s\n"); err == nil || !strings.Contains(err.Error(), "did not come to its end") {
		t.Error(err)
	}
}

// The figure and the page are as kept in testdata, and well-formed.
func TestPage(t *testing.T) {
	trial := sample(t)
	other := sample(t)
	other.Ways[1].Spans[1].Begun += 10
	found := Result{"About <it>.", []Trial{trial, other}}
	for name, write := range map[string]func(io.Writer) error{
		"figure.svg": func(out io.Writer) error { return Figure(out, trial) },
		"trace.txt":  func(out io.Writer) error { return Trace(out, "About it.", trial, trial.Ways[0]) },
		"page.html":  func(out io.Writer) error { return Page(out, found) },
		"tables.md": func(out io.Writer) error {
			_, err := io.WriteString(out, Tables(found))
			return err
		},
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			if err := os.WriteFile("testdata/"+name, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + name)
		if err != nil || got.String() != string(want) {
			t.Errorf("%s is not as in testdata (-rewrite writes it): %v", name, err)
		}
		if strings.HasSuffix(name, ".svg") {
			for d := xml.NewDecoder(&got); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestPublished checks that the published tables, figure, and trace are those that the published result gives.
func TestPublished(t *testing.T) {
	const docs = "../../../docs/"
	read := func(name string) string {
		text, err := os.ReadFile(docs + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var found Result
	if err := json.Unmarshal([]byte(read("experiments/science.json")), &found); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read("experiments.md"), Tables(found)) {
		t.Errorf("docs/experiments.md has not the tables of the run:\n%s", Tables(found))
	}
	var figure, trace strings.Builder
	if err := Figure(&figure, found.Trials[0]); err != nil || figure.String() != read("experiments/science.svg") {
		t.Errorf("docs/experiments/science.svg is not that of the run: %v", err)
	}
	if err := Trace(&trace, found.About, found.Trials[0], found.Trials[0].Ways[0]); err != nil || trace.String() != read("data/amr-planned.txt") {
		t.Errorf("docs/data/amr-planned.txt is not that of the run: %v", err)
	}
}
