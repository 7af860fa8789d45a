package observed

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const suffix = ".jsonl.gz"

func fileName(day string, number int) string {
	if number > 1 {
		day += "." + strconv.Itoa(number)
	}
	return day + suffix
}

// parseName returns the day and number in a file name; number 0: it is no file of a record.
func parseName(name string) (day string, number int) {
	base, ours := strings.CutSuffix(filepath.Base(name), suffix)
	day, text, more := strings.Cut(base, ".")
	if _, err := time.Parse(time.DateOnly, day); err != nil || !ours {
		return "", 0
	}
	if !more {
		return day, 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || strconv.Itoa(n) != text {
		return "", 0
	}
	return day, n
}

// Day is a day with its files, in the order in which they were written.
type Day struct {
	Date  string // UTC, 2026-11-25
	Files []string
}

// Days returns the days of a folder, oldest first. A folder that does not exist has none.
func Days(dir string) ([]Day, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var days []Day
	for _, e := range entries { // by name, so by day
		day, number := parseName(e.Name())
		if number == 0 {
			continue
		}
		if len(days) == 0 || days[len(days)-1].Date != day {
			days = append(days, Day{Date: day})
		}
		last := &days[len(days)-1]
		last.Files = append(last.Files, filepath.Join(dir, e.Name()))
	}
	for _, d := range days {
		slices.SortFunc(d.Files, func(a, b string) int {
			_, m := parseName(a)
			_, n := parseName(b)
			return cmp.Compare(m, n)
		})
	}
	return days, nil
}

var (
	// ErrForeign means that a file is no record.
	ErrForeign = errors.New("not a file of observed days")
	// ErrNewer means that a later version has written a file.
	ErrNewer = errors.New("a later version of Evoslurm has written it: read it with that version")
	// ErrCut means that a file ends early: the sidecar died, or still writes it. All lines before are whole.
	ErrCut = errors.New("the file ends early")
	// ErrDamaged means that the rest of a file cannot be read. All lines before are whole.
	ErrDamaged = errors.New("the rest of the file cannot be read")
)

// mostLine bounds a line: the heading of a large site.
const mostLine = 64 << 20

// Reader reads one file.
type Reader struct {
	Heading Heading
	lines   *bufio.Scanner
	f       io.Closer
}

// Open opens a file and reads its heading.
func Open(name string) (*Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.f = f
	return r, nil
}

// NewReader begins to read.
func NewReader(in io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	r := &Reader{lines: bufio.NewScanner(zip)}
	r.lines.Buffer(nil, mostLine)
	line, err := r.line()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := json.Unmarshal(line, &struct{ Format *int }{&r.Heading.Format}); err != nil || r.Heading.Format < 1 {
		return nil, ErrForeign
	}
	if r.Heading.Format > Format {
		return nil, fmt.Errorf("%w (format %d)", ErrNewer, r.Heading.Format)
	}
	if err := json.Unmarshal(line, &r.Heading); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return r, nil
}

func (r *Reader) line() ([]byte, error) {
	if r.lines.Scan() {
		return r.lines.Bytes(), nil
	}
	switch err := r.lines.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrCut
	default:
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
}

// Next returns the next record; [io.EOF] after the last one.
func (r *Reader) Next() (Record, error) {
	line, err := r.line()
	if err != nil {
		return Record{}, err
	}
	var one Record
	if err := json.Unmarshal(line, &one); err != nil {
		if !r.lines.Scan() && errors.Is(r.lines.Err(), io.ErrUnexpectedEOF) {
			return Record{}, ErrCut // within a line
		}
		return Record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return one, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}
