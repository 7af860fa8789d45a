package chart

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Span is a stretch of a job as drawn: allocated until now, or planned from then on.
type Span struct {
	api.Span
	Planned bool
}

// Spans returns a job's allocations until now and its plan from then on. All spans have an end and
// nodes.
func Spans(j api.Job, now time.Time) []Span {
	var spans []Span
	for _, p := range j.Past {
		if p.End.IsZero() || p.End.After(now) {
			p.End = now
		}
		if p.Nodes > 0 && p.End.After(p.Start) {
			spans = append(spans, Span{p, false})
		}
	}
	if j.State == "ended" {
		return spans
	}
	for _, p := range j.Plan {
		p.Start = later(p.Start, now)
		if p.Nodes > 0 && p.End.After(p.Start) {
			spans = append(spans, Span{p, true})
		}
	}
	return spans
}

// Mark is a time on an axis.
type Mark struct {
	At   time.Time
	Text string
}

// Marks returns at most that many round times between two times, in the first one's time zone,
// written as finely as their distance.
func Marks(from, to time.Time, most int) []Mark {
	width := to.Sub(from)
	if width <= 0 || most < 1 {
		return nil
	}
	tick := ticks[len(ticks)-1]
	for _, t := range ticks {
		if int64(width/t) < int64(most) {
			tick = t
			break
		}
	}
	for int64(width/tick) >= int64(most) {
		tick *= 2
	}
	var marks []Mark
	for t := firstMark(from, tick); !t.After(to); t = t.Add(tick) {
		marks = append(marks, Mark{t, clock(t, tick)})
	}
	return marks
}

// firstMark returns the first round time at or after another, by the clock of its place.
func firstMark(from time.Time, tick time.Duration) time.Time {
	_, offset := from.Zone()
	shift := time.Duration(offset) * time.Second
	t := from.Add(shift).Truncate(tick).Add(-shift)
	if t.Before(from) {
		t = t.Add(tick)
	}
	return t
}
