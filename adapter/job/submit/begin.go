package submit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// ParkedUntil is the begin time that keeps a job waiting until the sidecar starts it: later than
// any real begin time, and within Slurm's range.
const ParkedUntil = "2100-01-01T00:00:00"

// clockWords lists the named times of day of --begin, in hours.
var clockWords = map[string]int{"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}

// deltaUnits lists the units of now+count; a count without a unit is seconds.
var deltaUnits = []struct {
	name    string
	seconds int64
}{
	{"seconds", 1}, {"second", 1}, {"minutes", 60}, {"minute", 60}, {"hours", 3600}, {"hour", 3600},
	{"days", 86400}, {"day", 86400}, {"weeks", 7 * 86400}, {"week", 7 * 86400},
}

// parseBegin resolves a value of sbatch's --begin as Slurm 22.05 to 26.05 do, at time now and in
// its time zone. The grammar is loose: any number of
//
//	today tomorrow midnight noon elevenses fika teatime now[{+|-}count[unit]]
//	HH:MM[:SS][AM|PM]  MMDD[YY] MM/DD[/YY] MM.DD[.YY] YYYY-MM-DD[THH:MM[:SS]]
//	uts<Unix seconds>
//
// put together with blanks or '-', where a later word replaces an earlier one. A
// time of day alone is the next such, a day alone is its first minute.
func parseBegin(text string, now time.Time) (time.Time, error) {
	bad := func() (time.Time, error) {
		return time.Time{}, fmt.Errorf("begin time %q is not understood (HH:MM, MM/DD/YY, 2030-01-31T14:00, now+1hour)", legible.Brief(text))
	}
	if rest, ok := cutPrefixFold(text, "uts"); ok {
		unix, err := strconv.ParseInt(rest, 10, 64)
		if err != nil || unix < 1000000 {
			return bad()
		}
		return time.Unix(unix, 0), nil
	}
	b := beginTime{now: now}
	for rest := text; rest != ""; {
		if c := rest[0]; c == ' ' || c == '\t' || c == '-' || c == 'T' {
			rest = rest[1:]
			continue
		}
		var ok bool
		if rest, ok = b.take(rest); !ok {
			return bad()
		}
	}
	if !b.hasDay && !b.hasClock {
		return bad()
	}
	return b.resolve()
}

// beginTime collects the words of a begin time.
type beginTime struct {
	now                  time.Time
	year, month, day     int // year 0: not said
	hour, minute, second int
	hasDay, hasClock     bool
}

// take reads one word from the front of text.
func (b *beginTime) take(text string) (string, bool) {
	if rest, ok := cutPrefixFold(text, "today"); ok {
		b.setDay(b.now)
		return rest, true
	}
	if rest, ok := cutPrefixFold(text, "tomorrow"); ok {
		b.setDay(b.now.Add(24 * time.Hour))
		return rest, true
	}
	for word, hour := range clockWords {
		if rest, ok := cutPrefixFold(text, word); ok {
			b.setClock(hour, 0, 0)
			return rest, true
		}
	}
	if rest, ok := cutPrefixFold(text, "now"); ok {
		return b.takeDelta(rest)
	}
	if len(text) > 1 && text[1] == ':' || len(text) > 2 && text[2] == ':' {
		return b.takeClock(text)
	}
	return b.takeDay(text)
}

func (b *beginTime) setDay(t time.Time) {
	b.year, b.month, b.day, b.hasDay = t.Year(), int(t.Month()), t.Day(), true
}

func (b *beginTime) setClock(hour, minute, second int) {
	b.hour, b.minute, b.second, b.hasClock = hour, minute, second, true
}

// takeDelta reads [{+|-}count[unit]] after the word now; blanks may stand in between.
func (b *beginTime) takeDelta(text string) (string, bool) {
	var delta int64
	rest := strings.TrimLeft(text, " \t")
	if rest != "" {
		sign := int64(1)
		switch rest[0] {
		case '+':
		case '-':
			sign = -1
		default:
			return "", false
		}
		digits := strings.TrimLeft(rest[1:], " \t")
		n := 0
		for n < len(digits) && isDigit(digits[n]) {
			n++
		}
		count, err := strconv.ParseInt(digits[:n], 10, 32)
		if err != nil {
			return "", false
		}
		rest = strings.TrimLeft(digits[n:], " \t")
		unit := int64(1)
		for _, u := range deltaUnits {
			if after, ok := cutPrefixFold(rest, u.name); ok {
				unit, rest = u.seconds, after
				break
			}
		}
		delta = sign * count * unit
	}
	t := b.now.Add(time.Duration(delta) * time.Second)
	b.setDay(t)
	b.setClock(t.Hour(), t.Minute(), t.Second())
	return rest, true
}

// takeClock reads HH:MM[:SS] and AM or PM.
func (b *beginTime) takeClock(text string) (string, bool) {
	hour, rest, ok := takeNumber(text, 1, 2, 0, 23)
	if !ok || !strings.HasPrefix(rest, ":") {
		return "", false
	}
	minute, rest, ok := takeNumber(rest[1:], 2, 2, 0, 59)
	if !ok {
		return "", false
	}
	second := 0
	if strings.HasPrefix(rest, ":") {
		if second, rest, ok = takeNumber(rest[1:], 2, 2, 0, 59); !ok {
			return "", false
		}
	}
	if after, pm := cutPrefixFold(strings.TrimLeft(rest, " \t"), "pm"); pm {
		if hour > 12 {
			return "", false
		}
		hour, rest = hour%12+12, after
	} else if after, am := cutPrefixFold(strings.TrimLeft(rest, " \t"), "am"); am {
		if hour > 12 {
			return "", false
		}
		hour, rest = hour%12, after
	}
	b.setClock(hour, minute, second)
	return rest, true
}

// takeDay reads YYYY-MM-DD, or a month, a day and perhaps a year of two digits
// with '/', '.' or nothing between them.
func (b *beginTime) takeDay(text string) (string, bool) {
	if len(text) >= 8 && text[4] == '-' && text[7] == '-' {
		year, rest, ok := takeNumber(text, 4, 4, 1, 9999)
		if !ok {
			return "", false
		}
		month, rest, ok := takeNumber(rest[1:], 2, 2, 1, 12)
		if !ok {
			return "", false
		}
		day, rest, ok := takeNumber(rest[1:], 1, 2, 1, 31)
		b.year, b.month, b.day, b.hasDay = year, month, day, true
		return rest, ok
	}
	month, rest, ok := takeNumber(text, 1, 2, 1, 12)
	if !ok {
		return "", false
	}
	day, rest, ok := takeNumber(skipDateMark(rest), 1, 2, 1, 31)
	if !ok {
		return "", false
	}
	rest = skipDateMark(rest)
	year := 0
	if rest != "" && isDigit(rest[0]) {
		if year, rest, ok = takeNumber(rest, 2, 2, 0, 99); !ok {
			return "", false
		}
		if year != 0 { // Slurm takes the year 00 for none
			year += 2000
		}
	}
	b.year, b.month, b.day, b.hasDay = year, month, day, true
	return rest, true
}

// resolve fills in missing parts: the next time that fits.
func (b *beginTime) resolve() (time.Time, error) {
	local := b.now.Location()
	nowClock := b.now.Hour()*60 + b.now.Minute()
	clock := b.hour*60 + b.minute
	if !b.hasDay {
		if clock > nowClock {
			b.setDay(b.now)
		} else {
			b.setDay(b.now.Add(24 * time.Hour))
		}
	}
	if b.year == 0 {
		today := int(b.now.Month())*100 + b.now.Day()
		day := b.month*100 + b.day
		b.year = b.now.Year()
		if day < today || day == today && clock <= nowClock {
			b.year++
		}
	}
	return time.Date(b.year, time.Month(b.month), b.day, b.hour, b.minute, b.second, 0, local), nil
}

// takeNumber reads a number of low to high from at least least and at most most
// digits at the front of text.
func takeNumber(text string, least, most, low, high int) (int, string, bool) {
	n := 0
	for n < len(text) && n < most && isDigit(text[n]) {
		n++
	}
	if n < least {
		return 0, "", false
	}
	value, err := strconv.Atoi(text[:n])
	return value, text[n:], err == nil && value >= low && value <= high
}

func skipDateMark(text string) string {
	if text != "" && (text[0] == '/' || text[0] == '.') {
		return text[1:]
	}
	return text
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// cutPrefixFold is strings.CutPrefix without regard to case, for ASCII.
func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}
