package request

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

var profile = planner.Profile{{Duration: 600, Nodes: 2}, {Duration: 1800, Nodes: 5}}

func TestMarkerText(t *testing.T) {
	p := profile.String()
	for want, s := range map[string]Request{
		"evo:v2;p=" + p + ";;":                            {Profile: profile},
		"evo:v2;p=" + p + ";x=1;d=auto;c=my job;;":        {Profile: profile, ExpandLimit: 1, Drive: drivemode.Auto, Comment: "my job"},
		"evo:v2;p=" + p + ";x=inf;d=merge;b=1790000000;;": {Profile: profile, ExpandLimit: planner.Infinite, Drive: drivemode.Merge, Begin: time.Unix(1790000000, 0)},
		"evo:v2;p=" + p + ";n=n[1-4];c=x;;":               {Profile: profile, Nodes: "n[1-4]", Comment: "x"},
		"evo:v2;p=" + p + ";n=n[1-4];w=a|b&c%3B;g=9;;":    {Profile: profile, Nodes: "n[1-4]", Prefer: "a|b&c;", MaxNodes: 9},
		"evo:v2;p=" + p + ";x=1.5;d=chain;i=1;;":          {Profile: profile, ExpandLimit: 1.5, Drive: drivemode.Chain, Chain: &ChainLink{Step: 1}},
		"evo:v2;p=" + p + ";d=chain;i=2;f=77;c=a%3Bc=b;;": {Profile: profile, Drive: drivemode.Chain, Chain: &ChainLink{First: 77, Step: 2}, Comment: "a;c=b"},
		"evo:v2;p=1-4@10m;t=30;y=requeue;;":               {Profile: planner.Profile{{Duration: 600, Nodes: 1}}, Malleable: &Malleable{Max: []int{4}, Grace: 30, BestEffort: Requeued}},
		"evo:v2;p=4@10m;y=cancel;d=merge;;":               {Profile: planner.Profile{{Duration: 600, Nodes: 4}}, Drive: drivemode.Merge, Malleable: &Malleable{Max: []int{4}, BestEffort: Cancelled}},
		"evo:v2;p=" + p + ";c=100%25%0A%FFé;;":            {Profile: profile, Comment: "100%\n\xffé"},
	} {
		if got, ok := s.Marker(); got != want || !ok {
			t.Errorf("Marker() = %q, %v, want %q", got, ok, want)
		}
	}
	s := Request{ExpandLimit: 2, Drive: drivemode.Auto, Comment: "x"}
	if got, ok := s.ScriptMarker(); got != "evo:v2;script;x=2;d=auto;c=x;;" || !ok {
		t.Errorf("ScriptMarker() = %q, %v", got, ok)
	}
}

func TestParseMarkerPlainComments(t *testing.T) {
	for _, comment := range []string{"", "hello", "evo:", "evo:v1", "evo:v;p=1@1m", "evo:vx;p=1@1m", " evo:v1;p=1@1m", "x evo:v1;p=1@1m", "evo:v2", "evo:v0000000002;p=1@1m;;", "EVO:v1;p=1@1m", "evo:v-1;p=1@1m"} {
		if s, ok, err := ParseMarker(comment); ok || err != nil || !cmp.Equal(s, Request{}) {
			t.Errorf("ParseMarker(%q) = %v, %v, %v; it is no marker", comment, s, ok, err)
		}
	}
}

