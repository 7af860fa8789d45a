package systemd

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
)

// entry holds what the journal got last.
type entry struct {
	said     string
	priority journal.Priority
	fields   map[string]string
	refused  error // its answer
	other    bytes.Buffer
}

// logTo returns a log that is written there.
func logTo(e *entry) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(hook{func(text string, p journal.Priority, all map[string]string) error {
		e.said, e.priority, e.fields = text, p, all
		return e.refused
	}, &e.other})
	return log
}

// TestJournal checks the fields of entries, and that what users write stays one bounded line.
func TestJournal(t *testing.T) {
	var got entry
	log := logTo(&got)
	evil := "x\nMESSAGE=forged\x1b[31m" + strings.Repeat("y", 1_000_000)
	log.WithFields(logrus.Fields{"job": 7, "user": evil, "hold-name": "evo_7_2_1", "_pid": 1, "message": "m", "priority": 0, "event": "e", "9": "n"}).WithError(errors.New("no")).Error("hold extended")
	if got.said[:35] != "hold extended 9=n _pid=1 error=no e" || strings.Contains(got.said, "\n") || len(got.said) > 4*mostMessage || got.priority != journal.PriErr {
		t.Errorf("%d: %.200q", got.priority, got.said)
	}
	if names := slices.Sorted(maps.Keys(got.fields)); strings.Join(names, " ") != "ERROR EVENT HOLD_NAME JOB PID SYSLOG_IDENTIFIER USER" || got.fields["EVENT"] != "hold extended" || got.fields["JOB"] != "7" {
		t.Errorf("%s: %.300v", names, got.fields)
	}
	if u := got.fields["USER"]; strings.ContainsAny(u, "\n\x1b") || len(u) > 4*mostValue {
		t.Errorf("user: %.100q", u)
	}
	many := logrus.Fields{}
	for i := range 1000 {
		many["k"+strconv.Itoa(i)] = i
	}
	if log.WithFields(many).Info("many"); len(got.fields) > mostFields || len(got.said) > 4*mostMessage {
		t.Errorf("%d fields, a line of %d bytes", len(got.fields), len(got.said))
	}
}

// TestJournalTakesNothing checks that JSON stays JSON, and that an entry that the journal does not take is written elsewhere, once.
func TestJournalTakesNothing(t *testing.T) {
	var got entry
	log := logTo(&got)
	log.SetFormatter(&logrus.JSONFormatter{})
	log.WithField("job", 7).Warn("late")
	if !strings.HasPrefix(got.said, `{"job":7,"level":"warning","msg":"late"`) || got.priority != journal.PriWarning || got.other.Len() > 0 {
		t.Errorf("%s, and elsewhere %s", got.said, &got.other)
	}
	got.refused = errors.New("no journal")
	log.Info("lost?")
	if n := strings.Count(got.other.String(), "lost?"); n != 1 {
		t.Errorf("an entry that the journal refused is written %d times: %s", n, &got.other)
	}
}
