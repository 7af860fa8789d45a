package planner

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]Profile{
		"2@10m,5@30m,1@5m": {{600, 2}, {1800, 5}, {300, 1}},
		"1@90s":            {{90, 1}},
		"1@1h30m":          {{5400, 1}},
		"1@0.5h":           {{1800, 1}},
		"1@5000ms":         {{5, 1}},
		"3@5":              {{300, 3}},
		"3@005":            {{300, 3}},
		"3@5:30":           {{330, 3}},
		"3@90:00":          {{5400, 3}},
		"3@1:00:01":        {{3601, 3}},
		"3@1-12":           {{129600, 3}},
		"3@1-12:30":        {{131400, 3}},
		"3@1-12:30:15":     {{131415, 3}},
		"3@0-0:0:1":        {{1, 3}},
		"2147483647@1s":    {{1, math.MaxInt32}},
		"1@2147483647s":    {{math.MaxInt32, 1}},
	} {
		got, err := ParseProfile(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestParseProfileErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		reason string
	}{
		{"", 0, "empty profile"},
		{"2@10m,", 6, "step 2 is empty"},
		{",2@10m", 0, "step 1 is empty"},
		{"2@10m,,1@5", 6, "step 2 is empty"},
		{"5", 1, "@DURATION missing"},
		{"@5m", 0, "node count missing"},
		{"x@5m", 0, `node count "x" is not a whole number`},
		{"-1@5m", 0, `node count "-1" is not a whole number`},
		{"1.5@5m", 0, "not a whole number"},
		{" 2@10m", 0, "not a whole number"},
		{"2@10m, 5@3m", 6, "not a whole number"},
		{"0@5m", 0, "node count must be at least 1"},
		{"2147483648@5m", 0, "too large"},
		{"99999999999999999999@5m", 0, "too large"},
		{"5@", 2, "duration missing"},
		{"5@0", 2, "at least 1 second"},
		{"5@0s", 2, "at least 1 second"},
		{"1@1,5@-3m", 6, "has a sign"},
		{"5@+3m", 2, "has a sign"},
		{"5@1.5s", 2, "not in whole seconds"},
		{"5@1.5", 2, "is not a duration"},
		{"5@1:2:3:4", 2, "is not a duration"},
		{"5@1-", 2, "is not a duration"},
		{"5@-1", 2, "is not a duration"},
		{"5@1-2-3", 2, "is not a duration"},
		{"5@3d", 2, "is not a duration"},
		{"5@10m 3@4", 2, "is not a duration"},
		{"5@UNLIMITED", 2, "is not a duration"},
		{"5@2147483648s", 2, "longer than 2147483647 seconds"},
		{"5@99999999999999999999", 2, "longer than 2147483647 seconds"},
		{"5@99999999-0", 2, "longer than 2147483647 seconds"},
		{strings.Repeat("1@1,", 300_000), 1 << 20, "longer than 1048576 bytes"},
		{strings.Repeat("1@1,", 100_000) + "1@1", 400_000, "more than 100000 steps"},
	} {
		_, err := ParseProfile(c.text)
		var parse *ParseError
		if !errors.As(err, &parse) || parse.Offset != c.offset || !strings.Contains(parse.Reason, c.reason) {
			t.Errorf("%.40q: got %v, want %q at offset %d", c.text, err, c.reason, c.offset)
		}
	}
	_, err := ParseProfile("2@10m,é@30m")
	if want := `step 2: node count "é" is not a whole number at character 7 of "2@10m,é@30m"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var parse *ParseError
	_, err = ParseProfile("2@10m,5@x")
	if errors.As(err, &parse); parse.Pointer() != "  2@10m,5@x\n          ^" {
		t.Errorf("pointer:\n%s", parse.Pointer())
	}
}

func TestProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProfile(t, 20, MaxDuration, MaxNodes)
		if got, err := ParseProfile(p.String()); err != nil || !cmp.Equal(got, p) {
			t.Fatalf("%s: %v, %v", p, got, err)
		}
	})
	if got, want := (Profile{{600, 2}, {1800, 5}, {5400, 1}, {61, 3}}).String(), "2@10m,5@30m,1@1h30m,3@1m1s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzParseProfile checks that parsing never panics, that an error points into the text, and that a
// parsed profile is valid and reads the same when written.
func FuzzParseProfile(f *testing.F) {
	for _, s := range []string{"2@10m,5@30m,1@5m", "3@1-12:30:15", "", "5@-3m", "@", "9@9999999999", "1@1e5s", "1@.5h", "é@\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProfile(text)
		if parse, ok := errors.AsType[*ParseError](err); ok {
			if parse.Offset < 0 || parse.Offset > len(text) || parse.Error() == "" {
				t.Fatalf("%q: %+v", text, parse)
			}
			parse.Pointer()
			return
		}
		if err != nil || p.Validate() != nil {
			t.Fatalf("%q: %v, %v, %v", text, p, err, p.Validate())
		}
		if again, err := ParseProfile(p.String()); err != nil || !cmp.Equal(again, p) {
			t.Fatalf("%q: %v, again %v, %v", text, p, again, err)
		}
	})
}

func TestProfileAlgebra(t *testing.T) {
	p := Profile{{10, 2}, {5, 7}, {1, 3}}
	if p.Duration() != 16 || p.Peak() != 7 || p.Area() != 58 {
		t.Errorf("duration %d, peak %d, area %d", p.Duration(), p.Peak(), p.Area())
	}
	for at, want := range map[int64]int{-1: 0, 0: 2, 9: 2, 10: 7, 14: 7, 15: 3, 16: 0, Forever: 0} {
		if got := p.At(at); got != want {
			t.Errorf("At(%d) = %d, want %d", at, got, want)
		}
	}
	huge := Profile{{Forever, math.MaxInt32}, {Forever, math.MaxInt32}}
	if huge.Duration() != Forever || huge.Area() != math.MaxInt64 {
		t.Errorf("overflow: duration %d, area %d", huge.Duration(), huge.Area())
	}
	for _, bad := range []Profile{nil, {{0, 1}}, {{-1, 1}}, {{1, 0}}, {{1, -1}}, {{MaxDuration + 1, 1}}, {{1, MaxNodes + 1}}, make(Profile, MaxSteps+1)} {
		if bad.Validate() == nil {
			t.Errorf("%.3v is valid", bad)
		}
	}
}

func TestExpandLimit(t *testing.T) {
	for text, want := range map[string]ExpandLimit{"1": 1, "2": 2, "1.5": 1.5, "inf": Infinite, "1.000001": 1.000001, "2.50": 2.5} {
		if got, err := ParseExpandLimit(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0.99", "-1", "+2", "NaN", "nan", "Inf", "infinity", "1e3", "0x2", "1_0", ".5", "2.", "1.0000001", "1000000001", " 2", strings.Repeat("9", 400)} {
		if got, err := ParseExpandLimit(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	for _, c := range []struct {
		limit    ExpandLimit
		duration int64
		want     int64
	}{
		{1, 7, 7}, {2, 7, 14}, {1.5, 3, 4}, {1.15, 100, 115}, {1.1, 30, 33}, {2.3, 10, 23}, {1.000001, 999_999, 999_999}, {1.000001, 1_000_000, 1_000_001},
		{Infinite, 1, Forever}, {2, Forever, Forever}, {2, Forever / 2, Forever - 1}, {1e9, MaxDuration, MaxDuration * 1e9}, {1e9, Forever, Forever}, {1, Forever, Forever},
	} {
		if got := c.limit.Stretch(c.duration); got != c.want {
			t.Errorf("%v × %d = %d, want %d", c.limit, c.duration, got, c.want)
		}
	}
	type holder struct {
		Limit ExpandLimit `json:"limit,omitempty"`
	}
	for text, want := range map[string]ExpandLimit{`{"limit":2}`: 2, `{"limit":1.5}`: 1.5, `{"limit":"inf"}`: Infinite, `{}`: 0} {
		var h holder
		if err := json.Unmarshal([]byte(text), &h); err != nil || h.Limit != want {
			t.Errorf("%s: %v, %v", text, h.Limit, err)
		}
		if out, err := json.Marshal(h); err != nil || string(out) != text {
			t.Errorf("%s is written as %s, %v", text, out, err)
		}
	}
	for _, text := range []string{`{"limit":0}`, `{"limit":0.5}`, `{"limit":-2}`, `{"limit":"2"}`, `{"limit":"Inf"}`, `{"limit":true}`, `{"limit":[2]}`, `{"limit":1e400}`, `{"limit":1e10}`} {
		var h holder
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s is read as %v", text, h.Limit)
		}
	}
	if _, err := json.Marshal(ExpandLimit(math.NaN())); err == nil {
		t.Error("NaN is written")
	}
}
