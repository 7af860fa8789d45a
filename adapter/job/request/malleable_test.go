package request

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

func TestMalleableMarker(t *testing.T) {
	p := planner.Profile{{Duration: 600, Nodes: 2}, {Duration: 1800, Nodes: 8}}
	for want, r := range map[string]Request{
		"evo:v2;p=2-4@10m,8-16@30m;;":                                             {Profile: p, Malleable: &Malleable{Max: []int{4, 16}}},
		"evo:v2;p=2-4@10m,8@30m;z=pow2;t=30;e=amdahl:0.95;d=merge;;":              {Profile: p, Malleable: &Malleable{Max: []int{4, 8}, Sizes: malleable.Pow2, Grace: 30, Speedup: "amdahl:0.95"}, Drive: drivemode.Merge},
		"evo:v2;p=2-2000@10m,8@30m;z=multiple:2;e=1:1,2:1.8,8:5;c=my own;;":       {Profile: p, Malleable: &Malleable{Max: []int{2000, 8}, Sizes: 2, Speedup: "1:1,2:1.8,8:5"}, Comment: "my own"},
		"evo:v2;p=2@10m,8-9@30m;t=5;x=2;g=12;u=9f3c;s=3@1260@2;;":                 {Profile: p, Malleable: &Malleable{Max: []int{2, 9}, Grace: 5}, ExpandLimit: 2, MaxNodes: 12, Updated: "9f3c", Reached: &Reached{Step: 3, After: 1260, First: 2}},
		"evo:v2;p=2-3@10m,8@30m;d=companion;n=n[1-9];;":                           {Profile: p, Malleable: &Malleable{Max: []int{3, 8}}, Drive: drivemode.Companion, Nodes: "n[1-9]"},
		"evo:v2;p=2-4@10m,8@30m;e=" + points(40).String() + ";d=auto;b=1;c=%3B;;": {},
	} {
		if r.Profile != nil {
			if got, fits := r.Marker(); got != want || !fits {
				t.Errorf("Marker() = %q, %v, want %q", got, fits, want)
			}
		}
		got, ok, err := ParseMarker("site," + want + ",more")
		if !ok || err != nil || r.Profile != nil && cmp.Diff(r, got) != "" {
			t.Errorf("ParseMarker(%q): %v, %v\n%s", want, ok, err, cmp.Diff(r, got))
		}
		if again, _ := got.Marker(); again != want {
			t.Errorf("%q became %q", want, again)
		}
	}
	// sizes that the application cannot use are none of its bounds
	got, _, err := ParseMarker("evo:v2;p=3-9@10m,5-31@1h;z=pow2;;")
	if err != nil || got.Bounds().String() != "4-8@10m,8-16@1h" || got.Profile.String() != "4@10m,8@1h" {
		t.Errorf("powers of two: %v, %v", got.Bounds(), err)
	}
	// a single size is no bound
	if got, _, err = ParseMarker("evo:v2;p=4-4@10m;;"); err != nil || got.Malleable != nil {
		t.Errorf("4-4: %+v, %v", got, err)
	}
	if got, _, err = ParseMarker("evo:v2;p=3-6@10m;z=multiple:4;t=9;;"); err != nil || got.Malleable != nil || got.Profile[0].Nodes != 4 {
		t.Errorf("one multiple of 4: %+v, %v", got, err)
	}
	for comment, reason := range map[string]string{
		"evo:v2;p=5-4@10m;;":                               "the minimum 5 is above the maximum 4",
		"evo:v2;p=2-4@10m,5-7@10m;z=pow2;;":                "step 2: there is no power of two within 5-7",
		"evo:v2;p=5-7@10m;z=multiple:4;;":                  "there is no multiple of 4 within 5-7",
		"evo:v2;p=2-4@10m;z=any;;":                         "without",
		"evo:v2;p=2-4@10m;z=odd;;":                         "neither any nor pow2",
		"evo:v2;p=2-4@10m;t=0;;":                           "no number",
		"evo:v2;p=2-4@10m;e=;;":                            "expected",
		"evo:v2;p=2-4@10m;e=file:x;;":                      "node count",
		"evo:v2;p=2-4@10m;e=2:1,1:2;;":                     "1 nodes come after 2",
		"evo:v2;p=2-4@10m;e=" + points(90).String() + ";":  "no end",
		"evo:v2;p=2-4@10m;e=" + points(90).String() + ";;": "at most 512",
		"evo:v2;p=2@10m;z=pow2;;":                          "are of malleable jobs",
		"evo:v2;p=2-4@10m|8@5m;m=waste;;":                  "alternative 1: step 1: node count",
		"evo:v2;p=2@10m|8@5m;m=waste;t=5;;":                "cannot be moldable",
		"evo:v2;z=pow2;p=2-4@10m;;":                        "out of order",
		"evo:v1;p=2-99999999999@10m":                       "too large",
	} {
		if _, ok, err := ParseMarker(comment); !ok || err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseMarker(%q) = %v, %v; want %q", comment, ok, err, reason)
		}
	}
}

