package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func allPlacements() (all []place.Policy) {
	for _, name := range place.Names() {
		all = append(all, place.Policy(name))
	}
	return all
}

// TestPlacement checks that equal seeds give equal output, whatever the workers, and that three
// findings named in docs/experiments.md hold with any seed.
func TestPlacement(t *testing.T) {
	play := func(runs int, seed uint64, workloads []string, workers int) PlacementResult {
		r, err := DefaultPlacement.Run(t.Context(), runs, seed, workloads, allPlacements(), workers, nil)
		must.OK(t, err)
		return r
	}
	got := play(2, 1, PlacementWorkloads, 1)
	if diff := cmp.Diff(got, play(2, 1, PlacementWorkloads, 4)); diff != "" {
		t.Error("the same again:", diff)
	}
	if len(got.Rows) != len(PlacementWorkloads)*9 || len(got.Findings) != len(placementClaims) {
		t.Fatalf("%d rows, %d findings", len(got.Rows), len(got.Findings))
	}
	for _, row := range got.Rows {
		if row.Policy == string(place.Earliest) != (row.Against == nil) {
			t.Errorf("%s, %s against earliest: %v", row.Workload, row.Policy, row.Against)
		}
		if split := *row.Columns["split"].Mean; split > 0 != (place.Policy(row.Policy).Splits() && row.Workload != "cigri") {
			t.Errorf("%s, %s: %v %% of the jobs are split", row.Workload, row.Policy, split)
		}
	}
	first := ""
	for _, seed := range []uint64{1, 100} {
		r := play(6, seed, []string{"files", "components"}, 2)
		if len(r.Findings) != 3 || fmt.Sprint(r.Findings) == first {
			t.Errorf("seed %d: %v, before %s", seed, r.Findings, first)
		}
		first = fmt.Sprint(r.Findings)
		for _, f := range r.Findings {
			if f.Verdict != Holds {
				t.Errorf("seed %d: %s %s: %s", seed, f.Says, f.Verdict, f.Figures)
			}
		}
	}
}

// TestPlacementKeepsTo checks for every policy that jobs do not share nodes, start after their files
// have come, go to several clusters only with cluster minimisation, and run as long as the model says.
func TestPlacementKeepsTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPlacement
		p.Jobs = rapid.IntRange(1, 40).Draw(t, "jobs")
		p.Load, p.Background = rapid.IntRange(1, 60).Draw(t, "load"), rapid.IntRange(0, 35).Draw(t, "background")
		p.Limit, p.Poll = rapid.IntRange(1, 5).Draw(t, "limit"), rapid.IntRange(1, 100).Draw(t, "poll")
		p.Replicas, p.Network = rapid.IntRange(1, 5).Draw(t, "replicas"), rapid.SampledFrom([]string{"lightpaths", "internet"}).Draw(t, "network")
		p.Communication, p.Ratio = rapid.IntRange(0, 50).Draw(t, "communication"), rapid.IntRange(1, 20).Draw(t, "ratio")
		way := rapid.SampledFrom(placementWays(allPlacements())).Draw(t, "way")
		workload, seed := rapid.SampledFrom(PlacementWorkloads).Draw(t, "workload"), rapid.Uint64().Draw(t, "seed")
		must.OK(t, p.Validate([]string{workload}))
		g := newPlacementGrid(p, way, p.draw(workload, seed), seed)
		for g.left > 0 {
			before := g.now
			must.OK(t, g.event())
			if g.now < before {
				t.Fatalf("from second %d to %d", before, g.now)
			}
			checkPlacementNodes(t, g)
		}
		own := 0
		for _, j := range g.ended {
			if g.own[j] {
				own++
			}
			checkPlacementJob(t, g, j)
		}
		if own != p.Jobs || len(g.queue) > 0 {
			t.Fatalf("%d of %d jobs have ended, %d are in the queue", own, p.Jobs, len(g.queue))
		}
	})
}

func checkPlacementNodes(t *rapid.T, g *placementGrid) {
	used := make([]int, len(das3))
	for _, j := range g.active {
		for _, part := range j.parts {
			if j.start <= g.now && j.end > g.now {
				used[part.cluster] += part.nodes
			}
		}
	}
	for c, n := range used {
		if n > das3[c] || g.plans[c].Max(g.now, g.now+1_000_000) > das3[c] {
			t.Fatalf("second %d: %d of %d nodes of %s are in use", g.now, n, das3[c], das3Names[c])
		}
	}
}

