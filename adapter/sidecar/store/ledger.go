package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// The ledger is bounded, however often users have holds made: a job has at most MostHoldsOfJob rows of holds, and what
// the others held is added up in one more. Prune drops rows by age, and the oldest of each user and of all.
const (
	MostHoldsOfJob = 50
	LedgerAge      = 400 * 24 * time.Hour // a year, and time to report it
	mostOfUser     = 20_000               // rows of holds, of promises, and of delays
	mostOfAll      = 200_000
	mostOpen       = 1000
)

const holdColumns = `id, job, step, name, nodes, node_list, planned, made, changes, changed, begun, ended, cause, by, held, idle, counted`

// SaveHold writes a row of the ledger of holds, and counts what was held since it was written last by hours.
func (s *Store) SaveHold(ctx context.Context, h row.Hold) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		var held, idle, counted int64
		err := tx.QueryRowContext(ctx, `SELECT held, idle, counted FROM holds WHERE id = ?`, h.ID).Scan(&held, &idle, &counted)
		added := errors.Is(err, sql.ErrNoRows)
		if added {
			counted, err = unix(h.Made), nil
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO holds (`+holdColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				h.ID, h.Job, h.Step, h.Name, h.Nodes, h.NodeList, unix(h.Planned), unix(h.Made), h.Changes, unix(h.Changed), unix(h.Begun), unix(h.Ended), h.Cause, h.By, h.Held, h.Idle, unix(h.Counted))
		}
		if err == nil {
			err = addHours(ctx, tx, h.Job, fromUnix(counted), h.Counted, max(h.Held-held, 0), max(h.Idle-idle, 0))
		}
		if err != nil || !added {
			return err
		}
		return foldHold(ctx, tx, h.Job)
	})
	if err != nil {
		return fmt.Errorf("hold %s: %w", h.Name, err)
	}
	return nil
}

// hourOf returns the hour of the site's clock that a time is in, and when it ends.
func hourOf(t time.Time) (from, to time.Time) {
	from = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, t.Location())
	if from.After(t) || t.Sub(from) >= time.Hour { // an hour that the clock shows twice
		from = t.Truncate(time.Hour)
	}
	return from, from.Add(time.Hour)
}

// addHours spreads what was held in a period over its hours.
func addHours(ctx context.Context, tx *sql.Tx, job int64, from, to time.Time, held, idle int64) error {
	if to.Sub(from) > LedgerAge {
		from = to.Add(-LedgerAge)
	}
	for held > 0 || idle > 0 {
		hour, next := hourOf(from)
		partHeld, partIdle := held, idle
		if rest := to.Sub(from).Seconds(); next.Before(to) && rest > 0 {
			share := next.Sub(from).Seconds() / rest
			partHeld, partIdle = int64(float64(held)*share), int64(float64(idle)*share)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO hold_hours (hour, job, held, idle) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET held = held + excluded.held, idle = idle + excluded.idle`, hour.Unix(), job, partHeld, partIdle); err != nil {
			return err
		}
		held, idle = held-partHeld, idle-partIdle
		if !next.Before(to) {
			break
		}
		from = next
	}
	return nil
}

// foldHold adds the oldest row of a job that is over to the row of its further holds, if it has too many.
func foldHold(ctx context.Context, tx *sql.Tx, job int64) error {
	var rows, further, oldest int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(max(id) FILTER (WHERE name = ''), 0), coalesce(min(id) FILTER (WHERE name <> '' AND ended > 0), 0)
		FROM holds WHERE job = ?`, job).Scan(&rows, &further, &oldest); err != nil || rows <= MostHoldsOfJob || oldest == 0 {
		return err
	}
	if further == 0 { // it becomes that row
		_, err := tx.ExecContext(ctx, `UPDATE holds SET name = '', node_list = '', cause = '', by = '', changes = changes + 1 WHERE id = ?`, oldest)
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE holds SET held = holds.held + o.held, idle = holds.idle + o.idle, changes = holds.changes + o.changes + 1, nodes = max(holds.nodes, o.nodes), ended = max(holds.ended, o.ended)
		FROM (SELECT * FROM holds WHERE id = ?) AS o WHERE holds.id = ?`, oldest, further); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM holds WHERE id = ?`, oldest)
	return err
}

// OpenHolds lists the rows of holds that were not given up, and the highest ID of all rows.
func (s *Store) OpenHolds(ctx context.Context) (all []row.Hold, last int64, err error) {
	if all, err = s.holds(ctx, `WHERE ended = 0 ORDER BY id`); err != nil {
		return nil, 0, err
	}
	err = s.on().QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM holds`).Scan(&last)
	return all, last, err
}

// Holds lists the rows of a job's holds, oldest first.
func (s *Store) Holds(ctx context.Context, job int64) ([]row.Hold, error) {
	return s.holds(ctx, `WHERE job = ? ORDER BY id`, job)
}

