package slurmctl

import (
	"context"
	"sync/atomic"
	"time"
)

// Meter adds up the cost of commands whose context comes from WithMeter, and reads slurmctld's clock. It is safe for concurrent
// use.
type Meter struct {
	commands atomic.Int64
	cpu      atomic.Int64 // ns
	clock    atomic.Int64 // Unix seconds
}

type meterKey struct{}

// WithMeter returns a context whose commands m adds up.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// Commands returns how many commands have ended.
func (m *Meter) Commands() int { return int(m.commands.Load()) }

// CPU returns the processor time of the commands themselves, without waiting. Most of it goes into
// reading slurmctld's answers, so it grows with the answer, as slurmctld's own time does (22.05,
// 10,000 jobs: 45 ms for squeue, 21 ms in slurmctld).
func (m *Meter) CPU() time.Duration { return time.Duration(m.cpu.Load()) }

// Clock returns the time by slurmctld's clock, to the second, as it answered the last command that says so
// ([Client.Reservations]); zero if none did.
func (m *Meter) Clock() time.Time {
	if s := m.clock.Load(); s != 0 {
		return time.Unix(s, 0)
	}
	return time.Time{}
}

// MeterClock notes the time by slurmctld's clock in the context's meter, if it has one.
func MeterClock(ctx context.Context, at time.Time) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok && !at.IsZero() {
		m.clock.Store(at.Unix())
	}
}

// MeterCPU adds a command's processor time to the context's meter, if it has one.
func MeterCPU(ctx context.Context, cpu time.Duration) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.commands.Add(1)
		m.cpu.Add(int64(cpu))
	}
}
