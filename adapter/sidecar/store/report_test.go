package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// booked returns a store with two jobs: Ann's, 2 nodes for 10 minutes and 4 for 10, ran from 12:00 to 12:30 and kept
// its first nodes for 5 minutes longer; Bob's malleable one, 1 node for an hour, runs since 12:30 and has had one lent
// node since 12:40.
func booked(t *testing.T) *Store {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	ann, bob := sample(7), sample(8)
	ann.Profile, ann.User, ann.Account, ann.State, ann.Submitted, ann.Ended = planner.Profile{{Duration: 600, Nodes: 2}, {Duration: 600, Nodes: 4}}, "ann", "a", Ended, at(-5), at(30)
	bob.Profile, bob.User, bob.UID, bob.Account, bob.State, bob.Submitted = planner.Profile{{Duration: 3600, Nodes: 1}}, "bob", 2002, "b", Running, at(20)
	bob.Malleable = &row.Malleable{Max: []int{4}}
	if err := errors.Join(s.AddJob(ctx, ann), s.AddJob(ctx, bob)); err != nil {
		t.Fatal(err)
	}
	hold := row.Hold{ID: 1, Job: ann.ID, Step: 2, Name: "evo_7_2_1", Made: at(0), Counted: at(20), Held: 20 * 60 * 2 * 1000, Idle: 20 * 60 * 1000}
	if err := errors.Join(
		s.SetAllocation(ctx, ann.ID, 1, at(0), 2, "n[1-2]"), s.SetAllocation(ctx, ann.ID, 2, at(15), 4, "n[1-4]"), s.SetAllocation(ctx, ann.ID, 2, at(30), 0, ""),
		s.SetAllocation(ctx, bob.ID, 1, at(30), 1, "n9"), s.SetAllocation(ctx, bob.ID, 1, at(40), 2, "n[8-9]"),
		s.SetPlans(ctx, map[int64][]Span{ann.ID: {{Step: 1, Start: at(0), End: at(10), Nodes: 2}, {Step: 2, Start: at(10), End: at(20), Nodes: 4}}, bob.ID: {{Step: 1, Start: at(30), End: at(90), Nodes: 1}}}),
		s.SaveHold(ctx, hold),
		s.SavePromise(ctx, row.Promise{Job: ann.ID, Step: 2, From: 2, To: 4, Got: 4, At: at(10), Asked: at(14), Decided: at(15), Outcome: row.PromiseLate, Cause: "delayed"}),
		s.SavePromise(ctx, row.Promise{Job: ann.ID, Step: 3, Outcome: ""}),
		s.SavePromise(ctx, row.Promise{Job: bob.ID, Step: 2, At: at(10), Decided: at(45), Outcome: row.PromiseBroken, Cause: row.CauseBudget}),
		s.SavePromise(ctx, row.Promise{Job: bob.ID, Step: 3, At: at(10), Decided: at(45), Outcome: row.PromiseKept}),
		s.SaveDelay(ctx, row.Delay{Stock: row.Stock{SlurmID: 90, User: "bob", UID: 2002, Account: "b", Partition: "main", QOS: "normal"}, Since: at(5), Seconds: 300, Settled: at(15)}),
		s.SaveDelay(ctx, row.Delay{Stock: row.Stock{SlurmID: 91, User: "cat", UID: 2003, Account: "c", Partition: "main", QOS: "normal"}, Since: at(6), Seconds: 100}),
		s.SaveDelay(ctx, row.Delay{Stock: row.Stock{SlurmID: 92, User: "cat", UID: 2003}, Since: at(7), Seconds: 0, Settled: at(9)}), // it was not delayed in the end
	); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCosts compares sums with figures that were computed by hand, in node-minutes.
func TestCosts(t *testing.T) {
	s, bob, nobody := booked(t), uint32(2002), uint32(9)
	// Ann: asked 2*10 + 4*10; had 2*15 + 4*15; wasted 2*5 + 4*5. Bob, until 13:00: asked 30; had 10 + 2*20; lent 20.
	ann := Cost{Group: "ann", Jobs: 1, Steps: 60, Planned: 60, Had: 90, Wasted: 30, Held: 40, HeldIdle: 20, Late: 1, LateSeconds: 60, LatestSeconds: 60}
	bobs := Cost{Group: "bob", Jobs: 1, Steps: 30, Planned: 30, Had: 50, Lent: 20, Kept: 1, Broken: 1, Delayed: 1, DelayedSeconds: 300, DelayedWorst: 300}
	cat := Cost{Group: "cat", Delayed: 1, DelayedSeconds: 100, DelayedWorst: 100}
	all := Cost{Jobs: 2, Steps: 90, Planned: 90, Had: 140, Wasted: 30, Lent: 20, Held: 40, HeldIdle: 20, Kept: 1, Late: 1, Broken: 1, LateSeconds: 60, LatestSeconds: 60, Delayed: 2, DelayedSeconds: 400, DelayedWorst: 300}
	main := all
	main.Group = "main"
	own := bobs
	own.Group = ""
	for name, c := range map[string]struct {
		q      CostQuery
		want   []Cost
		groups int
	}{
		"all":         {CostQuery{From: at(0), To: at(60), Limit: 9}, []Cost{all}, 1},
		"by user":     {CostQuery{From: at(0), To: at(60), By: "user", Limit: 9}, []Cost{ann, bobs, cat}, 3},
		"the dearest": {CostQuery{From: at(0), To: at(60), By: "user", Limit: 1}, []Cost{ann}, 3},
		"partition":   {CostQuery{From: at(0), To: at(60), By: "partition", Limit: 9}, []Cost{main}, 1},
		"Bob's":       {CostQuery{From: at(0), To: at(60), Owner: &bob, Limit: 9}, []Cost{own}, 1},
		"nobody's":    {CostQuery{From: at(0), To: at(60), Owner: &nobody, Limit: 9}, nil, 0},
		"before":      {CostQuery{From: at(-60), To: at(-30), Limit: 9}, nil, 0},
		// from 12:10 to 12:20, Ann: had 2*5 of 30 in step 1, and 4*5 of 60 in step 2; a sixth of the hour's hold
		"a part": {CostQuery{From: at(10), To: at(20), By: "user", Limit: 9}, []Cost{{Group: "ann", Jobs: 1, Steps: 20./3 + 40./3, Planned: 40, Had: 30, Wasted: 10./3 + 20./3, Held: 40. / 6, HeldIdle: 20. / 6, Late: 1, LateSeconds: 60, LatestSeconds: 60}}, 1},
		// until 12:45, Bob: asked 15, had 10 + 2*5
		"under way": {CostQuery{From: at(30), To: at(45), By: "account", Limit: 1, Owner: &bob}, []Cost{{Group: "b", Jobs: 1, Steps: 15, Planned: 15, Had: 20, Lent: 5}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Now = at(60)
			got, groups, err := s.Costs(context.Background(), c.q)
			if err != nil || groups != c.groups {
				t.Errorf("%d groups, want %d: %v", groups, c.groups, err)
			}
			for i := range got {
				for _, sum := range []*float64{&got[i].Steps, &got[i].Planned, &got[i].Had, &got[i].Wasted, &got[i].Lent, &got[i].Held, &got[i].HeldIdle} {
					*sum /= 60
				}
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Error(diff)
			}
		})
	}
	causes, err := s.Causes(context.Background(), CostQuery{From: at(0), To: at(60)})
	if want := []Cause{{row.PromiseBroken, row.CauseBudget, 1}, {row.PromiseLate, "delayed", 1}}; err != nil || cmp.Diff(want, causes) != "" {
		t.Errorf("%v %v, want %v", causes, err, want)
	}
	if _, _, err := s.Costs(context.Background(), CostQuery{By: "id; DROP TABLE jobs"}); err == nil {
		t.Error("it groups by anything")
	}
}

// BenchmarkCosts sums up a week and a year of a database with 100,000 jobs of 1,000 users, in three steps each.
func BenchmarkCosts(b *testing.B) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(b.TempDir(), "db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const jobs, every = 100_000, 300 // seconds between two
	for _, statement := range []string{
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) INSERT INTO jobs (id, slurm_id, submitted, name, user, uid, gid, account, qos, partition, expand_limit, drive, begin, state, ended)
			SELECT i, i, i * ?2, 'j', 'user' || (i % 1000), i % 1000, 1, 'a' || (i % 50), 'normal', 'main', 1, 'merge', 0, 'ended', i * ?2 + 9000 FROM n`,
		`INSERT INTO profiles (job, step, duration, nodes) SELECT id, k, 3000, k FROM jobs, (SELECT 1 AS k UNION SELECT 2 UNION SELECT 3) WHERE ?1 + ?2 > 0`,
		`INSERT INTO allocations (job, step, starts, ends, nodes, node_list) SELECT job, step, job * ?2 + 3000 * (step - 1), job * ?2 + 3000 * step, nodes, 'n1' FROM profiles WHERE ?1 > 0`,
		`INSERT INTO plans (job, step, starts, ends, nodes, node_list) SELECT job, step, starts, ends, nodes, node_list FROM allocations WHERE ?1 + ?2 > 0`,
		`INSERT INTO hold_hours (hour, job, held, idle) SELECT submitted - submitted % 3600, id, 9000, 900 FROM jobs WHERE ?1 + ?2 > 0`,
		`INSERT INTO promises (job, step, from_nodes, to_nodes, got, at, asked, decided, lapsed, outcome, cause, by) SELECT job, step, 1, 2, 2, starts * 1000, 0, starts * 1000, 0, 'kept', '', '' FROM allocations WHERE step > 1 AND ?1 + ?2 > 0`,
	} {
		if _, err := s.db.ExecContext(ctx, statement, jobs, every); err != nil {
			b.Fatal(err)
		}
	}
	end := time.Unix(jobs*every, 0)
	for name, days := range map[string]int{"week": 7, "year": 365} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if all, _, err := s.Costs(ctx, CostQuery{From: end.AddDate(0, 0, -days), To: end, Now: end, By: "user", Limit: 1000}); err != nil || len(all) != 1000 {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}
