package request

import (
	"errors"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
)

// TestChangedMarker checks that a marker records a change and where the job was then.
func TestChangedMarker(t *testing.T) {
	want := "evo:v2;p=2@10m,5@30m;g=8;u=9f3c;s=3@1260@2;c=x;;"
	s := Request{Profile: profile, MaxNodes: 8, Updated: "9f3c", Reached: &Reached{Step: 3, After: 1260, First: 2}, Comment: "x"}
	if got, ok := s.Marker(); got != want || !ok {
		t.Fatalf("%q, want %q", got, want)
	}
	got, ok, err := ParseMarker("site " + want + " text")
	if err != nil || !ok || !got.Same(s) || *got.Reached != *s.Reached {
		t.Fatalf("read as %+v (%v)", got, err)
	}
	if whole := got.Whole().String(); whole != "2@20m59s,2@1s,2@10m,5@30m" {
		t.Errorf("the whole profile is %s", whole)
	}
	for value, whole := range map[string]string{"4@1260@2@6@1790000000": "2@20m58s,6@1s,6@1s,1@10m", "4@1260@2": "2@20m58s,2@1s,2@1s,1@10m"} {
		got, ok, err := ParseMarker("evo:v2;p=1@10m;u=1;s=" + value + ";;")
		if err != nil || !ok || got.Whole().String() != whole {
			t.Errorf("%s is read as %v (%v), want %s", value, got.Whole(), err, whole)
		}
	}
	for _, bad := range []string{"s=3@1@2@1@7", "s=3@1@2@4", "s=3@1@2@4@-1", "s=3@1@2@0@0", "s=3@1@2@4@7@1", "u=xyz", "u=", "s=0@1@1", "s=1@1", "s=1@-1@1", "s=01@1@1", "s=99999999@1@1", "g=0", "g=x", "u=1;g=2"} {
		if _, ok, err := ParseMarker("evo:v2;p=2@10m;" + bad + ";;"); !ok || err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestRewrite(t *testing.T) {
	to := func(r Request) Request {
		r.Profile, r.Updated = planner.Profile{{Duration: 60, Nodes: 1}}, "a"
		return r
	}
	for from, want := range map[string]string{
		"evo:v2;p=2@10m;d=merge;c=my own;;":            "evo:v2;p=1@1m;d=merge;u=a;c=my own;;",
		"before,evo:v2;p=2@10m;;,after":                "before,evo:v2;p=1@1m;u=a;;,after",
		"evo:v2;broken;; evo:v2;script;x=2;;":          "evo:v2;broken;; evo:v2;p=1@1m;x=2;u=a;;",
		"evo:v1;p=2@10m;c=my own; text":                "evo:v2;p=1@1m;u=a;c=my own%3B text;;",
		"evo:v2;p=2@10m;u=b;s=2@5@1;;evo:v2;p=3@10m;;": "evo:v2;p=1@1m;u=a;s=2@5@1;;evo:v2;p=3@10m;;",
	} {
		if got, err := Rewrite(from, to); got != want || err != nil {
			t.Errorf("%q became %q (%v), want %q", from, got, err, want)
		}
	}
	for _, from := range []string{"", "my own", "evo:v2;p=2@10m"} {
		if got, err := Rewrite(from, to); !errors.Is(err, ErrNoMarker) {
			t.Errorf("%q became %q (%v)", from, got, err)
		}
	}
	if _, err := Rewrite("evo:v2;p=2@10m;;"+strings.Repeat("x", MaxComment), to); err == nil {
		t.Error("a comment that is too long is taken")
	}
}

func TestCheckClaim(t *testing.T) {
	for _, bad := range []Request{{Profile: profile, MaxNodes: 4}, {Profile: profile, MaxNodes: 8, Drive: drivemode.Chain}} {
		if bad.CheckClaim() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	r := Request{Profile: profile, MaxNodes: 9}
	if err := r.CheckClaim(); err != nil || r.Claimed().Peak() != 9 || r.Profile.Peak() != 5 {
		t.Errorf("%v, the claimed peak is %d", err, r.Claimed().Peak())
	}
}