func checkPlacementJob(t *rapid.T, g *placementGrid, j *placementJob) {
	nodes, missing := 0, 0
	for _, part := range j.parts {
		nodes += part.nodes
		if g.transfer(j, part.cluster) > 0 {
			missing++
		}
	}
	switch {
	case nodes != j.nodes, j.ready < j.submit, j.start < j.ready, j.end-j.start != int64(math.Ceil(float64(j.takes)*j.extension)):
		t.Fatalf("%+v", *j)
	case len(j.staged) != missing, missing > 0 && j.ready < j.submit+slices.Max(j.staged):
		t.Fatalf("%d transfers to clusters without the file, ready at %d: %+v", missing, j.ready, *j)
	case len(j.parts) > 1 != (j.extension > 1) && g.Ratio > 1 && j.communication > 0, len(j.parts) > 1 && (!g.policy.Splits() || !g.own[j]):
		t.Fatalf("on %d clusters: %+v", len(j.parts), *j)
	case g.queueing() && g.own[j] && len(j.parts) == 1 && j.start != j.ready:
		t.Fatalf("placed from KOALA's queue where it waits: %+v", *j)
	}
}

// TestPlacementDecisions checks by hand where single jobs go.
func TestPlacementDecisions(t *testing.T) {
	const vu, uva, leiden = 0, 1, 4
	inLeiden := &placementFile{gigabytes: 10, on: []bool{4: true}}
	for name, test := range map[string]struct {
		policy place.Policy
		busy   []int // nodes in use, by cluster, until second 1000
		job    placementJob
		want   []placementPart
		start  int64
		takes  int64
	}{
		"the first of equal clusters":   {place.Earliest, []int{0, 0, 0, 0, 0}, placementJob{components: []int{8}}, []placementPart{{vu, 8}}, 0, 100},
		"the only cluster without wait": {place.Earliest, []int{80, 40, 65, 45, 4}, placementJob{components: []int{8}}, []placementPart{{leiden, 8}}, 0, 100},
		"the most idle nodes":           {place.WorstFit, []int{60, 0, 40, 10, 0}, placementJob{components: []int{8}}, []placementPart{{uva, 8}}, 0, 100},
		"close to the file":             {place.CloseToFiles, []int{0, 0, 0, 0, 20}, placementJob{components: []int{8}, file: inLeiden}, []placementPart{{leiden, 8}}, 0, 100},
		"close, but no room there":      {place.CloseToFiles, []int{50, 0, 0, 0, 25}, placementJob{components: []int{8}, file: inLeiden}, []placementPart{{3, 8}}, 8, 100},
		"fewest clusters":               {place.ClusterMin, []int{45, 11, 68, 46, 32}, placementJob{components: []int{20, 20}, communication: .2}, []placementPart{{vu, 40}}, 0, 100},
		"whole components":              {place.ClusterMin, []int{50, 11, 68, 46, 32}, placementJob{components: []int{20, 20}, communication: .2}, []placementPart{{vu, 20}, {uva, 20}}, 0, 150}, // half of the messages, 5 times as long more
		"as large as what is idle":      {place.FlexibleClusterMin, []int{55, 31, 68, 46, 32}, placementJob{components: []int{20, 20}, communication: .2}, []placementPart{{vu, 30}, {uva, 10}}, 0, 138},
		"room nowhere":                  {place.FlexibleClusterMin, []int{80, 41, 68, 46, 32}, placementJob{components: []int{20, 20}, communication: .2}, []placementPart{{vu, 40}}, 1000, 100},
	} {
		p := DefaultPlacement
		g := newPlacementGrid(p, placementWay{test.policy, inCluster}, placementJobs{}, 1)
		for c, n := range test.busy {
			g.plans[c].Add(0, 1000, n)
		}
		j := &test.job
		j.takes = 100
		for _, n := range j.components {
			j.nodes += n
		}
		parts, err := g.choose(j)
		must.OK(t, err)
		g.commit(j, parts)
		if !slices.Equal(j.parts, test.want) || j.start != test.start || j.end-j.start != test.takes {
			t.Errorf("%s: %v from %d, %d s", name, j.parts, j.start, j.end-j.start)
		}
		g.placementWay.queue = inKoala
		if parts, err := g.choose(j); test.start == 1000 && (parts != nil || err != nil) {
			t.Errorf("%s: with KOALA's queue: %v, %v", name, parts, err)
		}
	}
}

