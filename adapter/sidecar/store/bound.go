package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SetBound writes the nodes to which a job is bound, as its user listed them.
func (s *Store) SetBound(ctx context.Context, job int64, nodes string) error {
	if _, err := s.on().ExecContext(ctx, `INSERT OR REPLACE INTO bound (job, nodes) VALUES (?, ?)`, job, nodes); err != nil {
		return fmt.Errorf("nodes of job %d: %w", job, err)
	}
	return nil
}

// Bound returns what SetBound wrote, otherwise "".
func (s *Store) Bound(ctx context.Context, job int64) (nodes string, err error) {
	err = s.on().QueryRowContext(ctx, `SELECT nodes FROM bound WHERE job = ?`, job).Scan(&nodes)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("nodes of job %d: %w", job, err)
	}
	return nodes, nil
}
