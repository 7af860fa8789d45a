package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Choice is a strategy that an operator has put in use.
type Choice struct {
	Strategy   string
	Parameters map[string]string
	By         string
	At         time.Time // whole seconds
	Instead    string    // the configuration's at that time
}

// SetChoice writes down which strategy is in use; nil: the configuration's.
func (s *Store) SetChoice(ctx context.Context, c *Choice) error { return s.choose(ctx, "choice", c) }

// SetPolicy is SetChoice for the malleability policy.
func (s *Store) SetPolicy(ctx context.Context, c *Choice) error { return s.choose(ctx, "policy", c) }

func (s *Store) choose(ctx context.Context, table string, c *Choice) error {
	if c == nil {
		if _, err := s.on().ExecContext(ctx, `DELETE FROM `+table); err != nil {
			return fmt.Errorf("forget the strategy in use: %w", err)
		}
		return nil
	}
	parameters, err := json.Marshal(c.Parameters)
	if err != nil {
		return fmt.Errorf("keep the strategy in use: %w", err)
	}
	if _, err := s.on().ExecContext(ctx, `INSERT OR REPLACE INTO `+table+` (one, strategy, parameters, by, at, instead) VALUES (1, ?, ?, ?, ?, ?)`,
		c.Strategy, string(parameters), c.By, unix(c.At), c.Instead); err != nil {
		return fmt.Errorf("keep the strategy in use: %w", err)
	}
	return nil
}

// Choice returns the strategy that was put in use; nil: the configuration's.
func (s *Store) Choice(ctx context.Context) (*Choice, error) { return s.chosen(ctx, "choice") }

// Policy is Choice for the malleability policy.
func (s *Store) Policy(ctx context.Context) (*Choice, error) { return s.chosen(ctx, "policy") }

func (s *Store) chosen(ctx context.Context, table string) (*Choice, error) {
	rows, err := s.on().QueryContext(ctx, `SELECT strategy, parameters, by, at, instead FROM `+table)
	if err != nil {
		return nil, fmt.Errorf("read the strategy in use: %w", err)
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	var c Choice
	var parameters string
	var at int64
	if err := rows.Scan(&c.Strategy, &parameters, &c.By, &at, &c.Instead); err != nil {
		return nil, fmt.Errorf("read the strategy in use: %w", err)
	}
	if err := json.Unmarshal([]byte(parameters), &c.Parameters); err != nil {
		return nil, fmt.Errorf("read the strategy in use: %w", err)
	}
	c.At = fromUnix(at)
	return &c, rows.Err()
}
