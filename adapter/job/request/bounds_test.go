package request

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// TestCheckSteps has every way in which a user can name steps bounded, at submission too.
func TestCheckSteps(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("1@1m,", MaxSteps+1), ",")
	const want = "a job may have 2000 at most: join short steps"
	for _, c := range []struct{ option, value string }{
		{"profile", long}, {"profile", "1-2@1m," + long}, {"moldable", long + "|1@1m"},
	} {
		var r Request
		if err := r.Set(c.option, c.value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--%s with %d steps: %v", c.option, MaxSteps+1, err)
		}
		if _, _, err := FromStored([]byte("#!/bin/sh\n#EVO --" + c.option + "=" + c.value + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a script with --%s: %v", c.option, err)
		}
	}
	for _, marker := range []string{"evo:v2;p=" + long + ";;", "evo:v2;p=1@1m;s=2001@1@1;;", "evo:v2;p=1@1m,1@1m;s=2000@1@1;;", "evo:v2;script;s=2001@1@1;;"} {
		if r, _, err := ParseMarker(marker); err == nil {
			t.Errorf("%.60s is taken, with %d steps", marker, len(r.Whole()))
		}
	}
	over, _, err := ParseMarker("evo:v2;script;s=2000@1@1;;")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := over.Join(Request{Profile: planner.Profile{{Nodes: 1, Duration: 60}, {Nodes: 1, Duration: 60}}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("steps of the script beyond those of the marker: %v", err)
	}
	if r, ok, err := ParseMarker("evo:v2;p=1@1m;s=2000@1@1;;"); !ok || err != nil || len(r.Whole()) != MaxSteps {
		t.Errorf("a job that has changed often: %v", err)
	}
}

func TestBeyond(t *testing.T) {
	for marker, want := range map[string]string{
		"evo:v2;p=8@1m;g=8;;":                  "",
		"evo:v2;p=9@1m;;":                      "the profile goes up to 9 nodes, and the cluster has 8",
		"evo:v2;p=1@1m;g=9;;":                  "its claim (--max-nodes) is 9 nodes",
		"evo:v2;p=1-9@1m;;":                    "its bounds go up to 9 nodes",
		"evo:v2;p=1@1m;s=2@1@9@9@1790000012;;": "the steps that are over went up to 9 nodes",
	} {
		r, ok, err := ParseMarker(marker)
		if !ok || err != nil {
			t.Fatal(marker, err)
		}
		if got := r.Beyond(8); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", marker, got, want)
		}
	}
}
