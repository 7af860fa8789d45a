package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestEligibleTellsRequestsApart(t *testing.T) {
	s := &state.Snapshot{Index: map[string]int{"a": 0, "b": 1, "c": 2},
		Nodes: []slurmctl.Node{{Name: "a", CPUs: 4, Memory: 100, Features: []string{"x"}, Layout: slurmctl.Layout{Sockets: 1, Cores: 4, Threads: 1}},
			{Name: "b", CPUs: 8, Memory: 200, Features: []string{"x", "y"}, GRES: "gpu:v100:2", Layout: slurmctl.Layout{Sockets: 2, Cores: 4, Threads: 1}},
			{Name: "c", CPUs: 8, Memory: 100, GRES: "gpu:a100:4(S:0-1),nvme:1", Layout: slurmctl.Layout{Sockets: 1, Cores: 4, Threads: 2}}},
		Partitions: map[string]slurmctl.Partition{"all": {Up: true, Nodes: []string{"a", "b", "c"}}, "two": {Up: true, Nodes: []string{"a", "b"}}}}
	for range 2 { // found, then remembered
		for _, want := range []struct {
			job   slurmctl.Job
			nodes []int
			gres  []slurmctl.GRES
		}{
			{slurmctl.Job{Partition: "all"}, []int{0, 1, 2}, nil},
			{slurmctl.Job{Partition: "two"}, []int{0, 1}, nil},
			{slurmctl.Job{Partition: "all", Features: "x"}, []int{0, 1}, nil},
			{slurmctl.Job{Partition: "all", Features: "x|z,y"}, []int{1}, nil},
			{slurmctl.Job{Partition: "all", MinCPUs: 8}, []int{1, 2}, nil},
			{slurmctl.Job{Partition: "all", MinMemory: 150}, []int{1}, nil},
			{slurmctl.Job{Partition: "all", Layout: slurmctl.Layout{Sockets: 2}}, []int{1}, nil},
			{slurmctl.Job{Partition: "all", Layout: slurmctl.Layout{Cores: 4}}, []int{0, 1, 2}, nil},
			{slurmctl.Job{Partition: "all", Layout: slurmctl.Layout{Cores: 5}}, nil, nil},
			{slurmctl.Job{Partition: "all", Layout: slurmctl.Layout{Threads: 2}}, []int{2}, nil},
			{slurmctl.Job{Partition: "all", ExcNodes: []string{"b"}}, []int{0, 2}, nil},
			{slurmctl.Job{Partition: "all", ReqNodes: []string{"b"}}, []int{1}, nil},
			{slurmctl.Job{Partition: "none"}, nil, nil},
			{slurmctl.Job{Partition: "all"}, []int{1, 2}, []slurmctl.GRES{{Name: "gpu", Count: 2}}},
			{slurmctl.Job{Partition: "all"}, []int{2}, []slurmctl.GRES{{Name: "gpu", Type: "a100", Count: 2}}},
			{slurmctl.Job{Partition: "all"}, nil, []slurmctl.GRES{{Name: "gpu", Count: 5}}},
		} {
			if got, err := Eligible(s, &want.job, want.gres); err != nil || !slices.Equal(got, want.nodes) {
				t.Errorf("%+v: %v, %v; want %v", want.job, got, err, want.nodes)
			}
		}
		if _, err := Eligible(s, &slurmctl.Job{Partition: "all", Heterogenous: true}, nil); err == nil {
			t.Error("a heterogeneous job is planned")
		}
		if _, err := Eligible(s, &slurmctl.Job{Partition: "all", Features: "[x*1&y*2]"}, nil); err == nil {
			t.Error("numbers of nodes by feature are planned")
		}
	}
}

