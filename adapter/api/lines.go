package api

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// Refused callers write to the log. So a caller may write lineBurst lines at once and one per
// lineEvery in the long run; all callers together, allLines times as many. The number of suppressed
// lines is written after lineEvery.
const (
	lineBurst = 5
	lineEvery = 30 * time.Second
	allLines  = 20
)

// lines bounds the lines of the log that callers cause.
type lines struct {
	each rates[holder]
	all  rates[bool]

	mu      sync.Mutex
	dropped map[holder]int
	after   func(time.Duration, func()) // time.AfterFunc; tests call it themselves
}

func newLines() *lines {
	often := 1 / lineEvery.Seconds()
	return &lines{each: rates[holder]{perSecond: often, burst: lineBurst}, all: rates[bool]{perSecond: allLines * often, burst: allLines * lineBurst},
		dropped: map[holder]int{}, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}
}

// write writes a line that a caller has caused, or counts it.
func (l *lines) write(who holder, now time.Time, entry *logrus.Entry, level logrus.Level, text string) {
	if l.each.take(who, now) && l.all.take(true, now) {
		entry.Log(level, text)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dropped) >= most {
		who = holder{}
	}
	if l.dropped[who]++; l.dropped[who] > 1 {
		return
	}
	l.after(lineEvery, func() {
		l.mu.Lock()
		n := l.dropped[who]
		delete(l.dropped, who)
		l.mu.Unlock()
		entry.WithField("suppressed", n).Log(level, "suppressed further lines of this caller, the first: "+text)
	})
}
