package controller

import (
	"time"

	"github.com/sirupsen/logrus"
)

// laps tells where the time of a cycle goes.
type laps struct {
	begun, last time.Time
	seconds     logrus.Fields // by part of the cycle
}

func newLaps() *laps {
	now := time.Now()
	return &laps{begun: now, last: now, seconds: logrus.Fields{}}
}

// lap ends a part.
func (l *laps) lap(part string) {
	now := time.Now()
	l.seconds[part] = now.Sub(l.last).Seconds()
	l.last = now
}

// log writes the parts and their sum.
func (l *laps) log(log *logrus.Logger) {
	if log.IsLevelEnabled(logrus.DebugLevel) {
		log.WithFields(l.seconds).WithField("seconds", time.Since(l.begun).Seconds()).Debug("cycle")
	}
}
