package request

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// TestResizes: which step makes a Slurm job smaller for the first and for the second time.
func TestResizes(t *testing.T) {
	const whole, part = " would have to give back nodes of the ", " would have to give back a part of the nodes of a growth"
	for text, want := range map[string]struct{ first, second string }{
		"5@1m":                          {},
		"2@1m,2@1m,4@1m,4@1m":           {},
		"1@1m,5@1m,1@1m":                {},
		"1@1m,3@1m,5@1m,3@1m,4@1m,1@1m": {},
		"5@1m,3@1m":                     {"step 2, of 3 nodes," + whole + "5 ", ""},
		"5@1m,3@1m,1@1m":                {"step 2, of 3 nodes," + whole + "5 ", "step 3, of 1 nodes"},
		"3@1m,2@1m,3@1m,2@1m":           {"step 2, of 2 nodes," + whole + "3 ", ""}, // the second is a companion's end
		"3@1m,2@1m,3@1m,1@1m":           {"step 2, of 2 nodes," + whole + "3 ", "step 4, of 1 nodes"},
		"2@1m,4@1m,3@1m":                {"step 3, of 3 nodes," + part, ""},
		"1@1m,5@1m,4@1m,3@1m":           {"step 3, of 4 nodes," + part, "step 4, of 3 nodes"},
		"1@1m,5@1m,4@1m,1@1m":           {"step 3, of 4 nodes," + part, ""}, // a companion may be ended after it was resized
		"1@1m,3@1m,5@1m,2@1m":           {"step 4, of 2 nodes," + part, ""},
		"1@1m,5@1m,1@1m,5@1m,4@1m":      {"step 5, of 4 nodes," + part, ""},
		"1@1m,3@1m,6@1m,5@1m,2@1m,1@1m": {"step 4, of 5 nodes," + part, ""},
	} {
		p, err := planner.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ got, want string }{{Resized(p), want.first}, {ResizedTwice(p), want.second}} {
			if !strings.HasPrefix(c.got, c.want) || (c.got == "") != (c.want == "") {
				t.Errorf("%s: %q, want %q", text, c.got, c.want)
			}
		}
	}
}
