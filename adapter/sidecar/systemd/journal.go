package systemd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// Bounds of an entry of the journal. Values may come from users.
const (
	mostFields  = 32
	mostValue   = 1000 // characters
	mostMessage = 4000
)

// Journal has a log written into the journal with its fields, if the standard error is the journal's; then nothing is
// written to the standard error, which would double each line.
func Journal(log *logrus.Logger) {
	if is, err := journal.StderrIsJournalStream(); is && err == nil && journal.Enabled() {
		log.SetOutput(io.Discard)
		log.AddHook(hook{journal.Send, os.Stderr})
	}
}

// hook writes entries; other gets those that the journal does not take.
type hook struct {
	send  func(message string, p journal.Priority, fields map[string]string) error
	other io.Writer
}

// Levels implements logrus.Hook.
func (hook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (h hook) Fire(e *logrus.Entry) error {
	priorities := map[logrus.Level]journal.Priority{logrus.PanicLevel: journal.PriEmerg, logrus.FatalLevel: journal.PriCrit, logrus.ErrorLevel: journal.PriErr,
		logrus.WarnLevel: journal.PriWarning, logrus.InfoLevel: journal.PriInfo, logrus.DebugLevel: journal.PriDebug, logrus.TraceLevel: journal.PriDebug}
	if err := h.send(message(e), priorities[e.Level], fields(e)); err == nil {
		return nil
	}
	text, err := e.Logger.Formatter.Format(e)
	if err == nil {
		_, err = h.other.Write(text)
	}
	return err
}

// message returns what people read: the event and its fields, or JSON if that is configured.
func message(e *logrus.Entry) string {
	if _, is := e.Logger.Formatter.(*logrus.JSONFormatter); is {
		if text, err := e.Logger.Formatter.Format(e); err == nil && len(text) <= 4*mostMessage {
			return strings.TrimSpace(string(text))
		}
	}
	text := e.Message
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		value := valueOf(e.Data[key])
		if strings.ContainsAny(value, " =\"") || value == "" {
			value = fmt.Sprintf("%q", value)
		}
		text += " " + key + "=" + value
		if len(text) > 4*mostMessage {
			break
		}
	}
	return legible.Cut(legible.Printable(text, false), mostMessage, "…")
}

// fields returns an entry's fields by the journal's names: JOB, USER, …, and EVENT for the constant text.
func fields(e *logrus.Entry) map[string]string {
	all := map[string]string{"EVENT": valueOf(e.Message), "SYSLOG_IDENTIFIER": "evoslurmd"}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		name := strings.TrimLeft(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z':
				return r - 'a' + 'A'
			case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
				return r
			}
			return '_'
		}, key), "_0123456789")
		if _, taken := all[name]; taken || name == "" || name == "MESSAGE" || name == "PRIORITY" || len(name) > 64 || len(all) >= mostFields {
			continue // message has it
		}
		all[name] = valueOf(e.Data[key])
	}
	return all
}

// valueOf returns a value as one bounded line.
func valueOf(value any) string {
	return legible.Cut(legible.Printable(fmt.Sprint(value), false), mostValue, "…")
}