func TestPlacementTransfer(t *testing.T) {
	f := placementFile{gigabytes: 16, on: []bool{1: true, delft: true, 4: false}}
	for network, want := range map[string][]int64{"internet": {128, 0, 0, 128, 128}, "lightpaths": {13, 0, 0, 13, 13}} {
		for c := range das3 {
			if got := f.seconds(c, networks[network]()); got != want[c] {
				t.Errorf("%s, to %s: %d s, want %d", network, das3Names[c], got, want[c])
			}
		}
	}
	f.on = []bool{delft: true, 4: false}
	if got := f.seconds(0, networks["lightpaths"]()); got != 128 {
		t.Errorf("from Delft: %d s", got)
	}
}

// TestPlacementForward checks that a job moves forward when another one ends before its requested time.
func TestPlacementForward(t *testing.T) {
	p := DefaultPlacement
	p.Background = 0
	jobs := []placementJob{{submit: 0, components: []int{85}, nodes: 85, takes: 100}, {submit: 10, components: []int{80}, nodes: 80, takes: 50}}
	g := newPlacementGrid(p, placementWay{place.Earliest, inCluster}, placementJobs{jobs: jobs, last: 10}, 1)
	must.OK(t, g.play(t.Context()))
	if second := g.work.jobs[1]; second.start != 100 || second.end != 150 {
		t.Errorf("it runs from %d to %d; planned for 200", second.start, second.end)
	}
	f := g.figures()
	if f.columns["wait"] != 45 || f.columns["response"] != 120 || !math.IsNaN(f.columns["transfer_time"]) || f.columns["split"] != 0 {
		t.Errorf("%v", f.columns)
	}
}

func TestPlacementDifference(t *testing.T) {
	for want, values := range map[string][]float64{"more": {3, 4, 5}, "less": {-3, -4, -5}, "equal": {0, 0, 0}, "undecided": {3, -1, 1}} {
		if got := difference(values); got.Verdict != want {
			t.Errorf("%v: %s, want %s", values, got.Verdict, want)
		}
	}
	if one := difference([]float64{3}); one.Verdict != "undecided" || one.Half != nil || *one.Mean != 3 {
		t.Errorf("one run: %+v", one)
	}
	if none := difference([]float64{math.NaN()}); none.Verdict != "undecided" || none.Mean != nil {
		t.Errorf("no value: %+v", none)
	}
}

func TestPlacementRefuses(t *testing.T) {
	for want, change := range map[string]func(p *Placement){
		"jobs: 0 is not within":          func(p *Placement) { p.Jobs = 0 },
		"load: 91 is not within":         func(p *Placement) { p.Load = 91 },
		"exceed 95 %":                    func(p *Placement) { p.Load, p.Background = 70, 26 },
		"file: 3 is not within":          func(p *Placement) { p.File = 3 },
		"replicas: 6 is not within":      func(p *Placement) { p.Replicas = 6 },
		`network: "atm" must be`:         func(p *Placement) { p.Network = "atm" },
		"ratio: 0 is not within":         func(p *Placement) { p.Ratio = 0 },
		"communication: -1 is not":       func(p *Placement) { p.Communication = -1 },
		"background: 61 is not within 0": func(p *Placement) { p.Background = 61 },
	} {
		p := DefaultPlacement
		change(&p)
		if _, err := p.Run(t.Context(), 1, 1, nil, nil, 1, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := DefaultPlacement.Run(t.Context(), 1, 1, []string{"lublin"}, nil, 1, nil); err == nil {
		t.Error("an unknown workload")
	}
	if _, err := DefaultPlacement.Run(t.Context(), 1, 1, []string{"apps"}, []place.Policy{"best-fit"}, 1, nil); err == nil {
		t.Error("an unknown policy")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := DefaultPlacement.Run(stopped, 1, 1, []string{"apps"}, nil, 1, nil); err == nil {
		t.Error("it runs after it was stopped")
	}
	if r, err := DefaultPlacement.Run(t.Context(), 1, 1, []string{"apps"}, nil, 1, nil); err != nil || len(r.Findings) != 0 || len(r.Rows) != 1 {
		t.Errorf("only earliest: %v, %v", r.Findings, err)
	}
}
