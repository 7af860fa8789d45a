package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// The rows, see package row.
type (
	Span = row.Span
	Part = row.Part
)

// SetPlans replaces the plans of jobs, all or none; an empty plan deletes the one
// there was.
func (s *Store) SetPlans(ctx context.Context, plans map[int64][]Span) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, `INSERT INTO plans (job, step, starts, ends, nodes, node_list) VALUES (?, ?, ?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for job, plan := range plans {
			if _, err := tx.ExecContext(ctx, `DELETE FROM plans WHERE job = ?`, job); err != nil {
				return err
			}
			for _, p := range plan {
				if _, err := insert.ExecContext(ctx, job, p.Step, unix(p.Start), unix(p.End), p.Nodes, p.NodeList); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set plans: %w", err)
	}
	return nil
}

// Plan reads a job's plan, in step order.
func (s *Store) Plan(ctx context.Context, job int64) ([]Span, error) {
	return s.spans(ctx, `SELECT step, starts, ends, nodes, node_list FROM plans WHERE job = ? ORDER BY step`, job)
}

// SetAllocation records that the job has these nodes from now on: the previous span ends, never
// before it began. Without nodes, it only ends that span.
func (s *Store) SetAllocation(ctx context.Context, job int64, step int, at time.Time, nodes int, nodeList string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE allocations SET ends = max(starts, ?) WHERE job = ? AND ends = 0`, unix(at), job); err != nil {
			return fmt.Errorf("set allocation: %w", err)
		}
		if nodes == 0 {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO allocations (job, step, starts, nodes, node_list) VALUES (?, ?, ?, ?, ?)`,
			job, step, unix(at), nodes, nodeList); err != nil {
			return fmt.Errorf("set allocation: %w", err)
		}
		return nil
	})
}

// Allocations reads a job's real allocations, in order of time.
func (s *Store) Allocations(ctx context.Context, job int64) ([]Span, error) {
	return s.spans(ctx, `SELECT step, starts, ends, nodes, node_list FROM allocations WHERE job = ? ORDER BY id`, job)
}

func (s *Store) spans(ctx context.Context, query string, job int64) ([]Span, error) {
	rows, err := s.on().QueryContext(ctx, query, job)
	if err != nil {
		return nil, fmt.Errorf("read spans: %w", err)
	}
	defer rows.Close()
	var all []Span
	for rows.Next() {
		var p Span
		var start, end int64
		if err := rows.Scan(&p.Step, &start, &end, &p.Nodes, &p.NodeList); err != nil {
			return nil, fmt.Errorf("read spans: %w", err)
		}
		p.Start, p.End = fromUnix(start), fromUnix(end)
		all = append(all, p)
	}
	return all, rows.Err()
}

// SetParts replaces the list of a job's parts.
func (s *Store) SetParts(ctx context.Context, job int64, parts []Part) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM parts WHERE job = ?`, job); err != nil {
			return fmt.Errorf("set parts: %w", err)
		}
		for _, p := range parts {
			if _, err := tx.ExecContext(ctx, `INSERT INTO parts (job, slurm_id, step, node_list) VALUES (?, ?, ?, ?)`,
				job, p.SlurmID, p.Step, p.NodeList); err != nil {
				return fmt.Errorf("set parts: %w", err)
			}
		}
		return nil
	})
}

// Parts reads a job's parts, oldest first.
func (s *Store) Parts(ctx context.Context, job int64) ([]Part, error) {
	rows, err := s.on().QueryContext(ctx, `SELECT slurm_id, step, node_list FROM parts WHERE job = ? ORDER BY step, slurm_id`, job)
	if err != nil {
		return nil, fmt.Errorf("read parts: %w", err)
	}
	defer rows.Close()
	var all []Part
	for rows.Next() {
		var p Part
		if err := rows.Scan(&p.SlurmID, &p.Step, &p.NodeList); err != nil {
			return nil, fmt.Errorf("read parts: %w", err)
		}
		all = append(all, p)
	}
	return all, rows.Err()
}
