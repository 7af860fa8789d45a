package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHistoryIndexes checks that the history is read by an index, not by reading all jobs.
func TestHistoryIndexes(t *testing.T) {
	s, owner := open(t, filepath.Join(t.TempDir(), "db")), uint32(7)
	for _, c := range []struct {
		filter HistoryFilter
		index  string
	}{
		{HistoryFilter{From: time.Unix(1, 0), Before: Place{9, 9}}, "jobs_ended"},
		{HistoryFilter{Jobs: []uint32{1, 2}}, "sqlite_autoindex_jobs_1"},
		{HistoryFilter{Jobs: []uint32{1}, Tasks: []Task{{Array: 1}, {Array: 2, Number: 3, One: true}}}, "jobs_array (array=? AND task=?)"},
		{HistoryFilter{Tasks: []Task{{Array: 1}}, Owner: &owner}, "jobs_"},
		{HistoryFilter{Owner: &owner, From: time.Unix(1, 0)}, "jobs_uid"},
		{HistoryFilter{Owner: &owner, Accounts: []string{"a", "b"}}, "jobs_account"},
		{HistoryFilter{Owner: &owner, Names: []string{"a"}}, "jobs_"},
		{HistoryFilter{Names: []string{"a"}}, "jobs_name"},
		{HistoryFilter{Names: []string{"a", "b"}, From: time.Unix(1, 0), Before: Place{9, 9}}, "jobs_name"},
		{HistoryFilter{Users: []string{"a"}}, "jobs_user"},
	} {
		statement, args := c.filter.statement()
		plan, err := explain(t, s, `SELECT id FROM jobs `+statement, args)
		if err != nil || !strings.Contains(plan, c.index) || strings.Contains(plan, "SCAN") {
			t.Errorf("%+v: %s, %v", c.filter, plan, err)
		}
	}
}

// explain returns how sqlite reads.
func explain(t *testing.T, s *Store, query string, args []any) (plan string, err error) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var text string
		if err := rows.Scan(&id, &parent, &unused, &text); err != nil {
			return "", err
		}
		plan += text + "; "
	}
	return plan, rows.Err()
}
