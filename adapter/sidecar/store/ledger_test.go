package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestUpgradeToLedger: a database without a ledger gets an empty one, and keeps its jobs.
func TestUpgradeToLedger(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	job := sample(7)
	if err := s.AddJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.db, files)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.DownTo(ctx, 30)
	if _, missing := s.db.ExecContext(ctx, `SELECT 1 FROM holds`); err != nil || missing == nil {
		t.Fatalf("the ledger is still there: %v", err)
	}
	s.Close()
	s = open(t, path)
	jobs, err1 := s.ActiveJobs(ctx)
	holds, last, err2 := s.OpenHolds(ctx)
	if err := errors.Join(err1, err2, s.SaveHold(ctx, row.Hold{ID: 1, Job: job.ID, Made: time.Unix(10, 0), Counted: time.Unix(10, 0)})); err != nil || len(jobs) != 1 || len(holds) != 0 || last != 0 {
		t.Errorf("%d jobs, %d holds, the last %d: %v", len(jobs), len(holds), last, err)
	}
}

// hours returns what was held by hours, as "hour held/idle".
func hours(t *testing.T, s *Store) (all []string) {
	t.Helper()
	rows, err := s.db.Query(`SELECT hour, held, idle FROM hold_hours ORDER BY hour`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var hour, held, idle int64
		if err := rows.Scan(&hour, &held, &idle); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %d/%d", time.Unix(hour, 0).Format("02T15:04"), held, idle))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHoldRows: a row is written again and again, and what it held is counted by hours of the clock.
func TestHoldRows(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	job := sample(7)
	if err := s.AddJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 11, 20, 22, 30, 0, 0, time.Local)
	h := row.Hold{ID: 4, Job: job.ID, Step: 2, Name: "evo_7_2_1", Nodes: 3, NodeList: "n[1-3]", Planned: made.Add(time.Hour), Made: made, Counted: made}
	save := func() {
		t.Helper()
		if err := s.SaveHold(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	save()
	if open, last, err := s.OpenHolds(ctx); err != nil || last != 4 || len(open) != 1 || cmp.Diff(open[0], h) != "" {
		t.Fatalf("%v %d %v, want %v", open, last, err, h)
	}
	h.Held, h.Idle, h.Counted = 1_000_000, 500_000, made.Add(100*time.Second)
	save()
	save() // nothing new
	h.Held, h.Idle, h.Counted = 1_000_000+5_400_000, 500_000+540_000, made.Add(100*time.Second+90*time.Minute)
	h.Ended, h.Cause, h.By, h.Changes, h.Changed = h.Counted, row.CauseCancelled, "ann", 2, made.Add(time.Minute)
	save()
	want := []string{"20T22:00 2700000/670000", "20T23:00 3600000/360000", "21T00:00 100000/10000"}
	if diff := cmp.Diff(want, hours(t, s)); diff != "" {
		t.Error(diff)
	}
	if all, err := s.Holds(ctx, job.ID); err != nil || len(all) != 1 || cmp.Diff(all[0], h) != "" {
		t.Errorf("%v %v, want %v", all, err, h)
	}
}

// TestLedgerIsBounded: a job has MostHoldsOfJob rows and one for all others, with nothing lost in the sums. Old rows go.
func TestLedgerIsBounded(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	job := sample(7)
	if err := s.AddJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	made := time.Unix(1_800_000_000, 0)
	const many = MostHoldsOfJob + 30
	for i := range int64(many) {
		at := made.Add(time.Duration(i) * time.Minute)
		h := row.Hold{ID: i + 1, Job: job.ID, Name: fmt.Sprint("evo_7_2_", i), Made: at, Counted: at}
		err := s.SaveHold(ctx, h)
		h.Held, h.Idle, h.Counted, h.Ended, h.Cause = 2000, 1000, at.Add(time.Second), at.Add(time.Second), row.CauseReplanned
		if err := errors.Join(err, s.SaveHold(ctx, h)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Holds(ctx, job.ID)
	held, idle := int64(0), int64(0)
	for _, h := range all {
		held, idle = held+h.Held, idle+h.Idle
	}
	if err != nil || len(all) != MostHoldsOfJob+1 || held != many*2000 || idle != many*1000 || all[0].Name != "" || all[0].Changes != 30 {
		t.Errorf("%d rows with %d and %d, the first %+v: %v", len(all), held, idle, all[0], err)
	}
}

// TestPruneOfUser holds that no user has more than a share of the promises, however many steps his jobs have.
func TestPruneOfUser(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	job := sample(7)
	if err := s.AddJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	if _, err := s.on().ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO promises SELECT ?, i, 1, 2, 0, 0, 0, 0, 0, iif(i = 1, '', 'kept'), '', '' FROM n`, mostOfUser+10, job.ID); err != nil {
		t.Fatal(err)
	}
	err := s.Prune(ctx, time.Time{}, func(int) error { return nil })
	promises, err2 := s.Promises(ctx, job.ID)
	if err != nil || err2 != nil || len(promises) != mostOfUser+1 {
		t.Errorf("%d promises are left, want %d: %v, %v", len(promises), mostOfUser+1, err, err2)
	}
}

// TestPrune: rows that are too old go, and only those.
func TestPrune(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	job, at := sample(7), time.Unix(1_800_000_000, 0)
	if err := errors.Join(s.AddJob(ctx, job), s.SaveHold(ctx, row.Hold{ID: 1, Job: job.ID, Made: at, Counted: at.Add(time.Minute), Ended: at.Add(time.Minute), Held: 9}),
		s.SavePromise(ctx, row.Promise{Job: job.ID, Step: 2, Decided: at, Outcome: row.PromiseKept}), s.SaveDelay(ctx, row.Delay{Stock: row.Stock{SlurmID: 9}, Since: at})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{4, 0} {
		err := s.Prune(ctx, at.Add(-time.Duration(want-2)*time.Hour), func(int) error { return nil })
		holds, err1 := s.Holds(ctx, job.ID)
		promises, err2 := s.Promises(ctx, job.ID)
		delays, err3 := s.OpenDelays(ctx)
		if left := len(holds) + len(promises) + len(delays) + len(hours(t, s)); errors.Join(err, err1, err2, err3) != nil || left != want {
			t.Errorf("%d rows are left, want %d: %v", left, want, err)
		}
	}
}

// TestGrowDelays: the ledger of growth on demand is read as it was written, and rows without an amount go.
func TestGrowDelays(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s, at := open(t, path), time.Unix(1_800_000_000, 0)
	job := row.GrowDelay{GrowDelayOf: row.GrowDelayOf{ID: 9}, Since: at, Amount: 100}
	user := row.GrowDelay{GrowDelayOf: row.GrowDelayOf{User: true, ID: 9}, Since: at, Amount: 600}
	later := job
	later.Amount = 200
	gone := row.GrowDelay{GrowDelayOf: user.GrowDelayOf}
	for i, one := range []struct {
		save row.GrowDelay
		want []row.GrowDelay
	}{{job, []row.GrowDelay{job}}, {user, []row.GrowDelay{job, user}}, {later, []row.GrowDelay{later, user}}, {gone, []row.GrowDelay{later}}} {
		err := s.SaveGrowDelay(ctx, one.save)
		again := open(t, path)
		got, err2 := again.GrowDelays(ctx)
		if diff := cmp.Diff(one.want, got); errors.Join(err, err2) != nil || diff != "" {
			t.Errorf("%d: %v; -want +got:\n%s", i, errors.Join(err, err2), diff)
		}
	}
}

// TestEpilogs: what was learnt of partitions is read as it was written, and deleted.
func TestEpilogs(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "db"))
	for _, e := range []row.Epilog{{Partition: "b", Seconds: 3}, {Partition: "a", Seconds: 1}, {Partition: "c", Seconds: 0}, {Partition: "b", Seconds: 7}, {Partition: "a", Seconds: -1}} {
		if err := s.SaveEpilog(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Epilogs(ctx)
	if diff := cmp.Diff([]row.Epilog{{Partition: "b", Seconds: 7}, {Partition: "c"}}, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

// TestArrivals: what was learnt of hours is read as it was written, and deleted with its partition.
func TestArrivals(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "db"))
	for _, a := range []row.Arrivals{{Partition: "b", Hour: 3, Weeks: 1}, {Partition: "a", Hour: 1, Weeks: 2, Nodes: []int{4}}, {Partition: "b", Hour: 3, Weeks: 2, Nodes: []int{7, 1}}, {Partition: "a", Hour: -1}} {
		if err := s.SaveArrivals(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Arrivals(ctx)
	if diff := cmp.Diff([]row.Arrivals{{Partition: "b", Hour: 3, Weeks: 2, Nodes: []int{7, 1}}}, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}
