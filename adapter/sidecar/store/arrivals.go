package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// SaveArrivals writes what was learnt of an hour of the week, or deletes all rows of the partition if the hour is less than 0.
func (s *Store) SaveArrivals(ctx context.Context, a row.Arrivals) error {
	nodes, err := json.Marshal(a.Nodes)
	if err == nil {
		query, args := `INSERT OR REPLACE INTO arrivals (partition, hour, weeks, nodes) VALUES (?, ?, ?, ?)`, []any{a.Partition, a.Hour, a.Weeks, string(nodes)}
		if a.Hour < 0 {
			query, args = `DELETE FROM arrivals WHERE partition = ?`, args[:1]
		}
		_, err = s.on().ExecContext(ctx, query, args...)
	}
	if err != nil {
		return fmt.Errorf("arrivals of a partition: %w", err)
	}
	return nil
}

// Arrivals lists what was learnt of arrivals, by partition and hour of the week.
func (s *Store) Arrivals(ctx context.Context) (all []row.Arrivals, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT partition, hour, weeks, nodes FROM arrivals ORDER BY partition, hour`)
	if err != nil {
		return nil, fmt.Errorf("read arrivals: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a row.Arrivals
		var nodes string
		if err := rows.Scan(&a.Partition, &a.Hour, &a.Weeks, &nodes); err != nil {
			return nil, fmt.Errorf("read arrivals: %w", err)
		}
		if err := json.Unmarshal([]byte(nodes), &a.Nodes); err != nil {
			return nil, fmt.Errorf("read arrivals of %s, hour %d: %w", a.Partition, a.Hour, err)
		}
		all = append(all, a)
	}
	return all, rows.Err()
}
