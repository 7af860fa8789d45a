package malleable

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]Profile{
		"2-4@10m,5-16@30m":    {{600, Bounds{2, 4}}, {1800, Bounds{5, 16}}},
		"3@5,1-1@1-12":        {{300, Bounds{3, 3}}, {129600, Bounds{1, 1}}},
		"1-2147483647@1:00:1": {{3601, Bounds{1, math.MaxInt32}}},
	} {
		got, err := ParseProfile(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// TestRefused checks that bad input is rejected with position and reason.
func TestRefused(t *testing.T) {
	parsers := map[string]func(string) error{
		"profile":  func(s string) error { _, err := ParseProfile(s); return err },
		"bounds":   func(s string) error { _, err := ParseBounds(s); return err },
		"sizes":    func(s string) error { _, err := ParseSizes(s); return err },
		"speed-up": func(s string) error { _, _, err := ParseSpeedup(s); return err },
	}
	for _, c := range []struct {
		parser, text string
		offset       int
		reason       string
	}{
		{"profile", "", 0, "empty profile"},
		{"profile", "2-4", 3, "@DURATION missing"},
		{"profile", "2-4@", 4, "duration missing"},
		{"profile", "2-4@10m,", 8, "step 2 is empty"},
		{"profile", "2-4@10m,9-5@10m", 8, "step 2: the minimum 9 is above the maximum 5"},
		{"profile", "2-@10m", 2, "maximum: node count missing"},
		{"profile", "-4@10m", 0, "node count missing"},
		{"profile", "2-4-6@10m", 2, "maximum: node count \"4-6\" is not a whole number"},
		{"profile", "0-4@10m", 0, "at least 1"},
		{"profile", "1-2@10m,1-2@x", 12, "not a duration"},
		{"profile", "1 - 2@10m", 0, "not a whole number"},
		{"bounds", "", 0, "MIN-MAX expected"},
		{"bounds", "4", 1, "-MAX missing"},
		{"bounds", "5-4", 0, "the minimum 5 is above the maximum 4"},
		{"bounds", "a-4", 0, "minimum: "},
		{"bounds", "1-99999999999", 2, "maximum: node count \"99999999999\" is too large"},
		{"bounds", "2-4,", 2, "maximum: "},
		{"sizes", "", 0, "neither any nor pow2 nor multiple:K"},
		{"sizes", "odd", 0, "neither any nor pow2 nor multiple:K"},
		{"sizes", "multiple:0", 9, "at least 1"},
		{"sizes", "multiple:", 9, "missing"},
		{"speed-up", "", 0, "expected"},
		{"speed-up", "amdahl:1.5", 7, "from 0 to 1"},
		{"speed-up", "amdahl:NaN", 7, "from 0 to 1"},
		{"speed-up", "amdahl:", 7, "from 0 to 1"},
	} {
		err := parsers[c.parser](c.text)
		var parse *profile.ParseError
		if !errors.As(err, &parse) || parse.Offset != c.offset || !strings.Contains(parse.Reason, c.reason) || parse.Input != c.text {
			t.Errorf("%s %q: %#v, want %q at %d", c.parser, c.text, err, c.reason, c.offset)
		}
	}
	for text, c := range map[string]struct {
		sizes Sizes
		want  string
	}{
		"5-7":   {Pow2, "there is no power of two within 5-7"},
		"9-11":  {4, "there is no multiple of 4 within 9-11"},
		"4-7":   {Pow2, ""},
		"9-12":  {4, ""},
		"33-33": {Any, ""},
	} {
		b, err := ParseBounds(text)
		must.OK(t, err)
		if err := b.Validate(c.sizes); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s with %s: %v, want %q", text, c.sizes, err, c.want)
		}
	}
	p, err := ParseProfile("2-4@10m,5-7@10m")
	must.OK(t, err)
	if err := p.Validate(Pow2); err == nil || err.Error() != "step 2: there is no power of two within 5-7" {
		t.Errorf("profile of powers of two: %v", err)
	}
	if err := p.Validate(Any); err != nil || !p.Malleable() || p.Least(2).String() != "2@10m,6@10m" {
		t.Errorf("%v, %v", err, p.Least(2))
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Profile
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			low := rapid.IntRange(1, 50).Draw(t, "min")
			p = append(p, Step{rapid.Int64Range(1, 100000).Draw(t, "duration"), Bounds{low, rapid.IntRange(low, 60).Draw(t, "max")}})
		}
		if got, err := ParseProfile(p.String()); err != nil || cmp.Diff(p, got) != "" {
			t.Fatalf("%s: %v, %v", p, got, err)
		}
		if got, err := ParseBounds(p[0].Bounds.String()); err != nil || got != p[0].Bounds {
			t.Fatalf("%s: %v, %v", p[0].Bounds, got, err)
		}
		s := rapid.SampledFrom([]Sizes{Any, Pow2, 1, 7}).Draw(t, "sizes")
		var got Sizes
		if text, _ := s.MarshalText(); got.UnmarshalText(text) != nil || got != s {
			t.Fatalf("%s: %v", s, got)
		}
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		if f, c := s.Floor(n), s.Ceil(n); f > n || c < n || f > 0 && !s.Has(f) || !s.Has(c) || s.Has(n) != (f == c) {
			t.Fatalf("%s: %d is between %d and %d", s, n, f, c)
		}
	})
}

func FuzzParseProfile(f *testing.F) {
	f.Add("2-4@10m,5-16@30m")
	f.Add("1@1-12,9-5@x")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProfile(text)
		var parse *profile.ParseError
		if err != nil {
			if !errors.As(err, &parse) || parse.Offset > len(text) || parse.Error() == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := ParseProfile(p.String()); err != nil || cmp.Diff(p, again) != "" {
			t.Fatalf("%q: %s is read as %v (%v)", text, p, again, err)
		}
	})
}

