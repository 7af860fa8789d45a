package core

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// TestEarliestWithinBounds: a job is planned for the first second at which what it holds
// fits beside what is held for others, and those of other users do not count for its own
// bound.
func TestEarliestWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config.Default()
		cfg.MaxHolds = rapid.IntRange(1, 6).Draw(t, "max_holds")
		cfg.HeldNodes = config.HeldNodes{User: rapid.IntRange(0, 6).Draw(t, "user"), All: rapid.IntRange(0, 9).Draw(t, "all")}
		cfg.HeldTime = config.HeldTime{User: time.Duration(rapid.IntRange(0, 30).Draw(t, "user time")) * time.Second,
			All: time.Duration(rapid.IntRange(0, 60).Draw(t, "all time")) * time.Second}
		const now = 1000
		l := &ledger{cfg: &cfg, size: 8, now: now, claims: map[owner][]claim{}, used: map[owner]config.Use{}}
		mine, all := []claim(nil), []claim(nil)
		for range rapid.IntRange(0, 6).Draw(t, "claims") {
			c := claim{growth: rapid.Bool().Draw(t, "growth"), until: now + int64(rapid.IntRange(0, 100).Draw(t, "until"))}
			for range rapid.IntRange(1, 4).Draw(t, "nodes") {
				c.nodes = append(c.nodes, fmt.Sprint("n", rapid.IntRange(1, 8).Draw(t, "node")))
				c.from = append(c.from, int64(rapid.IntRange(0, 1100).Draw(t, "from")))
			}
			j := &job{Job: &row.Job{User: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user")}}
			if all = append(all, c); j.User == "a" {
				mine = append(mine, c)
			}
			l.add(j, []claim{c})
		}
		wants := config.Use{Holds: 1 + rapid.IntRange(0, 2).Draw(t, "wants"), Nodes: rapid.IntRange(0, 4).Draw(t, "wants"), Seconds: int64(rapid.IntRange(0, 200).Draw(t, "wants"))}
		fits := func(at int64) bool {
			return cfg.Exceeds("user", 8, usedAt(mine, at), wants) == "" && cfg.Exceeds("all", 8, usedAt(all, at), wants) == ""
		}
		at, why := l.earliest(&job{Job: &row.Job{User: "a"}}, wants, now)
		if !fits(now + 1000) { // nor ever: it says why, and waits no longer than anything is held
			if why == "" || at > now+100 {
				t.Fatalf("%d (%s), though it never fits", at-now, why)
			}
			return
		}
		if !fits(at) || at > now && fits(at-1) || (why != "") != (at > now) {
			t.Fatalf("%d (%s)", at-now, why)
		}
	})
}

// TestPlanHoldsAsMuchAsProfile: claims of a plan that delays nothing are what the profile
// says, where it takes up again what it had.
func TestPlanHoldsAsMuchAsProfile(t *testing.T) {
	const start = 5000
	profile := planner.Profile{{Duration: 10, Nodes: 3}, {Duration: 20, Nodes: 1}, {Duration: 30, Nodes: 4}, {Duration: 5, Nodes: 2}}
	nodes := []string{"n1", "n2", "n3", "n4"}
	j := &job{Job: &row.Job{State: row.Queued, Profile: profile, User: "a"}}
	at := int64(start)
	for _, s := range profile {
		j.plan = append(j.plan, plannedStep{start: at, end: at + s.Duration, nodes: nodes[:s.Nodes]})
		at += s.Duration
	}
	c := &Core{cfg: config.Default()}
	c.site.Root = true
	got, want := usedAt(claimsOf(j, c.holdsOf(j, start)), start-1), config.ProfileUse(profile, false)
	want.Nodes = 3 // those that it has at first, too: they are held later
	want.Seconds++ // of the second before
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
