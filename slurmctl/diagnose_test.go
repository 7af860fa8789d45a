package slurmctl

import (
	"errors"
	"testing"
	"time"
)

// TestSlurmdbd interprets what sacctmgr does and says.
func TestSlurmdbd(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		calls  uint64
		away   bool
	}{
		"connected":                     {"", 1, false},
		"refused, with exit status 0":   {"echo 'sacctmgr: error: Sending PersistInit msg: Connection refused' >&2\n[ $2 = exit ]", 2, true},
		"a warning of another kind":     {"echo 'sacctmgr: error: ignoring an old option' >&2", 2, false},
		"away between the two":          {"[ $2 = exit ] && echo warning >&2", 2, true},
		"no accounting storage":         {"echo 'You are not running a supported accounting_storage plugin' >&2; exit 1", 1, true},
		"libraries of another release":  {"exit 127", 1, true},
		"connected, but no answer ever": {"sleep 60", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := stand(t, "sacctmgr", c.script)
			if c.script == "sleep 60" {
				client.Timeout = 100 * time.Millisecond
			}
			err := client.Slurmdbd(t.Context())
			if errors.Is(err, ErrNoSlurmdbd) != c.away || (err != nil) != c.away || client.calls.Load() != c.calls {
				t.Errorf("%v after %d commands", err, client.calls.Load())
			}
		})
	}
	if err := (&Client{Dir: t.TempDir()}).Slurmdbd(t.Context()); err != nil {
		t.Error("without sacctmgr:", err)
	}
}
