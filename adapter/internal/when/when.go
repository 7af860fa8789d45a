// Package when reads the times that sacct's users write.
package when

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts lists sacct's forms of dates and times; without a year it is this year, without a day it
// is today.
var layouts = []struct {
	layout    string
	year, day bool // whether the layout has it
}{
	{"2006-01-02T15:04:05", true, true}, {"2006-01-02T15:04", true, true}, {"2006-01-02-15:04:05", true, true}, {"2006-01-02-15:04", true, true}, {"2006-01-02", true, true},
	{"01/02/06-15:04:05", true, true}, {"01/02/06-15:04", true, true}, {"01/02/06", true, true}, {"01/02", false, true}, {"010206", true, true}, {"0102", false, true},
	{"15:04:05", false, false}, {"15:04", false, false},
}

// Parse reads a time as sacct does: 2026-11-25T12:00, 11/25/26, noon, now-7days, ….
func Parse(text string, now time.Time) (time.Time, error) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	word := strings.ToLower(text)
	switch word {
	case "now":
		return now, nil
	case "midnight", "today":
		return midnight, nil
	case "noon":
		return midnight.Add(12 * time.Hour), nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	if rest, ok := strings.CutPrefix(word, "now"); ok {
		if d, ok := parseOffset(rest); ok {
			return now.Add(d), nil
		}
	}
	for _, l := range layouts {
		t, err := time.ParseInLocation(l.layout, text, now.Location())
		switch {
		case err != nil:
			continue
		case !l.day:
			t = midnight.Add(t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())))
		case !l.year:
			t = time.Date(now.Year(), t.Month(), t.Day(), 0, 0, 0, 0, now.Location())
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("invalid time specification: %q", text)
}

// offsetUnits lists the units of parseOffset.
var offsetUnits = map[string]time.Duration{"": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour}

// parseOffset reads what sacct allows after "now": -90, +2hours, ….
func parseOffset(text string) (time.Duration, bool) {
	unit := strings.TrimLeft(text[min(1, len(text)):], "0123456789")
	n, err := strconv.Atoi(text[:len(text)-len(unit)])
	length, known := offsetUnits[strings.TrimSuffix(unit, "s")]
	ok := err == nil && known && (text[0] == '-' || text[0] == '+') && n > -100_000_000 && n < 100_000_000
	return time.Duration(n) * length, ok
}