func (s *Store) holds(ctx context.Context, where string, args ...any) (all []row.Hold, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT `+holdColumns+` FROM holds `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read holds: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var h row.Hold
		var planned, made, changed, begun, ended, counted int64
		if err := rows.Scan(&h.ID, &h.Job, &h.Step, &h.Name, &h.Nodes, &h.NodeList, &planned, &made, &h.Changes, &changed, &begun, &ended, &h.Cause, &h.By, &h.Held, &h.Idle, &counted); err != nil {
			return nil, fmt.Errorf("read holds: %w", err)
		}
		h.Planned, h.Made, h.Changed = fromUnix(planned), fromUnix(made), fromUnix(changed)
		h.Begun, h.Ended, h.Counted = fromUnix(begun), fromUnix(ended), fromUnix(counted)
		all = append(all, h)
	}
	return all, rows.Err()
}

// milli is a time for a column in milliseconds.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

const promiseColumns = `job, step, from_nodes, to_nodes, got, at, asked, decided, lapsed, outcome, cause, by`

// SavePromise writes a row of the ledger of promises.
func (s *Store) SavePromise(ctx context.Context, p row.Promise) error {
	if _, err := s.on().ExecContext(ctx, `INSERT OR REPLACE INTO promises (`+promiseColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Job, p.Step, p.From, p.To, p.Got, milli(p.At), milli(p.Asked), milli(p.Decided), p.Lapsed, p.Outcome, p.Cause, p.By); err != nil {
		return fmt.Errorf("promise of job %d: %w", p.Job, err)
	}
	return nil
}

// Promises lists a job's promises, in the order of steps.
func (s *Store) Promises(ctx context.Context, job int64) (all []row.Promise, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT `+promiseColumns+` FROM promises WHERE job = ? ORDER BY step`, job)
	if err != nil {
		return nil, fmt.Errorf("read promises: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var p row.Promise
		var at, asked, decided int64
		if err := rows.Scan(&p.Job, &p.Step, &p.From, &p.To, &p.Got, &at, &asked, &decided, &p.Lapsed, &p.Outcome, &p.Cause, &p.By); err != nil {
			return nil, fmt.Errorf("read promises: %w", err)
		}
		p.At, p.Asked, p.Decided = fromMilli(at), fromMilli(asked), fromMilli(decided)
		all = append(all, p)
	}
	return all, rows.Err()
}

// SaveDelay writes a row of the ledger of delays.
func (s *Store) SaveDelay(ctx context.Context, d row.Delay) error {
	if _, err := s.on().ExecContext(ctx, `INSERT OR REPLACE INTO delays (slurm_id, submitted, user, uid, account, qos, partition, since, could, seconds, hold, job, settled)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.SlurmID, unix(d.Submitted), d.User, d.UID, d.Account, d.QOS, d.Partition, unix(d.Since), unix(d.Could), d.Seconds, d.Hold, d.Job, unix(d.Settled)); err != nil {
		return fmt.Errorf("delay of job %d: %w", d.SlurmID, err)
	}
	return nil
}

// OpenDelays lists the last rows of jobs that wait.
func (s *Store) OpenDelays(ctx context.Context) (all []row.Delay, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT slurm_id, submitted, user, uid, account, qos, partition, since, could, seconds, hold, job
		FROM delays WHERE settled = 0 ORDER BY since DESC LIMIT ?`, mostOpen)
	if err != nil {
		return nil, fmt.Errorf("read delays: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var d row.Delay
		var submitted, since, could int64
		if err := rows.Scan(&d.SlurmID, &submitted, &d.User, &d.UID, &d.Account, &d.QOS, &d.Partition, &since, &could, &d.Seconds, &d.Hold, &d.Job); err != nil {
			return nil, fmt.Errorf("read delays: %w", err)
		}
		d.Submitted, d.Since, d.Could = fromUnix(submitted), fromUnix(since), fromUnix(could)
		all = append(all, d)
	}
	return all, rows.Err()
}

// SaveGrowDelay writes a row of the ledger of growth on demand, or deletes it if its amount is 0.
func (s *Store) SaveGrowDelay(ctx context.Context, d row.GrowDelay) error {
	query, args := `INSERT OR REPLACE INTO grow_delays (user, id, since, amount) VALUES (?, ?, ?, ?)`, []any{d.User, d.ID, unix(d.Since), d.Amount}
	if d.Amount == 0 {
		query, args = `DELETE FROM grow_delays WHERE user = ? AND id = ?`, args[:2]
	}
	if _, err := s.on().ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("delay by growth: %w", err)
	}
	return nil
}

// GrowDelays lists the ledger of growth on demand.
func (s *Store) GrowDelays(ctx context.Context) (all []row.GrowDelay, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT user, id, since, amount FROM grow_delays ORDER BY user, id`)
	if err != nil {
		return nil, fmt.Errorf("read delays by growth: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var d row.GrowDelay
		var since int64
		if err := rows.Scan(&d.User, &d.ID, &since, &d.Amount); err != nil {
			return nil, fmt.Errorf("read delays by growth: %w", err)
		}
		d.Since = fromUnix(since)
		all = append(all, d)
	}
	return all, rows.Err()
}
