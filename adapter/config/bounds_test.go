package config

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner"
)

func TestProfileUse(t *testing.T) {
	for _, c := range []struct {
		profile string
		chain   bool
		want    Use
	}{
		{"4@1h", false, Use{Holds: 1}},
		{"1@10s,7@10m", false, Use{Holds: 2, Nodes: 6, Seconds: 60}},
		{"2@10m,5@30m,1@5m", false, Use{Holds: 2, Nodes: 3, Seconds: 1800}},
		{"1@10s,2@10s,4@10s", false, Use{Holds: 3, Nodes: 3, Seconds: 10 + 2*20}},
		{"6@10m,2@10m,6@10m", false, Use{Holds: 2, Seconds: 4 * 600}}, // from when it has given them back
		{"4@10s,2@10s,1@10s,3@10s", false, Use{Holds: 2, Seconds: 10 + 20}},
		{"2@10s,4@10s", true, Use{Holds: 2, Nodes: 2, Seconds: 20}},
		{"2@10s,2@10s,1@10s", true, Use{Holds: 3}}, // every step is a job of its own
	} {
		p, err := planner.ParseProfile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		if got := ProfileUse(p, c.chain); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.profile, got, c.want)
		}
	}
}

// TestProfileUseByNodes compares ProfileUse with a count of every single node.
func TestProfileUseByNodes(t *testing.T) {
	naive := func(p planner.Profile) (seconds int64) {
		var free []int64 // since when each node that the job had is free
		end := p[0].Duration
		for i, step := range p[1:] {
			for n := p[i].Nodes; n < step.Nodes; n++ {
				from := int64(0)
				if last := len(free) - 1; last >= 0 {
					from, free = free[last], free[:last]
				}
				seconds += end - from
			}
			for n := step.Nodes; n < p[i].Nodes; n++ {
				free = append(free, end)
			}
			end += step.Duration
		}
		return seconds
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planner.Step {
			return planner.Step{Nodes: rapid.IntRange(1, 20).Draw(t, "nodes"), Duration: rapid.Int64Range(1, 1000).Draw(t, "seconds")}
		}), 1, 12).Draw(t, "profile")
		if got, want := ProfileUse(p, false).Seconds, naive(p); got != want {
			t.Fatalf("%v: %d node-seconds, want %d", planner.Profile(p), got, want)
		}
	})
}

// TestProfileUseOfAnyNumber has no profile, whatever a user writes, pass for a small one, nor
// its nodes cost memory.
func TestProfileUseOfAnyNumber(t *testing.T) {
	const nodes, long = planner.MaxNodes, planner.MaxDuration
	p := planner.Profile{{Nodes: 1, Duration: long}}
	for range 1000 {
		p = append(p, planner.Step{Nodes: nodes, Duration: long}, planner.Step{Nodes: 1, Duration: long})
	}
	var u Use
	if allocs := testing.AllocsPerRun(1, func() { u = ProfileUse(p, false) }); allocs > 20 {
		t.Errorf("%v allocations", allocs)
	}
	cfg := Default()
	for _, has := range []Use{{}, {Seconds: 1}, u} {
		if cfg.Exceeds("job", 8, has, u) == "" {
			t.Errorf("%+v beside %+v is within the bounds", u, has)
		}
	}
}

// TestBoundsByDefault: the usual is not bounded, keeping most of a cluster for hours is.
func TestBoundsByDefault(t *testing.T) {
	cfg := Default()
	for _, c := range []struct {
		profile string
		nodes   int
		want    string
	}{
		{"2@10m,5@30m,1@5m", 8, ""},
		{"1@10s,7@10m", 8, ""},
		{"1@1h,2@1h", 8, ""},
		{"1@2h,8@30m", 8, ""}, // an ordinary job
		{"1@8h,8@1h", 8, ""},
		{"1@24h,7@10m", 8, "144 node-hours, held_time.job allows 64 node-hours"},
		{"10@24h,30@1h", 1000, ""},
		{"10@10h,900@1h", 1000, "8900 node-hours, held_time.job allows 8000 node-hours"},
		{"1@1s" + strings.Repeat(",2@1s,1@1s", 100), 8, "101 reservations, max_holds allows 100"},
	} {
		p, err := planner.ParseProfile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Never(p, false, c.nodes); got != "" != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s on %d nodes: %q, want %q", c.profile, c.nodes, got, c.want)
		}
	}
}

// TestExceedsIsMonotone: who fits beside much fits beside less, and in a larger cluster.
func TestExceedsIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Default()
		cfg.MaxHolds = rapid.IntRange(1, 20).Draw(t, "max_holds")
		for _, p := range []*int{&cfg.HeldNodes.Job, &cfg.HeldNodes.User, &cfg.HeldNodes.Account, &cfg.HeldNodes.All} {
			*p = rapid.IntRange(0, 20).Draw(t, "nodes")
		}
		cfg.HeldTime.User = time.Duration(rapid.IntRange(0, 100).Draw(t, "time")) * time.Second
		use := func(name string) Use {
			return Use{Holds: rapid.IntRange(0, 20).Draw(t, name), Nodes: rapid.IntRange(0, 20).Draw(t, name), Seconds: int64(rapid.IntRange(0, 1000).Draw(t, name))}
		}
		less, more, wants := use("less"), use("more"), use("wants")
		more = more.plus(less)
		size := rapid.IntRange(1, 20).Draw(t, "size")
		scope := rapid.SampledFrom(Scopes).Draw(t, "scope")
		if cfg.Exceeds(scope, size, more, wants) == "" && cfg.Exceeds(scope, size+1, less, wants) != "" {
			t.Fatalf("%+v fits beside %+v and not beside %+v", wants, more, less)
		}
	})
}
