package place

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func three() []Offer {
	return []Offer{
		{Cluster: "a", Start: 100, End: 400, Need: 8, Free: 10, Nodes: 32, Transfer: 60},
		{Cluster: "b", Start: 0, End: 500, Need: 8, Free: 30, Nodes: 32, Transfer: 90},
		{Cluster: "c", Start: 200, End: 450, Need: 8, Free: 4, Nodes: 32},
	}
}

func TestChoose(t *testing.T) {
	edit := func(change func(o []Offer)) []Offer { o := three(); change(o); return o }
	for name, test := range map[string]struct {
		policy Policy
		offers []Offer
		want   []int
		why    string
	}{
		"completes first":                 {Earliest, three(), []int{0, 2, 1}, "a completes the job first, 50s before c"},
		"same end: starts first":          {Earliest, edit(func(o []Offer) { o[2].End, o[2].Start = 400, 50 }), []int{2, 0, 1}, "c completes the job first, at the same time as a"},
		"all the same: as given":          {Earliest, edit(func(o []Offer) { o[1].Start, o[1].End = 100, 400; o[2].Start, o[2].End = 100, 400 }), []int{0, 1, 2}, "a completes the job first, at the same time as b"},
		"most idle nodes":                 {WorstFit, three(), []int{1, 0, 2}, "b has 30 idle nodes, a has 10"},
		"as many idle: completes first":   {WorstFit, edit(func(o []Offer) { o[0].Free = 30 }), []int{0, 1, 2}, "a has 30 idle nodes, b has 30"},
		"room before idle nodes":          {WorstFit, edit(func(o []Offer) { o[1].Need = 31 }), []int{0, 2, 1}, "a has 10 idle nodes, c has 4"},
		"room nowhere":                    {WorstFit, edit(func(o []Offer) { o[0].Free, o[1].Free = 7, 3 }), []int{0, 2, 1}, "no cluster has room now; a completes the job first, 50s before c"},
		"files first, with room":          {CloseToFiles, three(), []int{0, 1, 2}, "a has the input files after 1m0s, and 10 idle nodes"},
		"files there":                     {CloseToFiles, edit(func(o []Offer) { o[2].Free = 8 }), []int{2, 0, 1}, "c has all input files, and 8 idle nodes"},
		"files as far: most idle nodes":   {CloseToFiles, edit(func(o []Offer) { o[1].Transfer = 60 }), []int{1, 0, 2}, "b has the input files after 1m0s, and 30 idle nodes"},
		"files, but room nowhere":         {CloseToFiles, edit(func(o []Offer) { o[0].Free, o[1].Free = 7, 3 }), []int{0, 2, 1}, "no cluster has room now; a completes the job first, 50s before c"},
		"one component is worst fit":      {ClusterMin, three(), []int{1, 0, 2}, "b has 30 idle nodes, a has 10"},
		"so it is in the flexible form":   {FlexibleClusterMin, three(), []int{1, 0, 2}, "b has 30 idle nodes, a has 10"},
		"a single offer":                  {WorstFit, three()[2:], []int{0}, "c is the only cluster that offers to run the job"},
		"times at the end of all seconds": {Earliest, edit(func(o []Offer) { o[1].End, o[2].End = math.MaxInt64, math.MaxInt64; o[0].End = 100 }), []int{0, 1, 2}, "a completes the job first, 2562047h47m16s before b"},
	} {
		got, why, err := Choose(test.policy, test.offers)
		if err != nil || !slices.Equal(got, test.want) || why != test.why {
			t.Errorf("%s: %v, %q, %v; want %v, %q", name, got, why, err, test.want, test.why)
		}
	}
}

