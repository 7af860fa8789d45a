package request

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

func TestFrequencies(t *testing.T) {
	for text, want := range map[string]struct{ profile, frequencies, shown string }{
		"2@10m:low,5@30m:2.1GHz":            {"2@10m,5@30m", "low,2100000", "2@10m:low,5@30m:2.1GHz"},
		"2@10m,5@30m:HighM1":                {"2@10m,5@30m", ",highm1", "2@10m,5@30m:highm1"},
		"2@10:30:2100MHz,1@1-12:medium":     {"2@10m30s,1@36h", "2100000,medium", "2@10m30s:2.1GHz,1@36h:medium"},
		"1@1:00:00:800001khz":               {"1@1h", "800001", "1@1h:0.800001GHz"},
		"1@5:high":                          {"1@5m", "high", "1@5m:high"},
		"1@5m:1MHz,1@5m:100GHz,2@1m":        {"1@5m,1@5m,2@1m", "1000,100000000,", "1@5m:0.001GHz,1@5m:100GHz,2@1m"},
		"2@10:2100000":                      {"2@583h30m", "", ""}, // MM:SS, as ever
		"2@10m,5@30m":                       {"2@10m,5@30m", "", ""},
		strings.Repeat("1@1m,", 3) + "1@1m": {"1@1m,1@1m,1@1m,1@1m", "", ""},
	} {
		var r Request
		if err := r.Set("profile", text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.Join(r.Frequencies, ","); r.Profile.String() != want.profile || got != want.frequencies || (r.Frequencies == nil) != (got == "") {
			t.Errorf("%s: %s with %q", text, r.Profile, r.Frequencies)
		}
		shown := WithFrequencies(r.Profile, r.Frequencies)
		if shown != want.shown {
			t.Errorf("%s is shown as %s", text, shown)
		}
		readBack(t, r, cmp.Or(shown, text))
	}
}

// readBack checks that a request is the same from its profile as shown, its marker, and its line in a script.
func readBack(t *testing.T, r Request, shown string) {
	t.Helper()
	again := Request{}
	if err := again.Set("profile", shown); err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%s: read back as %+v, %v", shown, again, err)
	}
	marker, _ := r.Marker()
	if back, found, err := ParseMarker(marker); !found || err != nil || !reflect.DeepEqual(back, r) || !back.Same(r) {
		t.Errorf("%s: %+v, %v", marker, back, err)
	}
	if back, found, err := FromStored([]byte("#!/bin/sh\n" + r.ScriptLine())); !found || err != nil || !back.Same(r) {
		t.Errorf("%s: %+v, %v", r.ScriptLine(), back, err)
	}
}

