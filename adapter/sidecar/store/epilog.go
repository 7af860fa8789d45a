package store

import (
	"context"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// SaveEpilog writes how long jobs of a partition are COMPLETING, or deletes the row if that is less than 0.
func (s *Store) SaveEpilog(ctx context.Context, e row.Epilog) error {
	query, args := `INSERT OR REPLACE INTO epilogs (partition, seconds) VALUES (?, ?)`, []any{e.Partition, e.Seconds}
	if e.Seconds < 0 {
		query, args = `DELETE FROM epilogs WHERE partition = ?`, args[:1]
	}
	if _, err := s.on().ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("epilog of a partition: %w", err)
	}
	return nil
}

// Epilogs lists how long jobs are COMPLETING, by partition.
func (s *Store) Epilogs(ctx context.Context) (all []row.Epilog, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT partition, seconds FROM epilogs ORDER BY partition`)
	if err != nil {
		return nil, fmt.Errorf("read epilogs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e row.Epilog
		if err := rows.Scan(&e.Partition, &e.Seconds); err != nil {
			return nil, fmt.Errorf("read epilogs: %w", err)
		}
		all = append(all, e)
	}
	return all, rows.Err()
}
