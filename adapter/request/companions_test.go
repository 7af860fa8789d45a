package request

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

func TestResizedTwice(t *testing.T) {
	for text, want := range map[string]string{
		"5@1m":                          "",
		"1@1m,5@1m,1@1m":                "",
		"5@1m,3@1m":                     "",
		"5@1m,3@1m,1@1m":                "step 3, of 1 nodes",
		"3@1m,2@1m,3@1m,2@1m":           "", // the second is a companion's end
		"3@1m,2@1m,3@1m,1@1m":           "step 4, of 1 nodes",
		"1@1m,5@1m,4@1m,3@1m":           "step 4, of 3 nodes",
		"1@1m,5@1m,4@1m,1@1m":           "", // a companion may be ended after it was resized
		"1@1m,3@1m,6@1m,5@1m,2@1m,1@1m": "",
	} {
		p, err := planner.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := ResizedTwice(p); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
