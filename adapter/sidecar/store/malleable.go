package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// setMalleable writes the malleable part of a job, if it is malleable.
func setMalleable(ctx context.Context, tx *sql.Tx, j *Job) error {
	var err error
	if m := j.Malleable; m == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM malleable WHERE job = ?`, j.ID)
	} else {
		most, _ := json.Marshal(m.Max) // numbers
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO malleable (job, most, sizes, grace, speedup, best_effort) VALUES (?, ?, ?, ?, ?, ?)`,
			j.ID, string(most), m.Sizes.String(), m.Grace, m.Speedup, m.BestEffort)
	}
	if err != nil {
		return fmt.Errorf("bounds of job %d: %w", j.SlurmID, err)
	}
	return nil
}

// readMalleable reads that, after the job's profile.
func (s *Store) readMalleable(ctx context.Context, j *Job) error {
	m := &row.Malleable{}
	var most, sizes string
	err := s.on().QueryRowContext(ctx, `SELECT most, sizes, grace, speedup, best_effort FROM malleable WHERE job = ?`, j.ID).Scan(&most, &sizes, &m.Grace, &m.Speedup, &m.BestEffort)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(most), &m.Max), m.Sizes.UnmarshalText([]byte(sizes)))
	}
	if err == nil && len(m.Max) != len(j.Profile) {
		err = fmt.Errorf("bounds of %d steps for a profile of %d", len(m.Max), len(j.Profile))
	}
	if err != nil {
		return fmt.Errorf("bounds of job %d: %w", j.SlurmID, err)
	}
	j.Malleable = m
	return nil
}
