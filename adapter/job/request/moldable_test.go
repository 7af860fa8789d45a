package request

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
)

func TestParseAlternatives(t *testing.T) {
	one := func(nodes int, seconds int64) planner.Profile {
		return planner.Profile{{Duration: seconds, Nodes: nodes}}
	}
	for text, want := range map[string][]planner.Profile{
		"4@2h,8@70m,16@40m":             {one(4, 7200), one(8, 4200), one(16, 2400)},
		"4@2h":                          {one(4, 7200)},
		" 4@2h | 8@70m ":                {one(4, 7200), one(8, 4200)},
		"2@10m,5@30m|8@20m":             {{{Duration: 600, Nodes: 2}, {Duration: 1800, Nodes: 5}}, one(8, 1200)},
		"2@10m,5@30m | 4@15m,8@1:00:00": {{{Duration: 600, Nodes: 2}, {Duration: 1800, Nodes: 5}}, {{Duration: 900, Nodes: 4}, {Duration: 3600, Nodes: 8}}},
	} {
		got, err := ParseAlternatives(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]struct {
		offset int
		reason string
	}{
		"":                             {0, "alternative 1 is empty"},
		"4@2h,,8@1h":                   {5, "alternative 2 is empty"},
		"4@2h |":                       {6, "alternative 2 is empty"},
		"4@2h,x@1h":                    {5, "alternative 2: step 1: node count"},
		"4@2h, 8@1y":                   {8, "alternative 2: step 1: \"1y\" is not a duration"},
		"2@1m,3@1m | 4@1m,0@1m":        {17, "alternative 2: step 2: node count must be at least 1"},
		"4@2h,8@1h,4@120m":             {10, "alternative 3 is the same as alternative 1"},
		"4@2h/8@1h":                    {2, "alternative 1: step 1"},
		strings.Repeat("4@2h1s,", 101): {7, "alternative 2 is the same as alternative 1"},
	} {
		_, err := ParseAlternatives(text)
		var bad *planner.ParseError
		if !errors.As(err, &bad) || bad.Offset != want.offset || !strings.Contains(bad.Reason, want.reason) || bad.Input != text {
			t.Errorf("%q: %v, want %q at %d", text, err, want.reason, want.offset)
		}
	}
}

func TestMoldableMarker(t *testing.T) {
	all, err := ParseAlternatives("16@40m,8@70m,4@2h")
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Drive: drivemode.Auto, Moldable: &Moldable{Alternatives: all, By: planner.ByNodeHours, Minutes: [][]int64{nil, {71}, {121}}}}
	r.Profile = all[2]
	const want = "evo:v2;p=16@40m|8@1h10m|4@2h;m=node-hours;l=0|71|121;d=auto;;"
	text, fits := r.Marker()
	if text != want || !fits {
		t.Errorf("Marker() = %q, %v", text, fits)
	}
	got, ok, err := ParseMarker("site," + text + ",more")
	if diff := cmp.Diff(r, got); !ok || err != nil || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", ok, err, diff)
	}
	chosen, ok := Choose("site,"+text+",more", 2)
	if want := "site,evo:v2;p=16@40m|8@1h10m|4@2h;m=node-hours;l=0|71|121;k=2;d=auto;;,more"; chosen != want || !ok {
		t.Errorf("Choose: %q, %v, want %q", chosen, ok, want)
	}
	if got, _, err = ParseMarker(chosen); err != nil || !cmp.Equal(got.Profile, all[1]) || got.Moldable.Choice != 2 {
		t.Errorf("after the choice: %+v, %v", got, err)
	}
	for _, comment := range []string{"", "words", "evo:v2;p=4@2h;;", "evo:v2;p=4@2h|8@1h", "evo:v1;p=4@2h"} {
		if text, ok := Choose(comment, 1); ok {
			t.Errorf("%q has nothing to choose, and became %q", comment, text)
		}
	}
	for comment, reason := range map[string]string{
		"evo:v2;p=4@2h|8@1h;m=best;;":               "none of completion, waste, node-hours",
		"evo:v2;p=4@2h|8@1h;m=waste;l=5;;":          "1 time limits for 2 alternatives",
		"evo:v2;p=4@2h|8@1h;m=waste;l=5|x;;":        "no number",
		"evo:v2;p=4@2h|8@1h;m=waste;l=0|0;;":        "no alternative is feasible",
		"evo:v2;p=4@2h|8@1h;m=waste;l=0|9;k=1;;":    "alternative 1 is left out",
		"evo:v2;p=4@2h|8@1h;m=waste;l=9|9;k=3;;":    "alternative 3 of 2",
		"evo:v2;p=4@2h|8@1h;m=waste;l=9|9,9;;":      "2 time limits for the 1 steps of alternative 2",
		"evo:v2;p=4@2h|4@2h;m=waste;;":              "the same as",
		"evo:v2;m=waste;p=4@2h|8@1h;;":              "out of order",
		"evo:v2;p=4@2h|8@1h;m=waste;l=5|2147483648": "no end",
	} {
		if _, ok, err := ParseMarker(comment); !ok || err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseMarker(%q) = %v, %v; want %q", comment, ok, err, reason)
		}
	}
}

// TestMoldableInScript checks that the alternatives are read from the script if they do not fit
// into the marker; the marker says which are left out.
func TestMoldableInScript(t *testing.T) {
	const script = "#!/bin/sh\n#EVO --moldable=\"2@10m,5@30m | 9@10m\" --moldable-by=waste\ntrue\n"
	marker := Request{Moldable: &Moldable{By: planner.ByWaste, Minutes: [][]int64{{41}, nil}}}
	text, _ := marker.ScriptMarker()
	got, ok, err := ParseMarker(text)
	if !ok || err != nil {
		t.Fatal(text, ok, err)
	}
	given, asked, err := FromStored([]byte(script))
	if !asked || err != nil {
		t.Fatal(asked, err)
	}
	whole, err := got.Join(given)
	if err != nil || whole.Profile.String() != "2@10m,5@30m" || whole.Moldable.By != planner.ByWaste || !whole.Moldable.LeftOut(1) {
		t.Errorf("%+v, %v", whole, err)
	}
	if _, err := (Request{}).Join(given); err == nil {
		t.Error("a marker of a job that is not moldable, a script of one that is")
	}
	for script, want := range map[string]string{
		"#EVO --moldable=4@2h,8@1h --profile=2@1m\n":  "line 1: --profile and --moldable exclude each other",
		"#EVO --moldable-by=soon\n":                   "line 1: \"soon\" is none of",
		"#!/bin/sh\n#EVO --moldable=4@2h,8\n":         "line 2: alternative 2",
		"#EVO --profile=2@1m\n#EVO --moldable=4@2h\n": "line 2: --profile and",
	} {
		if _, err := FromScript([]byte(script)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
}
