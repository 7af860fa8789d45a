package measured

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Bounds on what Read accepts.
const (
	maxBytes   = 16 << 20
	maxLine    = 64 << 10
	maxSamples = 1_000_000
	maxTime    = 1e10 // seconds, some 300 years
)

// Sample is the size of a run at a time.
type Sample struct {
	At   float64 // seconds, not falling from one sample to the next
	Size float64 // of the mesh, or of whatever grows: not negative
	Line int     // of the file, from 1
}

// What contrib/examples/amr prints: its mesh every 64 iterations, and at its end.
var (
	iteration = regexp.MustCompile(`^iteration \d+: (\S+) cells, (\S+) s$`)
	summary   = regexp.MustCompile(`^\d+ ranks, iterations \d+ to \d+ of \d+: (\S+) s, cells (\S+), `)
)

const fewer = "keep every tenth line: awk 'NR % 10 == 1'"

// Read returns the samples of a run, two or more: lines SECONDS SIZE, whose further columns it ignores, or among others the lines of
// contrib/examples/amr, whose run begins at 0. A comma may stand between columns; a line that begins with # is a comment. The error names
// the line. Read stops after 16 MiB, 64 KiB of a line, or a million samples.
func Read(r io.Reader) ([]Sample, error) {
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLine)
	var plain, amr series
	var strange error // the first line that is in no format, if no line is amr's
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if len(plain)+len(amr) > maxSamples {
			return nil, fmt.Errorf("line %d: more than %d samples; %s", number, maxSamples, fewer)
		}
		var err error
		if m := iteration.FindStringSubmatch(text); m != nil {
			err = amr.add(m[2], m[1], number)
		} else if m := summary.FindStringSubmatch(text); m != nil {
			err = amr.add(m[1], m[2], number)
		} else if strange == nil && text != "" && text[0] != '#' {
			strange = plain.columns(text, number)
		}
		if err != nil {
			return nil, err
		}
	}
	switch err := lines.Err(); {
	case limited.N == 0:
		return nil, fmt.Errorf("line %d: more than %d MiB; %s", number, maxBytes>>20, fewer)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than %d KiB: want lines SECONDS SIZE", number+1, maxLine>>10)
	case err != nil:
		return nil, err
	case len(amr) > 0:
		return append([]Sample{{Size: amr[0].Size, Line: amr[0].Line}}, amr...), nil
	case strange != nil:
		return nil, strange
	case len(plain) < 2:
		return nil, fmt.Errorf("%d lines SECONDS SIZE: want two or more; the last one ends the run", len(plain))
	}
	return plain, nil
}

type series []Sample

// columns adds a line of the plain format.
func (s *series) columns(text string, line int) error {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(fields) < 2 {
		return fmt.Errorf("line %d: %s: want SECONDS SIZE; begin other lines with #", line, quote(text))
	}
	return s.add(fields[0], fields[1], line)
}

func (s *series) add(at, size string, line int) (err error) {
	next := Sample{Line: line}
	if next.At, err = number("time", at); err == nil {
		next.Size, err = number("size", size)
	}
	switch {
	case err != nil:
		return fmt.Errorf("line %d: %w", line, err)
	case next.At > maxTime:
		return fmt.Errorf("line %d: time %s is more than %.0e seconds; give seconds since the run's start", line, quote(at), maxTime)
	case len(*s) > 0 && next.At < (*s)[len(*s)-1].At:
		return fmt.Errorf("line %d: time falls from %g to %g; give one run, in the order of its times", line, (*s)[len(*s)-1].At, next.At)
	}
	*s = append(*s, next)
	return nil
}

func number(what, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, fmt.Errorf("%s %s is not finite; remove the line, or find out why the code printed it", what, quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s %s is no number; begin lines without numbers with #", what, quote(text))
	case x < 0:
		return 0, fmt.Errorf("%s %s is negative; want 0 or more", what, quote(text))
	}
	return x, nil
}

func quote(text string) string {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return strconv.Quote(text)
}
