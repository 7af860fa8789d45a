package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Rows that are too old, or too many, are deleted in small pieces. Each piece is a transaction: between two of them the
// loop writes. Rows are looked for before, without keeping anybody from writing.

// PruneRows bounds the rows of a piece.
const PruneRows = 1000

// mostFound bounds the rows that are looked for at a time.
const mostFound = 10 * PruneRows

// prunable says how to find rows of a table.
type prunable struct {
	table string
	keys  string // columns of its primary key
	where string // of those that may go; ? is the time before which they go
	unit  time.Duration
}

// byAge lists what goes by its age, besides jobs.
var byAge = []prunable{
	{"events", "id", `at < ?`, time.Microsecond},
	{"intents", "id", `settled > 0 AND at < ?`, time.Microsecond},
	{"holds", "id", `ended > 0 AND ended < ?`, time.Second},
	{"hold_hours", "hour, job", `hour < ?`, time.Second},
	{"idle_hours", "hour", `hour < ?`, time.Second},
	{"promises", "job, step", `outcome <> '' AND decided < ?`, time.Millisecond},
	{"delays", "slurm_id, submitted", `since < ?`, time.Second},
}

// oldJobs finds jobs that ended long ago. Nothing about them is open or younger.
var oldJobs = prunable{"jobs", "id", `state = 'ended' AND ended > 0 AND ended < ? AND NOT EXISTS (SELECT 1 FROM events WHERE job = jobs.id)
	AND NOT EXISTS (SELECT 1 FROM intents WHERE job = jobs.id AND settled = 0) AND NOT EXISTS (SELECT 1 FROM holds WHERE job = jobs.id AND ended = 0)`, time.Second}

// ofJobs lists what goes with a job. A job may have much of it.
var ofJobs = []prunable{{table: "plans", keys: "job, step"}, {table: "profiles", keys: "job, step"}, {table: "allocations", keys: "id"}, {table: "parts", keys: "job, slurm_id"},
	{table: "intents", keys: "id"}, {table: "holds", keys: "id"}, {table: "hold_hours", keys: "hour, job"}, {table: "promises", keys: "job, step"}}

// byNumber lists what goes because a user, or all users, have too many rows.
var byNumber = []prunable{
	{table: "holds", keys: "id", where: `id IN (SELECT id FROM (SELECT h.id, row_number() OVER (PARTITION BY j.uid ORDER BY h.id DESC) AS n, row_number() OVER (ORDER BY h.id DESC) AS total
		FROM holds h JOIN jobs j ON j.id = h.job WHERE h.ended > 0) WHERE n > ? OR total > ?)`},
	{table: "promises", keys: "job, step", where: `(job, step) IN (SELECT job, step FROM (SELECT p.job, p.step, row_number() OVER (PARTITION BY j.uid ORDER BY p.job DESC, p.step DESC) AS n,
		row_number() OVER (ORDER BY p.job DESC, p.step DESC) AS total FROM promises p JOIN jobs j ON j.id = p.job WHERE p.outcome <> '') WHERE n > ? OR total > ?)`},
	{table: "delays", keys: "slurm_id, submitted", where: `(slurm_id, submitted) IN (SELECT slurm_id, submitted FROM (SELECT slurm_id, submitted, row_number() OVER (PARTITION BY uid ORDER BY since DESC) AS n,
		row_number() OVER (ORDER BY since DESC) AS total FROM delays) WHERE n > ? OR total > ?)`},
}

// Prune deletes the rows from before a time, if that is not zero, and those that are too many. It calls pause after each
// piece with the number of its rows; its error ends the pruning.
func (s *Store) Prune(ctx context.Context, before time.Time, pause func(rows int) error) error {
	if !before.IsZero() {
		if _, err := s.on().ExecContext(ctx, `INSERT OR REPLACE INTO retention (one, before) VALUES (1, ?)`, before.UnixMicro()); err != nil {
			return fmt.Errorf("prune: %w", err)
		}
		for _, p := range byAge {
			if err := s.prune(ctx, p, pause, before.UnixNano()/int64(p.unit)); err != nil {
				return err
			}
		}
		if err := s.pruneJobs(ctx, before, pause); err != nil {
			return err
		}
	}
	for _, p := range byNumber {
		if err := s.prune(ctx, p, pause, mostOfUser, mostOfAll); err != nil {
			return err
		}
	}
	return nil
}

// pruneJobs deletes jobs that ended long ago, some at a time, after what goes with them.
func (s *Store) pruneJobs(ctx context.Context, before time.Time, pause func(rows int) error) error {
	for {
		found, err := s.find(ctx, oldJobs, []any{before.Unix()}, PruneRows)
		if err != nil || len(found) == 0 {
			return err
		}
		ids := make([]any, len(found))
		for i, key := range found {
			ids[i] = key[0]
		}
		for _, p := range ofJobs {
			p.where = `job IN (` + marks(len(ids)) + `)`
			if err := s.prune(ctx, p, pause, ids...); err != nil {
				return err
			}
		}
		if err := s.remove(ctx, oldJobs, found, pause); err != nil {
			return err
		}
	}
}

// prune deletes rows of one table.
func (s *Store) prune(ctx context.Context, p prunable, pause func(rows int) error, args ...any) error {
	for {
		found, err := s.find(ctx, p, args, mostFound)
		if err == nil {
			err = s.remove(ctx, p, found, pause)
		}
		if err != nil || len(found) < mostFound {
			return err
		}
	}
}

// remove deletes rows by their keys, in pieces.
func (s *Store) remove(ctx context.Context, p prunable, found [][]any, pause func(rows int) error) error {
	key := p.keys
	if strings.Contains(key, ",") {
		key = `(` + key + `)`
	}
	for len(found) > 0 {
		piece := found[:min(PruneRows, len(found))]
		found = found[len(piece):]
		values, all := make([]string, len(piece)), []any{}
		for i, row := range piece {
			values[i] = `(` + marks(len(row)) + `)`
			all = append(all, row...)
		}
		if _, err := s.on().ExecContext(ctx, `DELETE FROM `+p.table+` WHERE `+key+` IN (VALUES `+strings.Join(values, ", ")+`)`, all...); err != nil {
			return fmt.Errorf("prune %s: %w", p.table, err)
		}
		if err := pause(len(piece)); err != nil {
			return err
		}
	}
	return nil
}

// find returns keys of rows that may go.
func (s *Store) find(ctx context.Context, p prunable, args []any, most int) (found [][]any, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT `+p.keys+` FROM `+p.table+` WHERE `+p.where+` LIMIT ?`, append(args[:len(args):len(args)], most)...)
	if err != nil {
		return nil, fmt.Errorf("prune %s: %w", p.table, err)
	}
	defer rows.Close()
	n := strings.Count(p.keys, ",") + 1
	for rows.Next() {
		key, into := make([]int64, n), make([]any, n)
		for i := range key {
			into[i] = &key[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		found = append(found, anyOf(key))
	}
	return found, rows.Err()
}