// points returns a table of so many speed-ups.
func points(n int) malleable.Table {
	var all malleable.Table
	for i := range n {
		all = append(all, malleable.Point{Nodes: i + 1, Speedup: float64(i) + 1.5})
	}
	return all
}

func TestMalleableDirectives(t *testing.T) {
	for lines, want := range map[string]string{
		"--profile=2-4@10m,5-16@30m --size=pow2 --grace=30s": "p=2-4@10m,8-16@30m;z=pow2;t=30;;",
		"--grace=1 --profile=2-4@1h --speedup=amdahl:.50":    "p=2-4@1h;t=60;e=amdahl:0.5;;",
		"--profile=2-4@1h --speedup=times.txt":               "p=2-4@1h;;", // read when it is submitted
		"--profile=2-4@1h --profile=3@1h":                    "p=3@1h;;",
		"--profile=3@1-12":                                   "p=3@36h;;",
		"--profile=3@1h --size=pow2":                         "--size, --grace and --speedup are of malleable jobs",
		"--malleable=4-2":                                    "the minimum 4 is above the maximum 2",
		"--malleable=2-4 --profile=2@10m":                    "--malleable and --profile exclude each other",
		"--malleable=2-4 --moldable=2@10m,3@5m":              "--malleable and --moldable exclude each other",
		"--malleable=5-7 --size=pow2":                        "there is no power of two within 5-7",
		"--malleable=2-4 --size=odd":                         "neither any nor pow2 nor multiple:K",
		"--malleable=2-4 --grace=soon":                       "not a duration",
		"--malleable=2-4 --speedup=amdahl:2":                 "from 0 to 1",
	} {
		r, asked, err := FromStored([]byte("#!/bin/sh\n#EVO " + lines + "\ntrue\n"))
		got, _ := r.Marker()
		if err != nil {
			got = err.Error()
		}
		if !asked || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q; want %q", lines, asked, got, want)
		}
	}
	r, _, err := FromStored([]byte("#EVO --malleable=2-9 --size=pow2\n"))
	if err != nil || !r.Endless() || !strings.Contains(r.CheckMalleable().Error(), "the duration is not known") {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Lasts(3600)
	if text, _ := r.Marker(); text != "evo:v2;p=2-8@1h;z=pow2;;" || r.CheckMalleable() != nil {
		t.Errorf("%s, %v", text, r.CheckMalleable())
	}
	r.Drive = drivemode.Chain
	if err := r.CheckMalleable(); err == nil || !strings.Contains(err.Error(), "a chain cannot be malleable") {
		t.Errorf("a chain: %v", err)
	}
	r.Drive, r.MaxNodes = "", 7
	if err := r.CheckMalleable(); err == nil || !strings.Contains(err.Error(), "--max-nodes=7: a malleable job makes no claim") {
		t.Errorf("a claim: %v", err)
	}
}

// TestMalleableInScript checks that a profile that does not fit into the marker is read from the
// script, and what the script cannot hold is in the marker.
func TestMalleableInScript(t *testing.T) {
	given, _, err := FromStored([]byte("#EVO --profile=2-4@10m,3-5@1h --size=pow2 --speedup=file\n"))
	if err != nil {
		t.Fatal(err)
	}
	marker, ok, err := ParseMarker("evo:v2;script;t=40;e=1:1,4:2.5;d=merge;;")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	whole, err := marker.Join(given)
	if text, _ := whole.Marker(); err != nil || text != "evo:v2;p=2-4@10m,4@1h;z=pow2;t=40;e=1:1,4:2.5;d=merge;;" {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := marker.Join(Request{Profile: profile}); err == nil {
		t.Error("the grace of a job that is not malleable")
	}
}

func TestReachedMalleable(t *testing.T) {
	r, _, err := ParseMarker("evo:v2;p=2-4@10m,3-5@1h;u=a;s=3@700@7;;")
	if err != nil || !slices.Equal(r.WholeMax(), []int{7, 7, 4, 5}) || len(r.Whole()) != 4 {
		t.Errorf("%v, %v, %v", r.WholeMax(), r.Whole(), err)
	}
}

func TestSetSpeedup(t *testing.T) {
	var m Malleable
	if err := m.setOption("speedup", "a.txt"); err != nil || m.SpeedupFile() != "a.txt" || m.Declared() != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if err := m.SetSpeedup(points(3)); err != nil || m.SpeedupFile() != "" || m.Declared().At(3) != 3.5 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := m.SetSpeedup(points(99)); err == nil || !strings.Contains(err.Error(), "leave some out") {
		t.Errorf("99 points: %v", err)
	}
	var bad *planner.ParseError
	if err := (&Request{}).Set("profile", "2-4@10m,9-5@x"); !errors.As(err, &bad) || bad.Offset != 8 {
		t.Errorf("%v", err)
	}
}
