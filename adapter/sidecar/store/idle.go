package store

import (
	"context"
	"fmt"
	"time"
)

// Idle sums up nodes that were awake without a job.
type Idle struct {
	Seconds float64 // node-seconds
	Joules  float64 // by the configured watts
}

// AddIdle adds what ended at a time to its hour.
func (s *Store) AddIdle(ctx context.Context, at time.Time, more Idle) error {
	hour, _ := hourOf(at)
	if _, err := s.on().ExecContext(ctx, `INSERT INTO idle_hours (hour, seconds, joules) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds, joules = joules + excluded.joules`, hour.Unix(), more.Seconds, more.Joules); err != nil {
		return fmt.Errorf("idle nodes: %w", err)
	}
	return nil
}

// Idle sums up a period. An hour that lies in it in part counts in proportion to that part of it which is over.
func (s *Store) Idle(ctx context.Context, from, to, now time.Time) (all Idle, err error) {
	err = s.on().QueryRowContext(ctx, `SELECT coalesce(sum(seconds * part), 0), coalesce(sum(joules * part), 0) FROM (
		SELECT seconds, joules, 1.0 * (min(hour + 3600, ?2, ?3) - max(hour, ?1)) / max(min(hour + 3600, ?3) - hour, 1) AS part FROM idle_hours WHERE hour > ?1 - 3600 AND hour < min(?2, ?3))`,
		from.Unix(), to.Unix(), now.Unix()).Scan(&all.Seconds, &all.Joules)
	if err != nil {
		return all, fmt.Errorf("read idle nodes: %w", err)
	}
	return all, nil
}