func TestParseMarkerRefuses(t *testing.T) {
	for comment, reason := range map[string]string{
		"evo:v3;p=1@1m":                       "version 3",
		"a,evo:v3;p=1@1m;;":                   "version 3",
		"evo:v2;p=1@1m":                       "no end",
		"evo:v2;p=1@1m;":                      "no end",
		"evo:v2;;;":                           "unknown field",
		"evo:v2;p=1-4@1m;y=1;;":               `field "y": "1" is neither requeue nor cancel`,
		"evo:v2;p=1@1m;y=cancel;d=chain;;":    "--best-effort and --drive=chain exclude each other",
		"evo:v2;p=1@1m;y=cancel;g=4;;":        "--best-effort and a claim",
		"evo:v2;p=1@1m|2@1m;y=cancel;;":       "moldable",
		"evo:v2;p=1@1m,2@1m;y=cancel;;":       "--best-effort and --profile exclude each other",
		"evo:v2;p=1@1m;y=cancel;a=near;;":     "--best-effort and --prefer-near exclude each other",
		"evo:v2;p=1@1m;w=[a|b];;":             `field "w": --prefer=[a|b]`,
		"evo:v2;p=1@1m;w=a%3;;":               `field "w"`,
		"evo:v2;p=1@1m;w=a;g=9;;":             "a job with a claim",
		"evo:v2;p=1@1m;c=a;b;;":               "unknown field",
		"evo:v2;p=1@1,evo:v2;p=1@1m;":         "no end",
		"evo:v1;":                             "unknown field",
		"evo:v1;x=2":                          "no profile",
		"evo:v1;c=p=1@1m":                     "no profile",
		"evo:v1;p=":                           `field "p"`,
		"evo:v1;p=0@1m":                       `field "p"`,
		"evo:v1;p=1@1m;":                      "unknown field",
		"evo:v1;p=1@1m;p=1@1m":                "repeated or out of order",
		"evo:v2;p=2@1m|1@2m;s=2@1@3@3@3;;":    "alternatives of a job that has run",
		"evo:v1;x=2;p=1@1m":                   "repeated or out of order",
		"evo:v1;script;p=1@1m":                "repeated or out of order",
		"evo:v1;p=1@1m;script":                "unknown field",
		"evo:v1;p=1@1m;x=0.5":                 `field "x"`,
		"evo:v1;p=1@1m;x=NaN":                 `field "x"`,
		"evo:v1;p=1@1m;d=fast":                "invalid drive mode",
		"evo:v1;p=1@1m;b=-5":                  `field "b"`,
		"evo:v1;p=1@1m;b=9223372036854775":    `field "b"`,
		"evo:v1;p=1@1m;d=chain;i=01":          `field "i"`,
		"evo:v1;p=1@1m;d=chain;i=2":           "step 2 of a profile with 1",
		"evo:v1;p=1@1m;i=1":                   "without drive mode chain",
		"evo:v1;p=1@1m;d=chain;f=5":           "no step",
		"evo:v1;p=1@1m;d=chain;i=1;f=2e9":     `field "f"`,
		"evo:v1;p=1@1m;c=50%":                 "escaped byte",
		"evo:v1;p=1@1m;c=%zz":                 "escaped byte",
		"evo:v1;p=1@1m;q=1":                   "unknown field",
		"evo:v1;p=1@1m;xd=1":                  "unknown field",
		"evo:v1;p=1@1m;=1":                    "unknown field",
		"evo:v1;p=" + strings.Repeat("9", 99): `field "p"`,
	} {
		if _, ok, err := ParseMarker(comment); !ok || err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseMarker(%q) = %v, %v; want an error with %q", comment, ok, err, reason)
		}
	}
}

func TestMarkerTooLong(t *testing.T) {
	long := make(planner.Profile, 200)
	for i := range long {
		long[i] = planner.Step{Duration: 61 + int64(i), Nodes: i + 1}
	}
	if text, ok := (Request{Profile: long}).Marker(); ok {
		t.Errorf("a marker of %d bytes fits", len(text))
	}
	if text, ok := (Request{Profile: long}).ScriptMarker(); !ok {
		t.Errorf("a script marker of %d bytes does not fit", len(text))
	}
	s := Request{Profile: profile}
	room := MaxComment - len(s.marker(false)) - len(";c=")
	if _, ok := (Request{Profile: profile, Comment: strings.Repeat("x", room)}).Marker(); !ok {
		t.Errorf("a comment that fills the marker to the last byte does not fit")
	}
	if _, ok := (Request{Profile: profile, Comment: strings.Repeat("x", room+1)}).Marker(); ok {
		t.Errorf("a comment one byte too long fits")
	}
}