func TestSpeedup(t *testing.T) {
	s, _, err := ParseSpeedup("amdahl:0.9")
	if err != nil || math.Abs(s.At(9)-5) > 1e-9 || s.At(1) != 1 {
		t.Errorf("amdahl:0.9: %v, %v", s, err)
	}
	if _, file, err := ParseSpeedup("speedup.txt"); err != nil || file != "speedup.txt" {
		t.Errorf("a file: %q, %v", file, err)
	}
	table, err := ParseTable("# measured in May\n1 1\n2\t1.8\n\n8 5 # the best\n16 4\n")
	must.OK(t, err)
	for nodes, want := range map[int]float64{1: 1, 2: 1.8, 5: 3.4, 8: 5, 12: 4.5, 16: 4, 99: 4} {
		if got := table.At(nodes); math.Abs(got-want) > 1e-9 {
			t.Errorf("on %d nodes %v, want %v", nodes, got, want)
		}
	}
	times, err := ParseTable("2 10m\n16 4m")
	if err != nil || cmp.Diff(Table{{2, 2}, {16, 5}}, times) != "" || times.At(1) != 1 {
		t.Errorf("times: %v, %v", times, err)
	}
	for text, want := range map[string]string{
		"":               "there is no speed-up",
		"2 1.5\n1 1":     "line 2: 1 nodes come after 2",
		"2 1.5\n2 1":     "line 2: 2 nodes come after 2",
		"1":              "line 1: want the nodes and the speed-up or time",
		"1 0":            "line 1: the speed-up on 1 nodes is 0",
		"1 -1":           "line 1: the speed-up on 1 nodes is -1",
		"1 inf":          "line 1: the speed-up on 1 nodes is +Inf",
		"1 nan":          "line 1: the speed-up on 1 nodes is NaN",
		"0 1":            "line 1: node count must be at least 1",
		"1 fast":         "line 1: \"fast\" is neither a speed-up nor a time",
		"1 1\n2 10m":     "line 2: speed-ups and times are mixed",
		"1 10m\n2 1.5":   "line 2: speed-ups and times are mixed",
		"1 1 1\n":        "line 1: want",
		"\n\n\nx 1":      "line 4: node count",
		"99999999999 10": "line 1: node count",
	} {
		if _, err := ParseTable(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestProgress checks that an application that follows Amdahl's law is measured exactly. One that
// slows down with more nodes, or was seen on one size only, must not be misjudged.
func TestProgress(t *testing.T) {
	play := func(s Speedup, whole float64, sizes ...int) *Progress {
		p := &Progress{}
		at, done := int64(100), 0.0
		for _, n := range sizes {
			must.OK(t, p.Add(Report{At: at, Fraction: done, Nodes: n}))
			at += 60
			done += 60 * s.At(n) / whole
			must.OK(t, p.Add(Report{At: at, Fraction: done, Nodes: n}))
			at++
		}
		return p
	}
	for _, f := range []Amdahl{0, .5, .9, .999, 1} {
		got := play(f, 1e5, 2, 8, 5, 2, 16).Speedup()
		for _, n := range []int{1, 4, 64} {
			if math.Abs(got.At(n)-f.At(n)) > 1e-6*f.At(n) {
				t.Errorf("amdahl %v measured as %v", f, got)
			}
		}
	}
	if s := play(Amdahl(.5), 1e5, 4, 4).Speedup(); s != nil {
		t.Errorf("on one size: %v", s)
	}
	if s := new(Progress).Speedup(); s != nil {
		t.Errorf("without a report: %v", s)
	}
	if s := play(Table{{2, 2}, {8, 1}}, 1e5, 2, 8).Speedup(); s != Amdahl(0) {
		t.Errorf("slower on more nodes: %v", s)
	}
	if s := play(Table{{1, 1}, {2, 3}}, 1e5, 1, 2).Speedup(); s != Amdahl(1) {
		t.Errorf("faster than ideal: %v", s)
	}
	p := play(Amdahl(.5), 1e3, 2, 4)
	before := *p
	for _, r := range []Report{{p.Last.At + 1, p.Last.Fraction - .01, 4, 0}, {p.Last.At, p.Last.Fraction - .01, 4, 0}, {p.Last.At - 1, 1, 4, 0}, {p.Last.At + 1, 1.1, 4, 0},
		{p.Last.At + 1, math.NaN(), 4, 0}, {p.Last.At + 1, math.Inf(1), 4, 0}, {p.Last.At + 1, -.1, 4, 0}, {p.Last.At + 1, 1, 0, 0}} {
		if err := p.Add(r); err == nil {
			t.Errorf("%+v is taken", r)
		}
		if diff := cmp.Diff(before, *p); diff != "" {
			t.Fatalf("a refused report has changed something: %s", diff)
		}
	}
	copied := *p
	if err := p.Add(Report{p.Last.At + 9, 1, 4, 0}); err != nil || cmp.Diff(before, copied) != "" {
		t.Errorf("%v; a copy has changed with it", err)
	}

	// The same nodes twice with others in between are not measured; two reports in one second are.
	p = &Progress{}
	for _, r := range []Report{{10, 0, 4, 0}, {20, .1, 4, 15}, {30, .2, 4, 15}, {30, .25, 4, 15}} {
		if err := p.Add(r); err != nil {
			t.Error(err)
		}
	}
	if want := []Run{{4, 10, .25 - .1}}; len(p.Runs) != 1 || p.Runs[0].Seconds != 10 || math.Abs(p.Runs[0].Fraction-.15) > 1e-9 {
		t.Errorf("measured %v, want %v", p.Runs, want)
	}
}
