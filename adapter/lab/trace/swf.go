package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields of a line of SWF 2.2.
var fields = [...]struct {
	name  string
	whole bool
}{
	{"number", true}, {"submit", false}, {"wait", false}, {"run", false}, {"processors", true}, {"CPU time", false},
	{"memory", false}, {"requested processors", true}, {"requested time", false}, {"requested memory", false},
	{"status", true}, {"user", true}, {"group", true}, {"application", true}, {"queue", true}, {"partition", true},
	{"preceding job", true}, {"think time", false},
}

func fieldName(i int) string { return fmt.Sprintf("field %d (%s)", i+1, fields[i].name) }

// values returns a job's fields, as SWF has them.
func (j *Job) values() [len(fields)]float64 {
	return [...]float64{float64(j.Number), j.Submit, j.Wait, j.Run, float64(j.Processors), j.CPU, j.Memory, float64(j.Wanted), j.Limit,
		j.WantedMemory, float64(j.Status), float64(j.User), float64(j.Group), float64(j.Application), float64(j.Queue),
		float64(j.Partition), float64(j.Preceding), j.Think}
}

// fromValues checks and takes fields.
func fromValues(v [len(fields)]float64) (Job, *Fault) {
	for i, x := range v {
		switch {
		case x != x || x > mostNumber || x < 0 && x != -1:
			return Job{}, &Fault{Field: fieldName(i), Err: fmt.Errorf("%s; want -1 … 2^53", number(x))}
		case fields[i].whole && x != math.Trunc(x):
			return Job{}, &Fault{Field: fieldName(i), Err: fmt.Errorf("%s; want a whole number", number(x))}
		}
	}
	return ofValues(v), nil
}

// ofValues returns the job of these fields.
func ofValues(v [len(fields)]float64) Job {
	whole := func(i int) int64 { return int64(v[i]) }
	return Job{Number: whole(0), Submit: v[1], Wait: v[2], Run: v[3], Processors: whole(4), CPU: v[5], Memory: v[6], Wanted: whole(7), Limit: v[8],
		WantedMemory: v[9], Status: whole(10), User: whole(11), Group: whole(12), Application: whole(13), Queue: whole(14), Partition: whole(15),
		Preceding: whole(16), Think: v[17]}
}