func TestChooseRefuses(t *testing.T) {
	for want, change := range map[string]func(o []Offer) []Offer{
		"no cluster offers to run the job":                        func([]Offer) []Offer { return nil },
		"an offer names no cluster":                               func(o []Offer) []Offer { o[1].Cluster = ""; return o },
		`two offers are from cluster "a"`:                         func(o []Offer) []Offer { o[2].Cluster = "a"; return o },
		`cluster "a" offers to run the job from second -1 to 400`: func(o []Offer) []Offer { o[0].Start = -1; return o },
		`cluster "a" offers to run the job from second 100 to 99`: func(o []Offer) []Offer { o[0].End = 99; return o },
		`cluster "b" says that 33 of 32 nodes are idle`:           func(o []Offer) []Offer { o[1].Free = 33; return o },
		`cluster "b" says that -1 of 32 nodes are idle`:           func(o []Offer) []Offer { o[1].Free = -1; return o },
		`cluster "c" offers to run a job of 0 nodes on 32`:        func(o []Offer) []Offer { o[2].Need = 0; return o },
		`cluster "c" offers to run a job of 33 nodes on 32`:       func(o []Offer) []Offer { o[2].Need = 33; return o },
		`cluster "c" says that a transfer takes -5 s`:             func(o []Offer) []Offer { o[2].Transfer = -5; return o },
	} {
		if _, _, err := Choose(Earliest, change(three())); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, err := Choose("best-fit", three()); err == nil || !strings.HasPrefix(err.Error(), `no placement policy "best-fit"; choose one of earliest, worst-fit, `) {
		t.Error(err)
	}
}

func TestParsePolicy(t *testing.T) {
	if len(Names()) != 5 || Names()[0] != string(Earliest) {
		t.Errorf("names: %v", Names())
	}
	for _, name := range Names() {
		if p, err := ParsePolicy(name); err != nil || string(p) != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	for _, name := range []string{"", "Earliest", "earliest ", "min"} {
		if p, err := ParsePolicy(name); err == nil {
			t.Errorf("%q: %v", name, p)
		}
	}
}

func TestSpread(t *testing.T) {
	for name, test := range map[string]struct {
		policy     Policy
		components []int
		want       []Part
		why        string
	}{
		"all on the emptiest":          {ClusterMin, []int{8, 16}, []Part{{Offer: 1, Nodes: 24, Components: []int{1, 0}}}, "24 nodes fit on one cluster"},
		"whole components":             {ClusterMin, []int{8, 4, 26}, []Part{{Offer: 1, Nodes: 30, Components: []int{2, 1}}, {Offer: 0, Nodes: 8, Components: []int{0}}}, "38 nodes fit on 2 clusters"},
		"room, but not for whole ones": {ClusterMin, []int{14, 14, 14}, nil, "no room for 42 nodes on 3 clusters"},
		"cut to what is idle":          {FlexibleClusterMin, []int{14, 14, 14}, []Part{{Offer: 1, Nodes: 30}, {Offer: 0, Nodes: 10}, {Offer: 2, Nodes: 2}}, "42 nodes fit on 3 clusters"},
		"not cut without need":         {FlexibleClusterMin, []int{15, 15}, []Part{{Offer: 1, Nodes: 30}}, "30 nodes fit on one cluster"},
		"all idle nodes":               {FlexibleClusterMin, []int{44}, []Part{{Offer: 1, Nodes: 30}, {Offer: 0, Nodes: 10}, {Offer: 2, Nodes: 4}}, "44 nodes fit on 3 clusters"},
		"too large":                    {FlexibleClusterMin, []int{45}, nil, "no room for 45 nodes on 3 clusters"},
	} {
		got, why, err := Spread(test.policy, test.components, three())
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" || why != test.why {
			t.Errorf("%s: %q, %v\n%s", name, why, err, diff)
		}
	}
}

func TestSpreadRefuses(t *testing.T) {
	for want, test := range map[string]struct {
		policy     Policy
		components []int
	}{
		`placement policy "worst-fit" does not split a job`: {WorstFit, []int{1}},
		"a job without components":                          {ClusterMin, nil},
		"component 1 has 0 nodes":                           {ClusterMin, []int{1, 0}},
		"component 1 has 9223372036854775807 nodes":         {FlexibleClusterMin, []int{1, math.MaxInt}},
	} {
		if _, _, err := Spread(test.policy, test.components, three()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, err := Spread(ClusterMin, []int{1}, nil); err == nil {
		t.Error("no offer")
	}
}

// draw draws offers, often with equal values.
func draw(t *rapid.T) (all []Offer) {
	for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
		o := Offer{Cluster: string(rune('a' + i)), Nodes: rapid.IntRange(1, 9).Draw(t, "nodes"), Start: rapid.Int64Range(0, 3).Draw(t, "start")}
		o.End = o.Start + rapid.Int64Range(0, 3).Draw(t, "takes")
		o.Need, o.Free = rapid.IntRange(1, o.Nodes).Draw(t, "need"), rapid.IntRange(0, o.Nodes).Draw(t, "free")
		o.Transfer = rapid.Int64Range(0, 3).Draw(t, "transfer")
		all = append(all, o)
	}
	return all
}

// better reports whether an offer is better by what the policy is about.
func better(p Policy, a, b Offer) bool {
	switch {
	case p == Earliest:
		return a.End < b.End
	case !a.hasRoom():
		return false
	case p == CloseToFiles && b.hasRoom():
		return a.Transfer < b.Transfer
	}
	return !b.hasRoom() || a.Free > b.Free
}

// TestChooseKeeps checks that an order holds each offer once, that no other cluster is better than
// the first by what the policy is about, and that a worse offer never moves up.
func TestChooseKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers, policy := draw(t), rapid.SampledFrom(policies).Draw(t, "policy")
		order, why, err := Choose(policy, offers)
		if err != nil || why == "" {
			t.Fatal(why, err)
		}
		if once := slices.Sorted(slices.Values(order)); len(slices.Compact(once)) != len(offers) || once[0] != 0 || once[len(once)-1] != len(offers)-1 {
			t.Fatal(order)
		}
		best := offers[order[0]]
		for _, o := range offers {
			if better(policy, o, best) {
				t.Fatalf("%s: %+v is better than %+v", policy, o, best)
			}
		}
		i := rapid.IntRange(0, len(offers)-1).Draw(t, "worse")
		before := slices.Index(order, i)
		offers[i].End, offers[i].Start, offers[i].Free, offers[i].Transfer = offers[i].End+1, offers[i].Start+1, max(offers[i].Free-1, 0), offers[i].Transfer+1
		if order, _, err = Choose(policy, offers); err != nil || slices.Index(order, i) < before {
			t.Fatalf("a worse offer moved from %d: %v, %v", before, order, err)
		}
	})
}