// The last profile counts, with its frequencies or without.
func TestLastProfilesFrequencies(t *testing.T) {
	r, err := FromScript([]byte("#EVO --profile=2@1m:low\n#EVO --profile=2@1m,3@1m\n"))
	if err != nil || r.Frequencies != nil || len(r.Profile) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	marked := Request{Drive: "chain"} // the profile was too long for the marker
	given, err := FromScript([]byte("#EVO --profile=2@1m:low,3@1m\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := marked.Join(given); err != nil || !reflect.DeepEqual(r.Frequencies, []string{"low", ""}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBadFrequencies(t *testing.T) {
	const none, hint = "is no CPU frequency", "a number with its unit, as 2.1GHz"
	for text, want := range map[string]struct {
		reason string
		at     int // of the text; -1: the error has no place
	}{
		"2@10m:fast":                         {none, 6},
		"2@10m,5@30m:--gres=x":               {none, 12},
		"2@10m:2100000":                      {hint, 6},
		"2@10m:":                             {none, 6},
		"2@10m:2.1":                          {none, 6},
		"2@10m:-2.1GHz":                      {none, 6},
		"2@10m:+2GHz":                        {none, 6},
		"2@10m:2e9kHz":                       {none, 6},
		"2@10m:0x10GHz":                      {none, 6},
		"2@10m:.5GHz":                        {none, 6},
		"2@10m:2.1 GHz":                      {none, 6},
		"2@10m:2.1GHz:low":                   {"not a duration", 2},
		"2@10m:low:":                         {none, 10},
		"2@10m:NaNGHz":                       {none, 6},
		"2@10m:0GHz":                         {"not in whole kHz from", 6},
		"2@10m:999kHz":                       {"not in whole kHz from", 6},
		"2@10m:1.5kHz":                       {"not in whole kHz from", 6},
		"2@10m:101GHz":                       {"not in whole kHz from", 6},
		"2@10m:999999999GHz":                 {"not in whole kHz from", 6},
		"2@10m:9999999999GHz":                {none, 6},
		"2@10m:1.0000001GHz":                 {none, 6},
		"2@10m:low;reboot":                   {none, 6},
		"2@10m:low\nmail":                    {none, 6},
		"2@10m:$(id)":                        {none, 6},
		"2@10m:OnDemand":                     {none, 6},
		"2@10m:low-high":                     {none, 6},
		"1@5m:low,x@5m":                      {"step 2", 9},
		"1@5m:low,2@5m:low,2@zz":             {"step 3", 20},
		"1@5m:low,2@5m:low,":                 {"step 3 is empty", 18},
		"1@5m:low,2":                         {"step 2: @DURATION missing", 10},
		"1@5m:low,2@0m:low":                  {"at least 1 second", 11},
		"2:low@5m":                           {"node count", 0},
		"1-2@5m:low":                         {"a fixed number of nodes", -1},
		"1@5m:low,?1-4@10m":                  {"a fixed number of nodes", -1},
		"?1-4@10m:low":                       {"a fixed number of nodes", -1},
		"2@10m:" + strings.Repeat("low", 99): {none, 6},
	} {
		var r Request
		err := r.Set("profile", text)
		if err == nil || !strings.Contains(err.Error(), want.reason) {
			t.Errorf("%q: %v, want %q", text, err, want.reason)
			continue
		}
		bad, told := errors.AsType[*planner.ParseError](err)
		if told != (want.at >= 0) || told && (bad.Offset != want.at || bad.Input != text) {
			t.Errorf("%q: %+v, want the place %d", text, bad, want.at)
		}
	}
	for _, bad := range []string{
		"p=2@10m:low", "p=2@10m;h=", "p=2@10m;h=,", "p=2@10m;h=low,low", "p=2@10m,3@1m;h=low", "p=2@10m;h=Low", "p=2@10m;h=2.1GHz", "p=2@10m;h=02100000",
		"p=2@10m;h=999", "p=2@10m;h=100000001", "p=2@10m;h=-2100000", "p=2@10m;h=low;g=8", "p=2-4@10m;h=low", "p=2@10m|4@5m;h=low", "p=2@10m;o=ocean:2@10m;h=low",
		"p=2@10m;d=merge;h=low", "p=2@10m;h=low;u=1;s=2@1@3@3@3", "script;h=low", "p=2@10m;h=" + strings.Repeat(",", 30000) + "low",
	} {
		if r, _, err := ParseMarker("evo:v2;" + bad + ";;"); err == nil {
			t.Errorf("%s was read as %+v", bad, r)
		}
	}
}

// Other ways to ask for a size have no frequencies, and say so.
func TestNoFrequencies(t *testing.T) {
	for name, options := range map[string][][2]string{
		"alternatives":            {{"moldable", "4@2h,8@70m:low"}},
		"of alternatives":         {{"moldable", "2@10m:low,4@5m | 4@15m"}},
		"a component":             {{"component", "ocean"}, {"profile", "2@10m:low"}},
		"bounds":                  {{"malleable", "2-4:low"}},
		"a claim":                 {{"profile", "2@10m:low"}, {"max-nodes", "4"}},
		"a malleable job's grace": {{"profile", "2@10m:low"}, {"grace", "10s"}},
	} {
		var r Request
		var err error
		for _, o := range options {
			err = errors.Join(err, r.Set(o[0], o[1]))
		}
		if err = errors.Join(err, r.CheckFrequencies()); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestOwnFrequency(t *testing.T) {
	for _, c := range []struct {
		asked, set string
		own        bool
	}{
		{"", "", false}, {"", "low", false}, {"low", "low", false}, {"Low", "low", false}, {"2100000", "2100000", false},
		{"low", "", true}, {"high", "low", true}, {"OnDemand", "low", true},
	} {
		values := map[string]string{VarSrunFrequency: c.asked, VarFrequency: c.set}
		if own := OwnFrequency(func(name string) string { return values[name] }); own != c.own {
			t.Errorf("%+v: %v", c, own)
		}
	}
}
