package store

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestIdle: hours count by the part of them that is in the period, and over.
func TestIdle(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "db"))
	at := time.Date(2026, 11, 20, 13, 0, 0, 0, time.Local)
	for _, m := range []int{1, 59, 61} {
		must.OK(t, s.AddIdle(t.Context(), at.Add(time.Duration(m)*time.Minute), Idle{3600, 360_000}))
	}
	for name, c := range map[string]struct {
		from, to, now int // minutes
		want          float64
	}{
		"all": {-60, 300, 300, 10800}, "an hour": {0, 60, 300, 7200}, "half an hour": {30, 60, 300, 3600}, "parts of two": {30, 90, 300, 3600 + 1800},
		"until now": {0, 300, 90, 10800}, "before": {-100, 0, 300, 0}, "after": {120, 300, 300, 0}, "the last half of an hour that goes on": {75, 300, 90, 1800},
	} {
		minute := func(m int) time.Time { return at.Add(time.Duration(m) * time.Minute) }
		got, err := s.Idle(t.Context(), minute(c.from), minute(c.to), minute(c.now))
		if err != nil || got != (Idle{c.want, c.want * 100}) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}
