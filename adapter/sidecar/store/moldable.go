package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// setMoldable writes the alternatives of a job, if it is moldable.
func setMoldable(ctx context.Context, tx *sql.Tx, j *Job) error {
	m := j.Moldable
	if m == nil {
		if _, err := tx.ExecContext(ctx, `DELETE FROM moldable WHERE job = ?`, j.ID); err != nil {
			return fmt.Errorf("alternatives of job %d: %w", j.SlurmID, err)
		}
		return nil
	}
	alternatives, err1 := json.Marshal(m.Alternatives)
	minutes, err2 := json.Marshal(m.Minutes)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("alternatives of job %d: %w", j.SlurmID, err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO moldable (job, alternatives, prefers, minutes, choice, fixed) VALUES (?, ?, ?, ?, ?, ?)`,
		j.ID, string(alternatives), m.By.String(), string(minutes), m.Choice, m.Fixed); err != nil {
		return fmt.Errorf("alternatives of job %d: %w", j.SlurmID, err)
	}
	return nil
}

// readMoldable reads the alternatives of a job, if it has any.
func (s *Store) readMoldable(ctx context.Context, j *Job) error {
	m := &row.Moldable{}
	var alternatives, prefers, minutes string
	err := s.on().QueryRowContext(ctx, `SELECT alternatives, prefers, minutes, choice, fixed FROM moldable WHERE job = ?`, j.ID).
		Scan(&alternatives, &prefers, &minutes, &m.Choice, &m.Fixed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(alternatives), &m.Alternatives), json.Unmarshal([]byte(minutes), &m.Minutes))
	}
	if err == nil {
		m.By, err = planner.ParsePreference(prefers)
	}
	if err == nil && (m.Choice < 0 || m.Choice >= len(m.Alternatives) || len(m.Minutes) != len(m.Alternatives) && len(m.Minutes) != 0) {
		err = fmt.Errorf("alternative %d of %d", m.Choice, len(m.Alternatives))
	}
	if err != nil {
		return fmt.Errorf("alternatives of job %d: %w", j.SlurmID, err)
	}
	j.Moldable = m
	return nil
}
