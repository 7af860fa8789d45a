package request

import (
	"reflect"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// coupled returns the request with these components, NAME:PROFILE|NAME:PROFILE.
func coupled(t *testing.T, text string) Request {
	t.Helper()
	all, err := parseComponents(text)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Components: all}
	if err := r.SettleComponents(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSumOf(t *testing.T) {
	for text, want := range map[string]struct {
		sum   string
		sizes [][]int
	}{
		"ocean:2@10m,4@10m|atm:4@10m,2@10m": {"6@10m,6@10m", [][]int{{2, 4}, {4, 2}}},
		"ocean:2@10m,4@20m|atm:4@15m":       {"6@10m,8@5m,4@15m", [][]int{{2, 4, 4}, {4, 4, 0}}},
		"a:1@1m,1@1m":                       {"1@1m,1@1m", [][]int{{1, 1}}},
		"a:1@1m|b:2@3m|c:3@2m":              {"6@1m,5@1m,2@1m", [][]int{{1, 0, 0}, {2, 2, 2}, {3, 3, 0}}},
	} {
		r := coupled(t, text)
		if _, sizes := SumOf(r.Components); r.Profile.String() != want.sum || !reflect.DeepEqual(sizes, want.sizes) {
			t.Errorf("%s: %s %v", text, r.Profile, sizes)
		}
	}
}

func TestComponentsInMarker(t *testing.T) {
	r := coupled(t, "ocean:2@10m,4@20m|atm:4@15m")
	text, ok := r.Marker()
	if want := "evo:v2;p=6@10m,8@5m,4@15m;o=ocean:2@10m,4@20m|atm:4@15m;;"; !ok || text != want {
		t.Fatalf("%s, want %s", text, want)
	}
	if back, found, err := ParseMarker(text); !found || err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%+v %v", back, err)
	}
	for _, bad := range []string{
		"p=6@10m;o=ocean:2@10m", "p=2@10m;o=ocean:2@10m|ocean:1@5m", "p=2@10m;o=:2@10m", "p=2@10m;o=ocean", "p=2@10m;o=",
		"p=2@10m;o=ocean:2@10m;g=8", "p=2@10m;o=ocean:2@10m;d=chain", "p=2-4@10m;o=ocean:2@10m", "p=2@10m;o=" + strings.Repeat("x", 33) + ":2@10m",
	} {
		if r, _, err := ParseMarker("evo:v2;" + bad + ";;"); err == nil {
			t.Errorf("%s was read as %+v", bad, r)
		}
	}
}

func TestComponentsInScript(t *testing.T) {
	script := "#!/bin/sh\n#EVO --component=ocean --profile=2@10m,4@20m\n#EVO --component atm --profile 4@15m\n"
	given, err := FromScript([]byte(script))
	if err != nil || given.Profile.String() != "6@10m,8@5m,4@15m" {
		t.Fatalf("%+v %v", given, err)
	}
	joined, err := (Request{}).Join(given)
	if err != nil || !reflect.DeepEqual(joined.Components, given.Components) {
		t.Errorf("joined: %+v %v", joined, err)
	}
	many := "#!/bin/sh\n"
	for i := range MostComponents + 1 {
		many += "#EVO --component=c" + strings.Repeat("x", i) + " --profile=1@1m\n"
	}
	if _, err := FromScript([]byte(many)); err == nil || !strings.Contains(err.Error(), "at most 16 components") {
		t.Error(err)
	}
}

// FuzzComponents: a text of components either is refused, or has the same nodes as their sum at all times.
func FuzzComponents(f *testing.F) {
	f.Add("ocean:2@10m,4@20m|atm:4@15m")
	f.Add("a:1@1m|b:2@3m|c:3@2m")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseComponents(text)
		if err != nil {
			return
		}
		r := Request{Components: all}
		if r.SettleComponents() != nil {
			return
		}
		var parts float64
		for _, c := range all {
			parts += area(c.Profile)
		}
		if nodeSeconds := area(r.Profile); nodeSeconds != parts {
			t.Errorf("%s: %v node-seconds, the components have %v", text, nodeSeconds, parts)
		}
		if again, err := parseComponents(componentsText(all)); err != nil || !reflect.DeepEqual(again, all) {
			t.Errorf("%s: %v %v", text, again, err)
		}
	})
}

func area(p planner.Profile) (sum float64) {
	for _, step := range p {
		sum += float64(step.Nodes) * float64(step.Duration)
	}
	return sum
}
