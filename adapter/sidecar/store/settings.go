package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Setting holds what an operator has set at run time. It counts in place of the configuration's value.
type Setting struct {
	Key     string
	Value   json.RawMessage
	By      string
	At      time.Time // whole seconds
	Instead string    // the configuration's value at that time
}

// SetSetting writes a setting; one without a value is deleted, so that the configuration's counts.
func (s *Store) SetSetting(ctx context.Context, set Setting) (err error) {
	if set.Value == nil {
		_, err = s.on().ExecContext(ctx, `DELETE FROM settings WHERE key = ?`, set.Key)
	} else {
		_, err = s.on().ExecContext(ctx, `INSERT OR REPLACE INTO settings (key, value, by, at, instead) VALUES (?, ?, ?, ?, ?)`,
			set.Key, string(set.Value), set.By, unix(set.At), set.Instead)
	}
	if err != nil {
		return fmt.Errorf("write the setting %s: %w", set.Key, err)
	}
	return nil
}

// Setting returns a setting, or nil if there is none.
func (s *Store) Setting(ctx context.Context, key string) (*Setting, error) {
	all, err := s.Settings(ctx)
	for i := range all {
		if all[i].Key == key {
			return &all[i], err
		}
	}
	return nil, err
}

// Settings returns all settings by key.
func (s *Store) Settings(ctx context.Context) (all []Setting, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT key, value, by, at, instead FROM settings ORDER BY key`)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var one Setting
		var value string
		var at int64
		if err := rows.Scan(&one.Key, &value, &one.By, &at, &one.Instead); err != nil {
			return nil, fmt.Errorf("read the settings: %w", err)
		}
		one.Value, one.At = json.RawMessage(value), fromUnix(at)
		all = append(all, one)
	}
	return all, rows.Err()
}
