package measured

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner"
)

const amr = `Mon Nov 30 09:06:31 UTC 2026
iteration 64: 100 cells, 10.000 s
iteration 128: 850 cells, 40.000 s
1 ranks, iterations 0 to 192 of 192: 60.000 s, cells 90, 64 to 850 so far, mass 5.4e-05, error 5.4e-05
t7.00000768: 4672 bytes, written in 0.013 s
`

func TestRead(t *testing.T) {
	for text, want := range map[string][]Sample{
		"0 1\n2.5 3\n": {{0, 1, 1}, {2.5, 3, 2}},
		"# s, cells\n\n 1e1,\t64, 7 more\r\n10 0\n": {{10, 64, 3}, {10, 0, 4}},
		amr: {{0, 100, 2}, {10, 100, 2}, {40, 850, 3}, {60, 90, 4}},
	} {
		if got, err := Read(strings.NewReader(text)); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                              `0 lines SECONDS SIZE: want two or more`,
		"# nothing\n":                   `0 lines SECONDS SIZE: want two or more`,
		"0 1\n":                         `1 lines SECONDS SIZE: want two or more`,
		"0 1\n\n1 NaN\n":                `line 3: size "NaN" is not finite; remove the line`,
		"0 1\n+Inf 2\n":                 `line 2: time "+Inf" is not finite`,
		"0 1e999\n1 2":                  `line 1: size "1e999" is not finite`,
		"0 1\n1 -2\n":                   `line 2: size "-2" is negative; want 0 or more`,
		"-1 1\n1 2\n":                   `line 1: time "-1" is negative`,
		"5 1\n4.5 1\n":                  `line 2: time falls from 5 to 4.5; give one run`,
		"seconds size\n0 1\n1 2\n":      `line 1: time "seconds" is no number; begin lines without numbers with #`,
		"0 1\n1\n":                      `line 2: "1": want SECONDS SIZE; begin other lines with #`,
		"0 1\n2e10 1\n":                 `line 2: time "2e10" is more than 1e+10 seconds`,
		"0 1\n1 \x1b[31m2\n":            `line 2: size "\x1b[31m2" is no number`,
		"0 " + strings.Repeat("9", 200): `line 1: size "9999999999999999999999999999999999999999"`,
		amr + "iteration 64: 100 cells, 10.000 s\n":                  `line 6: time falls from 60 to 10`,
		amr + "iteration 256: NaN cells, 70.000 s\n":                 `line 6: size "NaN" is not finite`,
		"0 1\n" + strings.Repeat("1", 1<<20):                         `line 2 is longer than 64 KiB: want lines SECONDS SIZE`,
		strings.Repeat("0 1\n", maxSamples+2):                        `more than 1000000 samples; keep every tenth line: awk`,
		strings.Repeat("# "+strings.Repeat("-", 1<<10)+"\n", 17<<10): `more than 16 MiB; keep every tenth line`,
	} {
		_, err := Read(strings.NewReader(text))
		if text == "0 "+strings.Repeat("9", 200) {
			continue // a large number, and too few lines
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// counted is a file of 1 GB.
type counted struct{ read int }

func (c *counted) Read(b []byte) (int, error) {
	if c.read += len(b); c.read > 1<<30 {
		return 0, io.EOF
	}
	return copy(b, bytes.Repeat([]byte("# comment\n"), len(b)/10+1)), nil
}

func TestReadIsBounded(t *testing.T) {
	var c counted
	if _, err := Read(&c); err == nil || c.read > 2*maxBytes {
		t.Errorf("%v after %d bytes", err, c.read)
	}
}

func options(change func(*Options)) Options {
	o := Options{PerNode: 100, MaxNodes: 50, Nodes: 1, Scale: 1, Shortest: 60}
	if change != nil {
		change(&o)
	}
	return o
}

func TestProfile(t *testing.T) {
	run := func(text string) []Sample {
		s, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	grows := run("0 100\n1000 100\n1000 800\n9000 800\n9000 100\n9500 0\n")
	for name, c := range map[string]struct {
		run    []Sample
		change func(*Options)
		want   string
	}{
		"a step's time is its work on its nodes": {grows, nil, "1@16m40s,8@16m40s,1@8m20s"},
		"measured on four nodes":                 {grows, func(o *Options) { o.Nodes = 4 }, "1@1h6m40s,8@1h6m40s,1@33m20s"},
		"half as long":                           {grows, func(o *Options) { o.Scale = 0.5 }, "1@8m20s,8@8m20s,1@4m10s"},
		"with a margin, rounded up":              {grows, func(o *Options) { o.Margin = 5 }, "1@17m30s,8@17m30s,1@8m45s"},
		"a short step joins":                     {grows, func(o *Options) { o.Shortest = 501 }, "1@16m40s,8@17m43s"},
		"all is shorter than a step":             {grows, func(o *Options) { o.Shortest = 1e5 }, "8@19m48s"},
		"a node for nothing":                     {run("0 0\n100 0\n"), nil, "1@1m40s"},
		"a resize costs more than it saves":      {run("0 100000\n60 100000\n60 100100\n200 100100\n"), func(o *Options) { o.MaxNodes, o.Nodes = 2000, 1000 }, "1001@3m20s"},
		"amr's lines, each with its larger end":  {run(amr), func(o *Options) { o.Scale = 100 }, "1@16m40s,9@9m16s"},
		"no step is empty where the size jumps":  {run("0 1\n0 900\n0 1\n600 1\n"), nil, "9@1m7s"},
	} {
		p, steps, err := Profile(c.run, options(c.change))
		if err != nil || p.String() != c.want || len(steps) != len(p) {
			t.Errorf("%s: %s, %v, want %s", name, p, err, c.want)
		}
	}
	_, steps, _ := Profile(grows, options(nil))
	want := []Step{{planner.Step{Duration: 1000, Nodes: 1}, 100, 1000, 2}, {planner.Step{Duration: 1000, Nodes: 8}, 800, 9000, 4}, {planner.Step{Duration: 500, Nodes: 1}, 100, 9500, 6}}
	if !cmp.Equal(steps, want) {
		t.Errorf("steps: %+v", steps)
	}
	for want, c := range map[string]struct {
		run    []Sample
		change func(*Options)
	}{
		"line 2: size 3e+300 needs 3e+298 nodes, more than --max-nodes=50; raise it or --per-node=100": {run("0 1\n1 3e300\n"), nil},
		"needs 51 nodes, more than --max-nodes=50":                                                     {run("0 5001\n1 1\n"), nil},
		"line 2: the run lasts 0 seconds":                                                              {run("7 1\n7 2\n"), nil},
		"line 2: a step lasts 1e+10 seconds":                                                           {run("0 1\n1e10 1\n"), nil},
		"--per-node=0: want the size that":                                                             {grows, func(o *Options) { o.PerNode = 0 }},
		"--per-node=NaN":                                                                               {grows, func(o *Options) { o.PerNode = math.NaN() }},
		"--per-node=+Inf":                                                                              {grows, func(o *Options) { o.PerNode = math.Inf(1) }},
		"--max-nodes=0: want 1 to":                                                                     {grows, func(o *Options) { o.MaxNodes = 0 }},
		"--measured-nodes=-1: want":                                                                    {grows, func(o *Options) { o.Nodes = -1 }},
		"--scale=NaN: want":                                                                            {grows, func(o *Options) { o.Scale = math.NaN() }},
		"--scale=1e+10":                                                                                {grows, func(o *Options) { o.Scale = 1e10 }},
		"--shortest=0s: want 1s or more":                                                               {grows, func(o *Options) { o.Shortest = 0 }},
		"--margin=-1: want a percentage":                                                               {grows, func(o *Options) { o.Margin = -1 }},
	} {
		if p, _, err := Profile(c.run, options(c.change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v, want %s", p, err, want)
		}
	}
}

// A run whose nodes change 10,000 times is joined first, and none of its sizes is lost.
func TestManyChanges(t *testing.T) {
	var run []Sample
	for i := range 20_000 {
		run = append(run, Sample{float64(i), float64(100 + i/2%2*100 + i/1000*100), i + 1})
	}
	p, steps, err := Profile(run, options(nil))
	if err != nil || p.Peak() != 21 || p[0].Nodes > 4 || steps[len(steps)-1].Line != len(run) || len(p) < 3 {
		t.Errorf("%s, %v", p, err)
	}
}

// drawRun draws a run of a few samples.
func drawRun(t *rapid.T, most int) (run []Sample) {
	at := 0.0
	for i := range rapid.IntRange(2, most).Draw(t, "samples") {
		run = append(run, Sample{at, float64(rapid.IntRange(0, 1000).Draw(t, "size")), i + 1})
		at += float64(rapid.IntRange(0, 900).Draw(t, "seconds"))
	}
	run[len(run)-1].At++
	return run
}

// Of all ways to cut a run, found here by trying each, none costs less.
func TestCutCostsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options(nil)
		spans, err := split(drawRun(t, 9), o)
		if err != nil {
			t.Fatal(err)
		}
		total := func(steps []span) (sum float64) {
			for _, s := range steps {
				sum += s.cost(o.Shortest)
			}
			return sum
		}
		least := math.Inf(1)
		for ends := range 1 << (len(spans) - 1) {
			var steps []span
			for i, s := range spans {
				if i > 0 && ends>>(i-1)&1 == 0 {
					steps[len(steps)-1] = steps[len(steps)-1].and(s)
				} else {
					steps = append(steps, s)
				}
			}
			allowed := true
			for _, s := range steps {
				allowed = allowed && (len(steps) == 1 || s.work >= float64(o.Shortest)*float64(s.nodes))
			}
			if allowed {
				least = min(least, total(steps))
			}
		}
		if got := total(cut(spans, o.Shortest)); got > least*(1+1e-6) {
			t.Fatalf("costs %g, and another way %g: %+v", got, least, spans)
		}
	})
}

// A profile has the nodes that each sample needs, its steps are not shorter than asked for, and it has the work of the run.
func TestProfileHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, o := drawRun(t, 200), options(nil)
		p, steps, err := Profile(run, o)
		if err != nil || p.Validate() != nil || len(p) > maxSteps {
			t.Fatalf("%s: %v, %v", p, err, p.Validate())
		}
		work, k := 0.0, 0
		for i, s := range run[1:] {
			if s.Line > steps[k].Line {
				k++
			}
			if need := math.Ceil(max(s.Size, run[i].Size) / o.PerNode); float64(steps[k].Nodes) < need && s.At > run[i].At {
				t.Fatalf("%d nodes at line %d, which needs %g", steps[k].Nodes, s.Line, need)
			}
		}
		for i, s := range p {
			work += float64(s.Nodes) * float64(s.Duration)
			if s.Duration < o.Shortest && len(p) > 1 {
				t.Fatalf("step %d of %s is short", i+1, p)
			}
		}
		if ran := run[len(run)-1].At; work < ran || work > ran+float64(len(p)*p.Peak())+float64(p.Peak()) {
			t.Fatalf("%s has %g node-seconds, the run %g", p, work, ran)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{amr, "0 1\n10 500\n", "# s\n0,1\n1,NaN", "0 1\n\x00", "1 1\n0 1", "iteration 1: 1e999 cells, -0 s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		run, err := Read(strings.NewReader(text))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x00\x1b\n") || len(err.Error()) > 400 {
				t.Fatalf("%q", err)
			}
			return
		}
		p, steps, err := Profile(run, options(nil))
		if err == nil && (p.Validate() != nil || len(steps) != len(p) || fmt.Sprint(p) == "") {
			t.Fatalf("%q: %s, %v", text, p, p.Validate())
		}
	})
}