// TestAlternatives checks which nodes a job may have together if its constraint has brackets.
func TestAlternatives(t *testing.T) {
	for name, c := range map[string]struct {
		constraint, partition, profile string
		claim                          int
		want                           string
	}{
		"no brackets":                       {"rack1|rack2", "main", "4@1m", 0, "n[1-7]"},
		"either":                            {"[rack1|rack2]", "main", "2@1m", 0, "n[1-4] or n[5-7]"},
		"in the order of the user":          {"[rack2|rack1]", "main", "2@1m", 0, "n[5-7] or n[1-4]"},
		"with another feature":              {"[rack1|rack2]&fast", "main", "2@1m", 0, "n[1-2] or n[5-6]"},
		"one is too small":                  {"[rack1|rack2]", "main", "1@1m,4@1m", 0, "n[1-4]"},
		"both are too small":                {"[rack1|rack2]", "main", "5@1m", 0, "n[1-4]"}, // the planner says so
		"one that no node has":              {"[rack1|rack3]", "main", "2@1m", 0, "n[1-4]"},
		"one within another":                {"[fast|all]", "main", "2@1m", 0, "n[1-8]"},
		"the same twice":                    {"[rack1|rack1]", "main", "2@1m", 0, "n[1-4]"},
		"no node has any":                   {"[rack3|rack4]", "main", "1@1m", 0, ""},
		"two partitions":                    {"[rack1|rack2]", "left,right", "2@1m", 0, "n[1-4] or n[3-4] or n[5-7]"},
		"two partitions, one suits it":      {"[rack2|rack3]", "left,right", "2@1m", 0, "n[5-7]"},
		"two partitions, none suits it":     {"[rack1|rack2]", "left,right", "5@1m", 0, "no partition suits it: partition left has 4 nodes for it; partition right has 3 nodes for it"},
		"with a claim":                      {"[rack2|rack1]", "main", "2@1m", 3, "n[1-4]"},
		"with a claim and several queues":   {"", "left,right", "2@1m", 3, "n[3-8]"},
		"in brackets, and cannot be read":   {"[rack1*2&rack2]", "main", "2@1m", 0, "--constraint=[rack1*2&rack2]: " + "numbers of nodes by feature cannot be planned, since a profile has several numbers of nodes: ask for a|b, or for all nodes of one kind with [a|b]"},
		"in a partition that is not there":  {"[rack1|rack2]", "gone", "2@1m", 0, ""},
		"in partitions that are both down":  {"[rack1|rack2]", "down,gone", "2@1m", 0, "no partition suits it: partition down is not up; partition gone is not known"},
		"in the one partition that is down": {"[rack1|rack2]", "down", "2@1m", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := racks(t)
			j := b.Evolving(1, 1, c.profile, time.Hour)
			j.Partition, j.Record.Partition, j.Record.Features, j.Claim = c.partition, c.partition, c.constraint, c.claim
			got := places(b)(PlacesOf(b.Core, b.Seen, j))
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestPreferred checks that places with the features that a job prefers come first, and that a job whose preferred nodes or
// partition are away has the other places, or a reason.
func TestPreferred(t *testing.T) {
	for name, c := range map[string]struct {
		prefer, constraint, partition, profile string
		planned                                string
		want                                   string
		present                                int
	}{
		"nothing":                           {"", "", "main", "2@1m", "n[5-6]", "n[1-8]", -1},
		"enough have it":                    {"rack2", "", "main", "1@1m,3@1m", "n[5-7]", "n[5-7] or n[1-8]", 0},
		"planned on others":                 {"rack2", "", "main", "2@1m", "n[1-2]", "n[5-7] or n[1-8]", -1},
		"too few have it":                   {"rack2", "", "main", "1@1m,4@1m", "", "n[1-8]", -1},
		"all have it":                       {"all", "", "main", "2@1m", "", "n[1-8]", -1},
		"none has it":                       {"rack9", "", "main", "2@1m", "", "n[1-8]", -1},
		"several features":                  {"rack1|rack2&fast", "", "main", "2@1m", "", "n[1-2,5-6] or n[1-8]", -1},
		"with a constraint":                 {"rack2", "fast", "main", "2@1m", "", "n[5-6] or n[1-2,5-6]", -1},
		"with alternatives":                 {"fast", "[rack1|rack2]", "main", "2@1m", "n[5-6]", "n[1-2] or n[5-6] or n[1-4] or n[5-7]", 1},
		"of two partitions":                 {"rack2", "", "left,right", "2@1m", "", "n[5-7] or n[1-4] or n[3-8]", -1},
		"its partition is down":             {"rack2", "", "down", "2@1m", "n[5-6]", "", -1},
		"both partitions are down":          {"rack2", "", "down,gone", "2@1m", "n[5-6]", "no partition suits it: partition down is not up; partition gone is not known", -1},
		"one of two partitions is down":     {"rack2", "", "down,right", "2@1m", "n[1-2]", "n[5-7] or n[3-8]", -1},
		"its partition is gone":             {"rack2", "", "gone", "2@1m", "n[5-6]", "", -1},
		"what no sidecar should have taken": {"[a|b]", "", "main", "2@1m", "", "n[1-8]", -1},
	} {
		t.Run(name, func(t *testing.T) {
			b := racks(t)
			j := b.Evolving(1, 1, c.profile, time.Hour)
			j.Partition, j.Record.Partition, j.Record.Features, j.Prefer = c.partition, c.partition, c.constraint, c.prefer
			if c.planned != "" {
				b.Plans(j, "0-60 "+c.planned)
			}
			all, choices, err := PlacesOf(b.Core, b.Seen, j)
			cand := Candidate{Job: j, Nodes: all, Choices: choices}
			got := places(b)(all, choices, err)
			if at := cand.Present(b.Seen); got != c.want || at != c.present {
				t.Errorf("%s, planned in %d; want %s, %d", got, at, c.want, c.present)
			}
			cand.Chosen(b.Seen)
			if why := Nowhere(b.Core, b.Seen, j); c.want == "" && why != map[string]string{"down": "partition down is not up", "gone": "partition gone is not known"}[c.partition] {
				t.Errorf("why there is none: %q", why)
			}
			if _, err := EligibleBeside(b.Core, b.Seen, j); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEligibleBeside checks that a job stays with the alternative of its nodes.
func TestEligibleBeside(t *testing.T) {
	for name, c := range map[string]struct {
		constraint string
		has        []string
		planned    []string
		want       string
	}{
		"no brackets":                       {"rack1|rack2", []string{"n1"}, nil, "n[1-7]"},
		"the first":                         {"[rack1|rack2]", []string{"n1", "n3"}, nil, "n[1-4]"},
		"the second":                        {"[rack1|rack2]", []string{"n5"}, nil, "n[5-7]"},
		"a node has both: the larger one":   {"[rack2|shared]", []string{"n7"}, nil, "n[5-7]"},
		"its nodes have no feature now":     {"[rack2|rack1]", []string{"n8"}, nil, "n[1-4]"},
		"most of its nodes":                 {"[rack1|rack2]", []string{"n1", "n5", "n6"}, nil, "n[5-7]"},
		"nodes before the plan":             {"[rack1|rack2]", []string{"n5"}, []string{"n1", "n2"}, "n[5-7]"},
		"no nodes between links of a chain": {"[rack1|rack2]", nil, []string{"n5", "n6"}, "n[5-7]"},
		"neither nodes nor a plan":          {"[rack2|rack1]", nil, nil, "n[1-4]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := racks(t)
			j := b.Evolving(1, 1, "1@1m,3@1m", time.Hour)
			j.Record.Features = c.constraint
			if c.has != nil {
				b.Runs(j, slurmctl.CompressNodes(c.has))
			}
			if c.planned != nil {
				b.Plans(j, "0-60 "+slurmctl.CompressNodes(c.planned))
			}
			nodes, err := EligibleBeside(b.Core, b.Seen, j)
			if got := names(b, nodes); err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func names(b *statetest.Bench, nodes []int) string {
	var all []string
	for _, n := range nodes {
		all = append(all, b.Seen.Nodes[n].Name)
	}
	return slurmctl.CompressNodes(all)
}

// racks returns eight nodes: two racks of four and three, and one node apart.
func racks(t *testing.T) *statetest.Bench {
	b := statetest.New(t, 8)
	for i := range b.Seen.Nodes {
		features := []string{"all"}
		switch {
		case i < 4:
			features = append(features, "rack1")
		case i < 7:
			features = append(features, "rack2")
		}
		if i%4 < 2 {
			features = append(features, "fast")
		}
		if i == 6 {
			features = append(features, "shared")
		}
		b.Seen.Nodes[i].Features = features
	}
	b.Partition("left", 1, 4)
	b.Partition("right", 3, 8)
	b.Partition("down", 1, 8)
	p := b.Seen.Partitions["down"]
	p.Up = false
	b.Seen.Partitions["down"] = p
	return b
}

// places writes what PlacesOf returns: the nodes of each choice, or the error.
func places(b *statetest.Bench) func(all []int, choices [][]int, err error) string {
	return func(all []int, choices [][]int, err error) string {
		if err != nil {
			return err.Error()
		}
		if choices == nil {
			choices = [][]int{all}
		}
		var words []string
		for _, nodes := range choices {
			words = append(words, names(b, nodes))
		}
		return strings.Join(words, " or ")
	}
}
