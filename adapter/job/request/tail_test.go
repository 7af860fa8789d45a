package request

import (
	"strconv"
	"strings"
	"testing"
)

// TestOpenTail checks which profiles with an open tail there are, and why there are no others.
func TestOpenTail(t *testing.T) {
	for text, want := range map[string]string{
		"?1-16@2h":                 "1@2h claim 16",
		"2@10m,5@30m,?1-16@2h":     "2@10m,5@30m,1@2h claim 16",
		"2@10m,5@30m,?5-5@2h":      "2@10m,5@30m,5@2h claim 5",
		"?3-3@60":                  "3@1h claim 3",
		"?0-0@1h":                  "open tail: minimum: node count must be at least 1 at character 2 of",
		"?0-4@1h":                  "open tail: minimum: node count must be at least 1 at character 2 of",
		"?4-2@1h":                  "open tail: the minimum 4 is above the maximum 2 at character 2 of",
		"?4@1h":                    "open tail: -MAX missing at character 3 of",
		"?@1h":                     "open tail: MIN-MAX expected at character 2 of",
		"?1-2":                     "open tail: @DURATION missing at the end of",
		"?1-2@":                    "open tail: duration missing at the end of",
		"?1-2@never":               "open tail: ",
		"?1-99999999999999999@1h":  "open tail: maximum: node count",
		"?":                        "open tail: MIN-MAX expected at the end of",
		"??1-2@1h":                 "open tail: minimum: node count",
		"?1-2@1h,2@1h":             "only the last step may be open at character 1 of",
		"?1-2@1h,?1-2@1h":          "only the last step may be open at character 1 of",
		"2@1h,?1-2@1h,":            "only the last step may be open at character 6 of",
		"2@1h?1-2@1h":              "an open tail is a step of its own",
		"2?@1h":                    "an open tail is a step of its own",
		",?1-2@1h":                 "empty profile",
		"2@1h,,?1-2@1h":            "step 2 is empty",
		"x@1h,?1-2@1h":             "at character 1 of",
		"2@10m,5@30m,?1-4@2h":      "a step before has 5 nodes: give ?1-5 or more at character 13 of",
		"2-4@10m,?1-6@2h":          "a malleable job has no open tail",
		"1@2147483647s,?1-2@9999s": "and a job may last",
	} {
		var r Request
		err := r.Set("profile", text)
		if err == nil {
			err = r.Settle()
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = r.Profile.String() + " claim " + strconv.Itoa(r.MaxNodes)
			back, ok, err := ParseMarker(r.marker(false))
			if !ok || err != nil || !back.Same(r) {
				t.Errorf("%s: its marker %s is read as %+v, %v", text, r.marker(false), back, err)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTailAndClaim checks what becomes of a claim beside an open tail, and of a tail that another profile replaces.
func TestTailAndClaim(t *testing.T) {
	set := func(options ...string) (Request, error) {
		var r Request
		for i := 0; i < len(options); i += 2 {
			if err := r.Set(options[i], options[i+1]); err != nil {
				return r, err
			}
		}
		return r, r.Settle()
	}
	if r, err := set("profile", "?1-4@1h", "max-nodes", "4"); err != nil || r.MaxNodes != 4 {
		t.Errorf("the same claim twice: %+v, %v", r, err)
	}
	if _, err := set("max-nodes", "9", "profile", "?1-4@1h"); err == nil || !strings.Contains(err.Error(), "the open tail of the profile claims 4 nodes") {
		t.Errorf("two claims: %v", err)
	}
	if r, err := set("profile", "?1-4@1h", "profile", "2@1h"); err != nil || r.MaxNodes != 0 {
		t.Errorf("a tail that was replaced: %+v, %v", r, err)
	}
	if r, err := set("profile", "?1-4@1h", "drive", "chain"); err != nil || r.CheckClaim() == nil {
		t.Errorf("a chain: %+v, %v", r, err)
	}
	if _, ok, err := FromStored([]byte("#!/bin/sh\n#EVO --profile=2@1h,?1-4@1h\n")); !ok || err != nil {
		t.Errorf("in a script: %v, %v", ok, err)
	}
}
