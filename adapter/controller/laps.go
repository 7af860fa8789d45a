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

func newLaps(begun time.Time) *laps {
	return &laps{begun: begun, last: begun, seconds: logrus.Fields{}}
}

// lap ends a part. Without a cycle under way (nil) it does nothing.
func (l *laps) lap(part string) {
	if l == nil {
		return
	}
	now := time.Now()
	l.seconds[part] = now.Sub(l.last).Seconds()
	l.last = now
}

// log writes the parts and their sum.
func (l *laps) log(log *logrus.Logger) {
	if l != nil && log.IsLevelEnabled(logrus.DebugLevel) {
		log.WithFields(l.seconds).WithField("seconds", time.Since(l.begun).Seconds()).Debug("cycle")
	}
}
