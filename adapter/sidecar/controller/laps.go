package controller

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// laps measures where a cycle spends its time: from the start of a poll to the start of everything
// that follows from it.
type laps struct {
	polled  time.Time     // when the last poll began
	begun   time.Time     // this one; zero: no cycle is under way
	last    time.Time     // the end of the part before
	seconds logrus.Fields // by part of the cycle
}

// sees begins a cycle with an observation.
func (l *laps) sees(in msg.Input, now time.Time) {
	o, ok := in.(msg.Observation)
	if !ok {
		return
	}
	l.seconds = logrus.Fields{"interval": 0.0}
	if !l.polled.IsZero() {
		l.seconds["interval"] = o.Begun.Sub(l.polled).Seconds()
	}
	l.polled = o.Begun
	l.begun = time.Now().Add(-now.Sub(o.Begun)) // by the machine's clock
	l.last = l.begun
	l.lap("observe")
}

// lap ends a part. Without a cycle under way it does nothing.
func (l *laps) lap(part string) {
	if l.begun.IsZero() {
		return
	}
	now := time.Now()
	before, _ := l.seconds[part].(float64)
	l.seconds[part] = before + now.Sub(l.last).Seconds()
	l.last = now
}

// log writes the parts and their sum, and ends the cycle.
func (l *laps) log(log *logrus.Logger) {
	if !l.begun.IsZero() && log.IsLevelEnabled(logrus.DebugLevel) {
		log.WithFields(l.seconds).WithField("seconds", time.Since(l.begun).Seconds()).Debug("cycle")
	}
	l.begun = time.Time{}
}