// TestSpreadKeeps checks that no cluster gets more than is idle, each component has one place, and
// the flexible form finds the fewest clusters, and a place whenever there is room.
func TestSpreadKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers, policy := draw(t), rapid.SampledFrom([]Policy{ClusterMin, FlexibleClusterMin}).Draw(t, "policy")
		components := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "components")
		parts, _, err := Spread(policy, components, offers)
		if err != nil {
			t.Fatal(err)
		}
		total, _ := sum(components)
		least := fewest(offers, total)
		switch {
		case least == 0 && parts != nil, policy == FlexibleClusterMin && len(parts) != least, len(parts) > 0 && len(parts) < least:
			t.Fatalf("%+v of %d nodes on %+v: %d clusters would do", parts, total, offers, least)
		case parts != nil:
			checkParts(t, policy, components, offers, parts)
		}
		for i := range offers {
			offers[i].Need = min(total, offers[i].Nodes)
		}
		if order, _, _ := Choose(policy, offers); len(parts) == 1 && parts[0].Offer != order[0] {
			t.Fatalf("a job that fits on one cluster goes to %d; without components, to %d", parts[0].Offer, order[0])
		}
	})
}

// fewest returns how many clusters have that many idle nodes together, or 0 if all have fewer.
func fewest(offers []Offer, nodes int) int {
	idle := slices.SortedFunc(slices.Values(offers), func(a, b Offer) int { return b.Free - a.Free })
	for i, o := range idle {
		if nodes -= o.Free; nodes <= 0 {
			return i + 1
		}
	}
	return 0
}

func checkParts(t *rapid.T, policy Policy, components []int, offers []Offer, parts []Part) {
	placed, nodes, used := []int{}, 0, map[int]bool{}
	for _, p := range parts {
		here := 0
		for _, c := range p.Components {
			here += components[c]
		}
		if p.Nodes < 1 || p.Nodes > offers[p.Offer].Free || used[p.Offer] || policy == ClusterMin && here != p.Nodes {
			t.Fatalf("%+v on %+v", p, offers[p.Offer])
		}
		placed, nodes, used[p.Offer] = append(placed, p.Components...), nodes+p.Nodes, true
	}
	slices.Sort(placed)
	if total, _ := sum(components); nodes != total {
		t.Fatalf("%+v of %v", parts, components)
	}
	if policy == ClusterMin && (len(placed) != len(components) || len(slices.Compact(placed)) != len(components)) {
		t.Fatalf("%+v of %v", parts, components)
	}
}
