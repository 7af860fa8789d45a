package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Event is one line of the event log.
type Event struct {
	ID     int64
	At     time.Time // to the microsecond
	Job    int64     // 0: of none
	Kind   string
	Detail json.RawMessage
}

// AddEvent appends to the event log; detail is written as JSON.
func (s *Store) AddEvent(ctx context.Context, job int64, at time.Time, kind string, detail any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	if _, err := s.on().ExecContext(ctx, `INSERT INTO events (at, job, kind, detail) VALUES (?, nullif(?, 0), ?, ?)`,
		at.UnixMicro(), job, kind, string(text)); err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	return nil
}

// Events reads a job's events (0 for all jobs) after the one with that ID, oldest first, at most
// limit.
func (s *Store) Events(ctx context.Context, job, after int64, limit int) ([]Event, error) {
	rows, err := s.on().QueryContext(ctx, `SELECT id, at, coalesce(job, 0), kind, detail FROM events
		WHERE id > ? AND (? = 0 OR job = ?) ORDER BY id LIMIT ?`, after, job, job, limit)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer rows.Close()
	var all []Event
	for rows.Next() {
		var e Event
		var at int64
		var detail string
		if err := rows.Scan(&e.ID, &at, &e.Job, &e.Kind, &detail); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		e.At, e.Detail = time.UnixMicro(at), json.RawMessage(detail)
		all = append(all, e)
	}
	return all, rows.Err()
}

// EventFilter picks events for people.
type EventFilter struct {
	SlurmID uint32    // of a base job; 0: any
	Owner   *uint32   // only this user's jobs; nil for all
	Sidecar bool      // including events of no job
	After   int64     // ID; the events after it, otherwise the last ones
	Since   time.Time // zero: ever
	Limit   int
}

// ReadEvent is an event with its job.
type ReadEvent struct {
	Event
	SlurmID uint32 // 0: of none
	User    string
}

// ReadEvents reads events, oldest first. An event about a job that was never adopted (its detail
// has slurm_id and uid) counts as that job's if it is asked for by name.
func (s *Store) ReadEvents(ctx context.Context, f EventFilter) ([]ReadEvent, error) {
	where, args := []string{"e.id > ?", "e.at >= ?"}, []any{f.After, int64(0)}
	if !f.Since.IsZero() {
		args[1] = f.Since.UnixMicro()
	}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	switch {
	case f.SlurmID != 0 && f.Owner != nil:
		add(`(e.job IN (SELECT id FROM jobs WHERE slurm_id = ? AND uid = ?)
			OR e.job IS NULL AND detail ->> '$.slurm_id' = ? AND detail ->> '$.uid' = ?)`, f.SlurmID, *f.Owner, f.SlurmID, *f.Owner)
	case f.SlurmID != 0:
		add(`(e.job IN (SELECT id FROM jobs WHERE slurm_id = ?) OR e.job IS NULL AND detail ->> '$.slurm_id' = ?)`, f.SlurmID, f.SlurmID)
	case f.Owner != nil:
		add(`e.job IN (SELECT id FROM jobs WHERE uid = ?)`, *f.Owner)
	case !f.Sidecar:
		add(`e.job IS NOT NULL`)
	}
	order := "ORDER BY e.id DESC"
	if f.After > 0 {
		order = "ORDER BY e.id"
	}
	rows, err := s.on().QueryContext(ctx, `SELECT e.id, e.at, coalesce(e.job, 0), e.kind, e.detail, coalesce(j.slurm_id, 0), coalesce(j.user, '')
		FROM events e LEFT JOIN jobs j ON j.id = e.job WHERE `+strings.Join(where, " AND ")+" "+order+" LIMIT ?", append(args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer rows.Close()
	var all []ReadEvent
	for rows.Next() {
		var e ReadEvent
		var at int64
		var detail string
		if err := rows.Scan(&e.ID, &at, &e.Job, &e.Kind, &detail, &e.SlurmID, &e.User); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		e.At, e.Detail = time.UnixMicro(at), json.RawMessage(detail)
		all = append(all, e)
	}
	if f.After <= 0 {
		slices.Reverse(all)
	}
	return all, rows.Err()
}

// Intent is a row, see package row.
type Intent = row.Intent

// Intend records a change before it is requested from Slurm, and returns its ID: the given one, or
// a new one.
func (s *Store) Intend(ctx context.Context, i Intent) (int64, error) {
	result, err := s.on().ExecContext(ctx, `INSERT INTO intents (id, job, action, detail, at) VALUES (nullif(?, 0), nullif(?, 0), ?, ?, ?)`,
		i.ID, i.Job, i.Action, i.Detail, i.At.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("intent %s: %w", i.Action, err)
	}
	return result.LastInsertId()
}

// LastIntent returns the highest ID of an intent, settled ones too; 0: there is none.
func (s *Store) LastIntent(ctx context.Context) (last int64, err error) {
	err = s.on().QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM intents`).Scan(&last)
	return last, err
}

// Settle closes an intent with its outcome; "": it worked.
func (s *Store) Settle(ctx context.Context, intent int64, at time.Time, outcome string) error {
	if _, err := s.on().ExecContext(ctx, `UPDATE intents SET settled = ?, error = ? WHERE id = ?`, at.UnixMicro(), outcome, intent); err != nil {
		return fmt.Errorf("settle intent %d: %w", intent, err)
	}
	return nil
}

// OpenIntents lists the intents that were never settled, oldest first.
func (s *Store) OpenIntents(ctx context.Context) ([]Intent, error) {
	rows, err := s.on().QueryContext(ctx, `SELECT id, coalesce(job, 0), action, detail, at FROM intents WHERE settled = 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read intents: %w", err)
	}
	defer rows.Close()
	var all []Intent
	for rows.Next() {
		var i Intent
		var at int64
		if err := rows.Scan(&i.ID, &i.Job, &i.Action, &i.Detail, &at); err != nil {
			return nil, fmt.Errorf("read intents: %w", err)
		}
		i.At = time.UnixMicro(at)
		all = append(all, i)
	}
	return all, rows.Err()
}
