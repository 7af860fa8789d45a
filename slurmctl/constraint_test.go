package slurmctl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// featured maps nodes to features: one node for each set of three features.
var featured = map[string]string{"n1": "a", "n2": "b", "n3": "c", "n4": "a,b", "n5": "a,c", "n6": "b,c", "n7": "a,b,c", "n8": ""}

// constraints lists constraints and the nodes that meet them, as slurmctld 22.05 decides
// (TestConstraintsOfSlurm).
var constraints = []struct{ text, nodes string }{
	{"a", "n1 n4 n5 n7"},
	{"a|b", "n1 n2 n4 n5 n6 n7"},
	{"a|b|c", "n1 n2 n3 n4 n5 n6 n7"},
	{"a&b", "n4 n7"},
	{"a,b", "n4 n7"},
	{"a&b,c", "n7"},
	{"a|b,c", "n5 n6 n7"},
	{"a|b&c", "n5 n6 n7"},
	{"a&b|c", "n3 n4 n5 n6 n7"},
	{"a,b|c", "n3 n4 n5 n6 n7"},
	{"c,a|b", "n2 n4 n5 n6 n7"},
	{"a|b,c|a", "n1 n4 n5 n6 n7"},
	{"a|", "n1 n4 n5 n7"},
	{"a,", "n1 n4 n5 n7"},
}

func TestParseConstraint(t *testing.T) {
	for _, test := range constraints {
		c, err := slurmctl.ParseConstraint(test.text)
		if err != nil {
			t.Error(err)
			continue
		}
		var met []string
		for i := 1; i <= 8; i++ {
			name := fmt.Sprint("n", i)
			if c.Met(strings.Split(featured[name], ",")) {
				met = append(met, name)
			}
		}
		if got := strings.Join(met, " "); got != test.nodes {
			t.Errorf("%q is met by %s, want %s", test.text, got, test.nodes)
		}
	}
	if c, err := slurmctl.ParseConstraint(""); err != nil || !c.Met(nil) {
		t.Errorf("nothing asked for: %v %v", c, err)
	}
	for _, text := range []string{"[a|b]", "a*2", "[rack1*2&rack2*4]", "(a|b)&c", "a||b", "a,,b", "|a", "&", ",", "a b", "a|&"} {
		if c, err := slurmctl.ParseConstraint(text); err == nil || !strings.Contains(err.Error(), "--constraint="+text+": ") {
			t.Errorf("%q is read as %v, %v", text, c, err)
		}
	}
}

// TestConstraintsOfSlurm checks the same table on a real slurmctld.
func TestConstraintsOfSlurm(t *testing.T) {
	nodes := map[string]string{}
	for name, features := range featured {
		if features != "" {
			nodes[name] = "Feature=" + features
		}
	}
	cluster := slurmtest.Start(t, slurmtest.Options{NodeExtra: nodes})
	user := cluster.Users()[0]
	for _, test := range constraints {
		var met []string
		for _, name := range slices.Sorted(maps.Keys(featured)) {
			_, err := cluster.Run(t.Context(), user, "sbatch", "--test-only", "--constraint="+test.text, "--nodelist="+name, "--wrap=true")
			if err == nil {
				met = append(met, name)
			} else if !strings.Contains(err.Error(), "Requested node configuration is not available") {
				t.Fatal(err)
			}
		}
		if got := strings.Join(met, " "); got != test.nodes {
			t.Errorf("%q is met by %s in Slurm, want %s", test.text, got, test.nodes)
		}
	}
}