// anyRequest draws a request as evosbatch can build it.
func anyRequest(t *rapid.T) Request {
	s := Request{
		Profile: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planner.Step {
			return planner.Step{
				Duration: rapid.Int64Range(1, 400*86400).Draw(t, "duration"),
				Nodes:    rapid.IntRange(1, 100000).Draw(t, "nodes"),
			}
		}), 1, 12).Draw(t, "profile"),
		ExpandLimit: rapid.SampledFrom([]planner.ExpandLimit{0, 1, 1.25, 2, 1e6, planner.Infinite}).Draw(t, "limit"),
		Drive:       rapid.SampledFrom([]drivemode.Mode{"", drivemode.Auto, drivemode.Merge, drivemode.Companion, drivemode.Chain}).Draw(t, "drive"),
		Nodes:       rapid.SampledFrom([]string{"", "n1", "n[1-4,7]", "a[01-10]x,b"}).Draw(t, "nodes"),
		Comment:     string(rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.StringMatching(`[a-z;%=|" \n]*`), func(s string) []byte { return []byte(s) })).Draw(t, "comment")),
	}
	if rapid.Bool().Draw(t, "begin") {
		s.Begin = time.Unix(rapid.Int64Range(1, 1<<40).Draw(t, "unix"), 0)
	}
	if rapid.Bool().Draw(t, "moldable") {
		m := &Moldable{Alternatives: []planner.Profile{s.Profile}, By: planner.Preference(rapid.IntRange(0, 2).Draw(t, "by"))}
		for k := range rapid.IntRange(0, 3).Draw(t, "alternatives") {
			m.Alternatives = append(m.Alternatives, append(planner.Profile{{Duration: int64(k) + 500*86400, Nodes: k + 1}}, s.Profile[1:]...))
		}
		if rapid.Bool().Draw(t, "limits") {
			for k := range m.Alternatives {
				m.Minutes = append(m.Minutes, []int64{int64(k) + 1})
			}
			if n := len(m.Minutes); n > 1 {
				m.Minutes[n-1] = nil
			}
			m.Choice = rapid.IntRange(0, max(len(m.Minutes)-1, 1)).Draw(t, "choice")
		}
		s.Moldable = m
		s.Profile = m.Alternatives[m.Chosen()]
	}
	if s.Moldable == nil && rapid.Bool().Draw(t, "malleable") {
		m := &Malleable{
			Grace:   rapid.IntRange(0, 5000).Draw(t, "grace"),
			Speedup: rapid.SampledFrom([]string{"", "amdahl:0.5", "1:1,2:1.9,64:33.25"}).Draw(t, "speedup"),
		}
		for _, step := range s.Profile {
			m.Max = append(m.Max, step.Nodes+rapid.IntRange(0, 9).Draw(t, "more"))
		}
		s.Malleable = m
		if m.Sizes = rapid.SampledFrom([]malleable.Sizes{malleable.Any, malleable.Pow2, 3}).Draw(t, "sizes"); s.Settle() != nil {
			s.Malleable = nil // no such size is within the bounds
		}
	}
	s.Frequencies = anyFrequencies(t, s)
	if s.Drive == drivemode.Chain {
		s.Chain = &ChainLink{
			First: rapid.Uint32().Draw(t, "first"),
			Step:  rapid.IntRange(1, len(s.Profile)).Draw(t, "step"),
		}
	}
	return s
}

// anyFrequencies returns frequencies that a request may have, or nil.
func anyFrequencies(t *rapid.T, s Request) []string {
	f := make([]string, len(s.Profile))
	for i := range f {
		f[i] = rapid.SampledFrom([]string{"", "low", "highm1", "2100000"}).Draw(t, "frequency")
	}
	s.Frequencies = f
	if slices.Max(f) == "" || s.CheckFrequencies() != nil {
		return nil
	}
	return f
}

func TestMarkerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRequest(t)
		text, fits := want.Marker()
		if fits != (len(text) <= MaxComment) {
			t.Fatalf("%d bytes fit: %v", len(text), fits)
		}
		if strings.ContainsAny(text, "\n\r\x00") {
			t.Fatalf("a marker of several lines: %q", text)
		}
		got, ok, err := ParseMarker(text)
		if !ok || err != nil {
			t.Fatalf("ParseMarker(%q): %v, %v", text, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}

// TestMarkerInsideText: what sites write before and after a marker, short of a marker of
// their own, changes nothing of it.
func TestMarkerInsideText(t *testing.T) {
	other := rapid.OneOf(rapid.StringMatching(`[^:]*`), rapid.SampledFrom([]string{"", ",stdout=/home/u/slurm-%j.out", "evo:", "evo:v;", "a;b;;", ";;", "{\"user\":\"", "evo:v1;p=1@1m"}))
	rapid.Check(t, func(t *rapid.T) {
		want := anyRequest(t)
		text, _ := want.Marker()
		before, after := other.Draw(t, "before"), other.Draw(t, "after")
		if before == "evo:v1;p=1@1m" {
			before = " " + before // an intact old marker counts by itself
		}
		got, ok, err := ParseMarker(before + text + after)
		if !ok || err != nil {
			t.Fatalf("ParseMarker(%q): %v, %v", before+text+after, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", before+text+after, diff)
		}
	})
}

// TestOldMarker: jobs that wait since before the marker had an end are still known.
func TestOldMarker(t *testing.T) {
	for text, want := range map[string]Request{
		"evo:v1;p=" + profile.String():                           {Profile: profile},
		"evo:v1;p=" + profile.String() + ";x=2;c=a;c=b;;":        {Profile: profile, ExpandLimit: 2, Comment: "a;c=b;;"},
		"evo:v1;p=" + profile.String() + ";d=chain;i=2;f=77;c=é": {Profile: profile, Drive: drivemode.Chain, Chain: &ChainLink{First: 77, Step: 2}, Comment: "é"},
		"evo:v1;script;c=evo:v2;p=1@1m;;":                        {Comment: "evo:v2;p=1@1m;;"},
	} {
		got, ok, err := ParseMarker(text)
		if !ok || err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("ParseMarker(%q) = %+v, %v, %v; want %+v", text, got, ok, err, want)
		}
	}
}

// TestScriptLine checks that a request travels in a script as in a comment, however long it is; the
// first counts.
func TestScriptLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, old := anyRequest(t), anyRequest(t)
		script := "#!/bin/sh\n" + want.ScriptLine() + "#SBATCH -J x\n" + old.ScriptLine() + "#EVO --profile=9@9m\ntrue\n"
		got, ok, err := FromStored([]byte(script))
		if !ok || err != nil || cmp.Diff(want, got) != "" {
			t.Fatalf("%q: %+v, %v, %v", script, got, ok, err)
		}
	})
	for script, want := range map[string]string{
		"#!/bin/sh\ntrue\n#EVO: evo:v2;p=1@1m;;\n":     "",
		"#!/bin/sh\n#EVOLVE\ntrue\n":                   "",
		"#!/bin/sh\n#EVO --drive=merge\ntrue\n":        "",
		"#!/bin/sh\n\n#EVO --profile=2@90s\n":          "2@1m30s",
		"#!/bin/sh\n#EVO: evo:v2;p=1@1m;\ntrue\n":      "damaged",
		"#!/bin/sh\n#EVO --profile=2@90\n#EVO --x=1\n": "line 3",
	} {
		s, ok, err := FromStored([]byte(script))
		got := s.Profile.String()
		if err != nil {
			got = err.Error()
		}
		if ok != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, %v; want %q", script, got, ok, want)
		}
	}
}

func TestScriptMarkerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRequest(t)
		option := "--profile=" + want.Bounds().String()
		if shown := WithFrequencies(want.Profile, want.Frequencies); shown != "" {
			option = "--profile=" + shown
		}
		if m := want.Moldable; m != nil {
			option = "--moldable=" + want.Alternatives() + " --moldable-by=" + m.By.String()
			if len(m.Alternatives) == 1 {
				option = "--moldable=" + want.Alternatives() + "|1@999h"
				if len(m.Minutes) > 0 {
					m.Minutes = append(m.Minutes, nil)
				}
				m.Alternatives = append(m.Alternatives, planner.Profile{{Duration: 999 * 3600, Nodes: 1}})
				want.Profile = m.Alternatives[m.Chosen()]
				if want.Chain != nil {
					want.Chain.Step = 1
				}
			}
		}
		script := "#!/bin/sh\n#EVO " + option + "\ntrue\n"
		text, _ := want.ScriptMarker()
		got, ok, err := ParseMarker(text)
		if !ok || err != nil {
			t.Fatalf("ParseMarker(%q): %v, %v", text, ok, err)
		}
		if got, err = complete(got, script); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}

func FuzzParseMarker(f *testing.F) {
	for _, seed := range []string{
		"", "evo:v2;p=2@10m,5@30m;;,stdout=/home/u/o", "a;evo:v2;script;d=chain;i=2;f=9;;", "evo:v2;p=1@1m;c=a%3Bb;;;;", "evo:vevo:v2;p=1@1m;;", "evo:v2;p=evo:v2;p=1@1m;;",
		"evo:v1;p=2@10m,5@30m", "evo:v1;p=2@10m;x=inf;d=merge;b=1790000000;c=hello %25",
		"evo:v1;script;x=2;d=chain;i=2;f=9;c=;;", "evo:v1;p=1@1m;d=chain;i=1;f=4294967295", "evo:v2;", "evo:v1;p=1@1-0:0:1",
		"evo:v2;p=2-4@10m,8-16@30m;z=pow2;t=30;e=amdahl:0.95;d=merge;;", "evo:v2;p=3-3@1m;e=1:1,2:1.5;;", "evo:v2;script;z=multiple:3;t=9;;", "evo:v2;p=2@10m,5@30m;h=,2100000;d=merge;;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		s, ok, err := ParseMarker(comment)
		if err != nil || !ok {
			if !cmp.Equal(s, Request{}) {
				t.Fatalf("%+v beside ok=%v, %v", s, ok, err)
			}
			return
		}
		text := s.marker(s.Profile == nil) // what was understood can be said again
		again, ok, err := ParseMarker(text)
		if !ok || err != nil {
			t.Fatalf("%q became %q: %v", comment, text, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("%q became %q (-first +second):\n%s", comment, text, diff)
		}
	})
}
