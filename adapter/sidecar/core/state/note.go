package state

import (
	"maps"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// note is a log line under construction.
type note struct {
	C      *Core
	fields map[string]any
	err    error
}

func (n note) WithField(key string, value any) note {
	n.fields = maps.Clone(n.fields)
	if n.fields == nil {
		n.fields = map[string]any{}
	}
	n.fields[key] = value
	return n
}

func (n note) WithError(err error) note {
	n.err = err
	return n
}

func (n note) Debug(text string) { n.write("debug", text) }

func (n note) Info(text string) { n.write("info", text) }

func (n note) Warn(text string) { n.write("warning", text) }

func (n note) Error(text string) { n.write("error", text) }

func (n note) write(level, text string) {
	if n.C != nil {
		n.C.Emit(msg.Log{Level: level, Text: text, Fields: n.fields, Err: n.err})
	}
}
