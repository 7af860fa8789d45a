package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// fillPast adds n rows of the past to a database: events, and jobs with all that belongs to them.
func fillPast(t testing.TB, s *Store, n int, at time.Time) {
	t.Helper()
	const counter = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) `
	jobs, sec := n/20, at.Unix()
	for _, one := range []struct {
		statement string
		args      []any
	}{
		{counter + `INSERT INTO jobs (id, slurm_id, submitted, name, user, uid, gid, account, qos, partition, expand_limit, drive, begin, state, ended, end_state)
			SELECT i, i, ?, 'amr', 'u' || i % 7, i % 7, 1, '', '', 'main', 1, 'merge', 0, 'ended', ?, 'COMPLETED' FROM n`, []any{jobs, sec, sec}},
		{counter + `INSERT INTO profiles SELECT i, 1, 60, 2 FROM n`, []any{jobs}},
		{counter + `INSERT INTO plans SELECT i, 1, ?, ?, 2, 'n[1-2]' FROM n`, []any{jobs, sec, sec}},
		{counter + `INSERT INTO allocations (job, step, starts, ends, nodes, node_list) SELECT i, 1, ?, ?, 2, 'n[1-2]' FROM n`, []any{jobs, sec, sec}},
		{counter + `INSERT INTO intents (job, action, detail, at, settled) SELECT i, 'grow', '', ?, ? FROM n`, []any{jobs, at.UnixMicro(), at.UnixMicro()}},
		{counter + `INSERT INTO holds SELECT i, i, 1, 'h', 1, 'n1', ?, ?, 0, 0, 0, ?, 'kept', '', 1, 1, ? FROM n`, []any{jobs, sec, sec, sec, sec}},
		{counter + `INSERT INTO hold_hours SELECT ?, i, 1, 1 FROM n`, []any{jobs, sec / 3600 * 3600}},
		{counter + `INSERT INTO promises SELECT i, 1, 1, 2, 2, 0, 0, ?, 0, 'kept', '', '' FROM n`, []any{jobs, at.UnixMilli()}},
		{counter + `INSERT INTO delays SELECT i, ?, 'u', i % 7, '', '', 'main', ?, 0, 1, 'h', 0, 1 FROM n`, []any{jobs, sec, sec}},
		{counter + `INSERT INTO events (at, job, kind, detail) SELECT ?, 1 + i % ?, 'ended', '{}' FROM n`, []any{n - 9*jobs, at.UnixMicro(), jobs}},
	} {
		if _, err := s.db.ExecContext(context.Background(), one.statement, one.args...); err != nil {
			t.Fatalf("%s: %v", one.statement, err)
		}
	}
}

// likeTheLoop writes events all the time until stop is called, and counts them.
func likeTheLoop(t *testing.T, s *Store, job int64, at time.Time) (written, failed *atomic.Int64, stop func()) {
	written, failed = new(atomic.Int64), new(atomic.Int64)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := s.Together(t.Context(), func(tx *Store) error { return tx.AddEvent(t.Context(), job, at, "step begun", nil) }); err != nil {
				failed.Add(1)
			}
			written.Add(1)
			time.Sleep(time.Millisecond)
		}
	}()
	return written, failed, func() { cancel(); <-ended }
}

// pastJobs adds a young ended job, an old one with an open intent, and one that runs.
func pastJobs(t *testing.T, s *Store, at time.Time) (young, open, running *Job) {
	t.Helper()
	young, open, running = sample(4_000_000_000), sample(4_000_000_001), sample(4_000_000_002)
	young.State, young.Ended, open.State, open.Ended, running.State = Ended, at.Add(2*time.Hour), Ended, at, Running
	for _, j := range []*Job{young, open, running} {
		if err := s.AddJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Intend(t.Context(), Intent{Job: open.ID, At: at, Action: "grow"}); err != nil {
		t.Fatal(err)
	}
	return young, open, running
}

// TestPruneAMillion checks that a million old rows go in small pieces, that the loop writes meanwhile, and that what is
// young, open, or of a running job stays.
func TestPruneAMillion(t *testing.T) {
	rows := 1_000_000
	if testing.Short() {
		rows = 20_000
	}
	s, at := open(t, filepath.Join(t.TempDir(), "db")), time.Unix(1_700_000_000, 0)
	fillPast(t, s, rows, at)
	young, _, running := pastJobs(t, s, at)
	written, failed, stop := likeTheLoop(t, s, running.ID, at.Add(2*time.Hour))
	deleted, pieces, held := 0, 0, 0
	err := s.Prune(t.Context(), at.Add(time.Hour), func(n int) error {
		if deleted, pieces = deleted+n, pieces+1; n > PruneRows {
			t.Fatalf("a piece has %d rows", n)
		}
		if pieces%20 != 0 {
			return nil
		}
		for before, i := written.Load(), 0; written.Load() == before; i++ { // a pause in which the loop writes
			if i == 10_000 {
				held++
				break
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	stop()
	if err != nil || failed.Load() > 0 || held > 0 || deleted < rows || pieces < rows/PruneRows {
		t.Errorf("%d rows went in %d pieces, the loop was held in %d pauses and failed %d times: %v", deleted, pieces, held, failed.Load(), err)
	}
	var jobs, old string
	if err := s.db.QueryRowContext(t.Context(), `SELECT min(id) || ',' || max(id) || ',' || count(*), (SELECT count(*) FROM events WHERE at < ?) || ' ' || (SELECT count(*) FROM intents) || ' ' || (SELECT count(*) FROM plans) FROM jobs`, at.Add(time.Hour).UnixMicro()).Scan(&jobs, &old); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d,%d,3", young.ID, running.ID); jobs != want || old != "0 1 0" {
		t.Errorf("left: jobs %s, want %s; old events, intents, plans: %s", jobs, want, old)
	}
	if _, err := s.db.ExecContext(t.Context(), `DELETE FROM events`); err == nil {
		t.Error("younger events may be deleted")
	}
}

// BenchmarkPrune deletes 100,000 rows.
func BenchmarkPrune(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, err := Open(b.Context(), filepath.Join(b.TempDir(), "db"))
		if err != nil {
			b.Fatal(err)
		}
		at, worst, pieces := time.Unix(1_700_000_000, 0), time.Duration(0), 0
		fillPast(b, s, 100_000, at)
		b.StartTimer()
		last := time.Now()
		if err := s.Prune(b.Context(), at.Add(time.Hour), func(int) error {
			worst, last, pieces = max(worst, time.Since(last)), time.Now(), pieces+1
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(worst.Milliseconds()), "ms/worst-piece")
		b.ReportMetric(float64(pieces), "pieces")
		s.Close()
	}
}
