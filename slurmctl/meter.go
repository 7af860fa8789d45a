package slurmctl

import (
	"context"
	"sync/atomic"
	"time"
)

// Meter adds up what the commands cost that run with a context of WithMeter. It is
// safe for concurrent use.
type Meter struct {
	commands atomic.Int64
	cpu      atomic.Int64 // ns
}

type meterKey struct{}

// WithMeter gives a context whose commands are added up in m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// Commands is how many commands have ended.
func (m *Meter) Commands() int { return int(m.commands.Load()) }

// CPU is the processor time that these commands themselves took. Most of it goes into
// reading what slurmctld answers, so that it grows with the answer as slurmctld's own
// does (22.05, 10,000 jobs: 45 ms for squeue, 21 ms in slurmctld), and holds no wait.
func (m *Meter) CPU() time.Duration { return time.Duration(m.cpu.Load()) }

// metered adds a command that took so long to the context's meter, if it has one.
func metered(ctx context.Context, cpu time.Duration) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.commands.Add(1)
		m.cpu.Add(int64(cpu))
	}
}
