package slurmctl_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	{"(a)", "n1 n4 n5 n7"},
	{"(a|b)&c", "n5 n6 n7"},
	{"c&(a|b)", "n5 n6 n7"},
	{"c|(a&b)", "n3 n4 n5 n6 n7"},
	{"(a&b)|c", "n3 n4 n5 n6 n7"},
	{"(a|b)&(b|c)", "n2 n4 n5 n6 n7"},
	{"a,(b|c),", "n4 n5 n7"},
	{"[a|b]", "n1 n2 n4 n5 n6 n7"},
	{"[a]", "n1 n4 n5 n7"},
	{"[a|b]&c", "n5 n6 n7"},
	{"c&[a|b]", "n5 n6 n7"},
	{"[a|b]&(a|c)", "n1 n4 n5 n6 n7"},
	{"(a|c),[a|b]", "n1 n4 n5 n6 n7"},
	{"[a|b|c]", "n1 n2 n3 n4 n5 n6 n7"},
	{"[b|c]&a|c", "n3 n4 n5 n6 n7"},
}

// together lists constraints, and pairs of nodes that slurmctld 22.05 gives to one job, or does not.
var together = []struct {
	text, pair string
	want       bool
}{
	{"[a|b]", "n1,n5", true},
	{"[a|b]", "n1,n2", false},
	{"[a|b]", "n1,n4", true},
	{"[a|b]", "n2,n4", true},
	{"[a|b]", "n1,n7", true},
	{"[a|b]&c", "n5,n6", false},
	{"[a|b]&c", "n5,n7", true},
	{"c&[a|b]", "n6,n7", true},
	{"a|b", "n1,n2", true},
	{"(a|b)&c", "n5,n6", true},
}

// except returns an option that leaves a job only these nodes. With --nodelist, --test-only, or --hold, Slurm 22.05 does
// not look at brackets.
func except(nodes string) string {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(featured)), func(n string) bool { return slices.Contains(strings.Split(nodes, ","), n) })
	return "--exclude=" + strings.Join(others, ",")
}

// goTogether reports whether nodes may be in one allocation.
func goTogether(c slurmctl.Constraint, nodes []string) bool {
	all := func(has func(features []string) bool) bool {
		return !slices.ContainsFunc(nodes, func(n string) bool { return !has(strings.Split(featured[n], ",")) })
	}
	if !all(c.Met) {
		return false
	}
	either := c.Alternatives()
	return either == nil || slices.ContainsFunc(either, func(f string) bool {
		return all(func(features []string) bool { return slices.Contains(features, f) })
	})
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
	for _, test := range together {
		if c, err := slurmctl.ParseConstraint(test.text); err != nil || goTogether(c, strings.Split(test.pair, ",")) != test.want {
			t.Errorf("%q, %s together: not %v (%v)", test.text, test.pair, test.want, err)
		}
	}
	for text, why := range map[string]string{
		"a*2": "numbers of nodes", "[rack1*2&rack2*4]": "numbers of nodes", "[a|b*2]": "numbers of nodes",
		"[(a&b)|c]": "in brackets", "[a&b]": "in brackets", "[a|(b)]": "in brackets",
		"[a|b]|c": "joined to the other features by &", "c|[a|b]": "joined to the other features by &",
		"[a|b]&[b|c]": "only features", "[a]&[b|c]": "only features", "((a))": "only features", "(a": "only features", "a)": "only features", "[a": "only features", "a]": "only features",
		"()": "only features", "[]": "only features", "[a|]": "only features", "(a|)": "only features", "(a)b": "only features", "a(b)": "only features",
		"[a]b": "only features", "a[b]": "only features", "([a|b])": "only features",
		"a||b": "only features", "a,,b": "only features", "|a": "only features", "&": "only features", ",": "only features", "a b": "only features", "a|&": "only features",
		"[" + strings.Repeat("a|", slurmctl.MostAlternatives) + "a]": "alternatives",
	} {
		c, err := slurmctl.ParseConstraint(text)
		if err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "--constraint="+text[:min(len(text), 60)]) {
			t.Errorf("%q is read as %v, %v", text, c, err)
		}
	}
}

// TestLooseConstraint checks which nodes a job may have at all if its constraint cannot be planned, and how many of each kind it must have.
func TestLooseConstraint(t *testing.T) {
	const all = "n1 n2 n3 n4 n5 n6 n7 n8"
	for text, want := range map[string]string{
		"": all, "a&b": "n4 n7", "[a|b]": "n1 n2 n4 n5 n6 n7", // as ParseConstraint says
		"[a*2&b*4]":                           "n1 n2 n4 n5 n6 n7 [{a 2} {b 4}]",
		" [a*2,b*4] ":                         "n1 n2 n4 n5 n6 n7 [{a 2} {b 4}]",
		"[a*1]":                               "n1 n4 n5 n7 [{a 1}]",
		"[a*2&b]":                             "n1 n2 n4 n5 n6 n7",
		"[a*2|b*4]":                           "n1 n2 n4 n5 n6 n7",
		"[(a&b)*2&c*1]":                       "n1 n2 n3 n4 n5 n6 n7",
		"[a*0&b*4]":                           "n1 n2 n4 n5 n6 n7",
		"[a*99999999999999999999]":            "n1 n4 n5 n7",
		"[a|b]&[b|c]":                         "n1 n2 n3 n4 n5 n6 n7",
		"[a&b]":                               "n1 n2 n4 n5 n6 n7",
		"a*2":                                 all,
		"a*2&b":                               all,
		"[":                                   all,
		"[" + strings.Repeat("a&", 99) + "b]": all,
	} {
		c, counts := slurmctl.LooseConstraint(text)
		got := ""
		for _, name := range slices.Sorted(maps.Keys(featured)) {
			if c.Met(strings.Split(featured[name], ",")) {
				got += name + " "
			}
		}
		if counts != nil {
			got += fmt.Sprint(counts)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestParsePrefer(t *testing.T) {
	if c, err := slurmctl.ParsePrefer("a|b"); err != nil || !c.Met([]string{"b"}) || c.Met([]string{"c"}) {
		t.Errorf("%v, %v", c, err)
	}
	for text, why := range map[string]string{"[a|b]": "--prefer=[a|b]: alternatives cannot be preferred: give --constraint=[a|b], or prefer a|b", "a*2": "--prefer=a*2: numbers of nodes"} {
		if _, err := slurmctl.ParsePrefer(text); err == nil || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// idle waits until every node is idle. Beside busy nodes, Slurm 22.05 does not try every alternative in brackets, and may
// refuse a job that it takes a second later.
func idle(t *testing.T, cluster *slurmtest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for ; ; time.Sleep(50 * time.Millisecond) {
		out, err := cluster.Run(ctx, slurmtest.Root, "sinfo", "--noheader", "--states=idle", "--format=%D")
		if err != nil {
			t.Fatalf("wait until every node is idle: %v", err)
		}
		if strings.TrimSpace(out) == strconv.Itoa(len(featured)) {
			return
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
			_, err := cluster.Run(t.Context(), user, "sbatch", "--nodes=1", "--constraint="+test.text, except(name), "--wrap=true")
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
	for _, test := range together {
		idle(t, cluster)
		_, err := cluster.Run(t.Context(), user, "sbatch", "--nodes=2", "--constraint="+test.text, except(test.pair), "--wrap=true")
		if (err == nil) != test.want || err != nil && !strings.Contains(err.Error(), "Requested node configuration is not available") {
			t.Errorf("%q, %s together in Slurm: not %v (%v)", test.text, test.pair, test.want, err)
		}
	}
}
