package display

import (
	"fmt"
	"strings"
	"time"
)

// SlurmTime writes a time as Slurm's commands do, by the value of SLURM_TIME_FORMAT: standard (or
// none), relative, or a format of strftime(3). It treats formats that they reject, and a zero time,
// as they do.
func SlurmTime(t, now time.Time, format string) string {
	if t.IsZero() {
		return "Unknown"
	}
	t = t.In(now.Location())
	switch {
	case format == "relative":
		return strftime(t, relative(t, now))
	case strings.Contains(format, "%") && len(format) < 32:
		return strftime(t, format)
	}
	return t.Format("2006-01-02T15:04:05")
}

// relative returns the format in which Slurm shows a time, relative to now.
func relative(t, now time.Time) string {
	day := func(t time.Time) int { return 1000*t.Year() + t.YearDay() }
	switch d := day(t) - day(now); {
	case d == -1:
		return "Ystday %H:%M"
	case d == 0:
		return "%H:%M:%S"
	case d == 1:
		return "Tomorr %H:%M"
	case d < -365 || d > 365:
		return "%-d %b %Y"
	case d < -1 || d > 6:
		return "%-d %b %H:%M"
	}
	return "%a %H:%M"
}

// conversions of strftime(3) in the locale C, by Go's layouts.
var conversions = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
	'%': "%", 'n': "\n", 't': "\t",
}

// strftime is strftime(3) in the locale C; it leaves unknown conversions as they are.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := format[i] == '-' && i+1 < len(format)
		if plain {
			i++
		}
		text := "%" + string(format[i])
		switch c := format[i]; c {
		case 's':
			text = fmt.Sprint(t.Unix())
		case 'k':
			text = fmt.Sprintf("%2d", t.Hour())
		case 'l':
			text = fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
		case 'u':
			text = fmt.Sprint((int(t.Weekday())+6)%7 + 1)
		case 'w':
			text = fmt.Sprint(int(t.Weekday()))
		default:
			if layout, known := conversions[c]; known {
				text = t.Format(layout)
			}
		}
		if plain {
			text = strings.TrimLeft(text[:len(text)-1], "0 ") + text[len(text)-1:]
		}
		b.WriteString(text)
	}
	return b.String()
}