// number returns a number as SWF has it.
func number(x float64) string {
	if math.Abs(x) > 1e21 {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// swf reads the Standard Workload Format.
type swf struct {
	text  *bufio.Reader
	line  int
	jobs  int
	loose int // comments between jobs
	more  int // lines with more fields

	seen   *numbers // of the jobs so far
	ahead  *taken   // the line behind a job's parts
	passed int      // parts of jobs that are there as a whole
	joined int      // jobs that are not
}

// taken is the content of a line.
type taken struct {
	job Job
	at  string
	err error
}

func (s *swf) next(h *Header) (Job, string, error) {
	for {
		j, at, err := s.take(h)
		switch {
		case err != nil || !j.part():
			return j, at, err
		case s.seen.has(&j):
			s.passed++
		default:
			return s.parts(h, j, at)
		}
	}
}

// parts returns the job that a line is the first part of: the line of the whole, if that stands behind its parts, else what these
// add up to.
func (s *swf) parts(h *Header, j Job, at string) (Job, string, error) {
	for n := 1; ; n++ {
		next, place, err := s.take(h)
		switch same := err == nil && next.Number == j.Number; {
		case same && next.part():
			j.join(&next)
		case same:
			s.passed += n
			return next, place, nil
		default:
			s.ahead = &taken{next, place, err}
			s.joined++
			j.Status = map[int64]int64{2: -1, 3: 1, 4: 0}[j.Status]
			return j, at, nil
		}
	}
}

// part reports whether a line is a part of a job, from one swap-in or checkpoint to the next: 2 is
// continued, 3 is the last part of a completed job, 4 of a failed one.
func (j *Job) part() bool { return j.Status >= 2 && j.Status <= 4 }

// join adds the next part.
func (j *Job) join(next *Job) {
	for _, t := range [][2]*float64{{&j.Run, &next.Run}, {&j.CPU, &next.CPU}} {
		*t[0] = max(*t[0], *t[1], *t[0]+*t[1]) // where only one is known, that
	}
	j.Processors, j.Wanted, j.Status = max(j.Processors, next.Processors), max(j.Wanted, next.Wanted), next.Status
	j.Memory, j.Limit = max(j.Memory, next.Memory), max(j.Limit, next.Limit)
}

// take returns what the next line with a job tells.
func (s *swf) take(h *Header) (Job, string, error) {
	if l := s.ahead; l != nil {
		s.ahead = nil
		return l.job, l.at, l.err
	}
	for {
		line, err := s.read()
		at := "line " + strconv.Itoa(s.line)
		switch {
		case errors.Is(err, io.EOF):
			return Job{}, "", io.EOF
		case err != nil:
			if fault, ok := errors.AsType[*Fault](err); ok {
				fault.At = at
			}
			return Job{}, at, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if bytes.ContainsRune(line, '\r') {
			return Job{}, at, &Fault{At: at, Err: errors.New("has a carriage return in it; lines end in a newline")}
		}
		if line[0] == ';' {
			if s.jobs > 0 {
				s.loose++
			} else if len(h.Lines) == mostHead {
				return Job{}, at, fmt.Errorf("a header of more than %d lines", mostHead)
			} else {
				h.add(utf(line[1:]))
			}
			continue
		}
		s.jobs++
		j, fault := s.job(line)
		if fault != nil {
			fault.At = at
			return Job{}, at, fault
		}
		return j, at, nil
	}
}

// read returns a line; one that is too long is read over.
func (s *swf) read() ([]byte, error) {
	s.line++
	line, err := s.text.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, nil // the last one ends without a newline
	case !errors.Is(err, bufio.ErrBufferFull):
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = s.text.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, &Fault{Err: fmt.Errorf("longer than %d bytes", mostLine)}
}

func (s *swf) job(line []byte) (Job, *Fault) {
	var v [len(fields)]float64
	n := 0
	rest := line
	for n < len(fields) && len(rest) > 0 {
		end := 0
		for end < len(rest) && rest[end] != ' ' && rest[end] != '\t' {
			end++
		}
		x, ok := parse(rest[:end])
		if !ok {
			return Job{}, &Fault{Field: fieldName(n), Err: fmt.Errorf("%.40q; want a number", rest[:end])}
		}
		v[n] = x
		n++
		rest = bytes.TrimLeft(rest[end:], " \t")
	}
	if n < len(fields) {
		return Job{}, &Fault{Err: fmt.Errorf("%d fields; a job has %d", n, len(fields))}
	}
	j, fault := fromValues(v)
	if fault == nil && len(rest) > 0 {
		j.More = utf(rest)
		s.more++
	}
	return j, fault
}

// parse reads a number; most are short and whole.
func parse(word []byte) (float64, bool) {
	digits := word
	if len(word) > 1 && word[0] == '-' {
		digits = word[1:]
	}
	if len(digits) > 0 && len(digits) < 16 {
		n := int64(0)
		for _, c := range digits {
			if c < '0' || c > '9' {
				n = -1
				break
			}
			n = 10*n + int64(c-'0')
		}
		if n >= 0 && len(digits) < len(word) {
			return float64(-n), true
		} else if n >= 0 {
			return float64(n), true
		}
	}
	x, err := strconv.ParseFloat(string(word), 64)
	return x, err == nil && !math.IsInf(x, 0) && x == x
}

// utf returns text from a log. Text that is not UTF-8, as in old logs, is read as ISO 8859-1, so
// that JSON can hold it.
func utf(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return string(runes)
}

func (s *swf) notes() (notes []string) {
	if s.passed > 0 {
		notes = append(notes, fmt.Sprintf("%d lines are parts (status 2 to 4) of jobs that are there as a whole; they are passed over", s.passed))
	}
	if s.joined > 0 {
		notes = append(notes, fmt.Sprintf("%d jobs are there in parts only (status 2 to 4); these are added up", s.joined))
	}
	if s.loose > 0 {
		notes = append(notes, fmt.Sprintf("%d comments between jobs are left out", s.loose))
	}
	if s.more > 0 {
		notes = append(notes, fmt.Sprintf("%d lines have more than %d fields; these are kept", s.more, len(fields)))
	}
	return notes
}

// add takes a line of a header.
func (h *Header) add(line string) {
	h.Lines = append(h.Lines, line)
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch key = strings.TrimSpace(key); key {
	case "TimeZoneString":
		h.Zone = value
		return
	case "MaxNodes", "MaxProcs", "MaxJobs", "UnixStartTime":
	default:
		return
	}
	word, _, _ := strings.Cut(value, " ") // some say more behind it
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return
	}
	if key == "UnixStartTime" {
		h.UnixStart = n
	} else if n >= 1 && n <= math.MaxInt32 {
		switch key {
		case "MaxNodes":
			h.Nodes = int(n)
		case "MaxProcs":
			h.Processors = int(n)
		case "MaxJobs":
			h.Jobs = int(n)
		}
	}
}

// odd returns the lines that are to tell a size, and tell none.
func (h *Header) odd() (all []string) {
	for _, l := range h.Lines {
		key, value, _ := strings.Cut(l, ":")
		word, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		switch key = strings.TrimSpace(key); key {
		case "MaxNodes", "MaxProcs", "MaxJobs":
			n, err := strconv.ParseInt(word, 10, 64)
			if known := word != "" && n != -1; known && (err != nil || n < 0 || n > math.MaxInt32) && len(all) < mostFaults {
				all = append(all, fmt.Sprintf("%s: %.40s", key, word))
			}
		}
	}
	return all
}

// Value returns what the header's first line of a key has; "": there is none.
func (h *Header) Value(key string) string {
	for _, l := range h.Lines {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Set gives the header's lines of a key a value, and adds one where there is none.
func (h *Header) Set(key, value string) {
	line := " " + key + ": " + value
	kept := h.Lines[:0:0]
	found := false
	for _, l := range h.Lines {
		if k, _, _ := strings.Cut(l, ":"); strings.TrimSpace(k) == key {
			if !found {
				kept = append(kept, line)
			}
			found = true
			continue
		}
		kept = append(kept, l)
	}
	if !found {
		kept = append(kept, line)
	}
	h.Lines = nil
	h.Jobs, h.Nodes, h.Processors = 0, 0, 0
	h.UnixStart = -1
	for _, l := range kept {
		h.add(l)
	}
}

// Drop leaves out the lines of keys.
func (h *Header) Drop(keys ...string) {
	lines := h.Lines
	h.Lines, h.Jobs = nil, 0
	for _, l := range lines {
		if k, _, _ := strings.Cut(l, ":"); !slices.Contains(keys, strings.TrimSpace(k)) {
			h.add(l)
		}
	}
}

type swfWriter struct {
	w    *bufio.Writer
	line []byte
}

func newSWFWriter(w *bufio.Writer, h Header) *swfWriter {
	for _, key := range []struct {
		name string
		n    int
	}{{"MaxNodes", h.Nodes}, {"MaxProcs", h.Processors}} { // of formats that tell without lines
		told := Header{}
		for _, l := range h.Lines {
			told.add(l)
		}
		if key.n > 0 && (key.name == "MaxNodes" && told.Nodes != key.n || key.name == "MaxProcs" && told.Processors != key.n) {
			h.Set(key.name, strconv.Itoa(key.n))
		}
	}
	for _, l := range h.Lines {
		fmt.Fprintf(w, ";%s\n", l)
	}
	return &swfWriter{w: w}
}

func (s *swfWriter) Write(j Job) error {
	if j.Kind() != Rigid {
		return fmt.Errorf("job %d is %s, which SWF has no words for; write json", j.Number, j.Kind())
	}
	s.line = s.line[:0]
	for i, x := range j.values() {
		if i > 0 {
			s.line = append(s.line, ' ')
		}
		s.line = strconv.AppendFloat(s.line, x, 'f', -1, 64)
	}
	if j.More != "" {
		s.line = append(append(s.line, ' '), j.More...)
	}
	_, err := s.w.Write(append(s.line, '\n'))
	return err
}

func (s *swfWriter) Close() error { return s.w.Flush() }
