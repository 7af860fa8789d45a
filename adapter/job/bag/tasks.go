package bag

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// The largest bag.
const (
	MostTasks = 1_000_000
	MostBytes = 64 << 20 // of a file of tasks
	mostLine  = 64 << 10 // of a task: Linux passes on 128 KiB in one argument
)

// List holds the tasks of a bag, which are lines of a file or the numbers of a range.
type List struct {
	Tasks int    `json:"tasks"`
	First int    `json:"first"`         // ID of the first one
	Step  int    `json:"step"`          // between two IDs
	Sum   string `json:"sum,omitempty"` // of the file; "" for a range

	text  []byte
	begin uint32   // of the first line in text
	ends  []uint32 // of the lines in text
}

// part returns tasks from to to-1 as a list of their own.
func (l List) part(from, to int) List {
	p := List{Tasks: to - from, First: l.ID(from), Step: l.Step, Sum: l.Sum}
	if to <= len(l.ends) {
		p.text, p.ends = l.text, l.ends[from:to]
		if from > 0 {
			p.begin = l.ends[from-1]
		}
	}
	return p
}

// ID returns the ID of task i: the number of its line, from 1, or its number in the range.
func (l List) ID(i int) int { return l.First + i*l.Step }

// Text returns task i.
func (l List) Text(i int) []byte {
	if l.Sum == "" {
		return strconv.AppendInt(nil, int64(l.ID(i)), 10)
	}
	if i >= len(l.ends) {
		return nil
	}
	begin := l.begin
	if i > 0 {
		begin = l.ends[i-1]
	}
	return bytes.TrimSuffix(l.text[begin:l.ends[i]], []byte{'\n'})
}

// valid reports whether the list, which may come from a journal, is within the bounds.
func (l List) valid() bool {
	return l.Tasks >= 1 && l.Tasks <= MostTasks && l.First >= collectID && l.First <= mostID && l.Step >= 1 && l.Step <= mostID
}

// same reports whether two lists have the same tasks.
func (l List) same(m List) bool {
	return l.Tasks == m.Tasks && l.First == m.First && l.Step == m.Step && l.Sum == m.Sum
}

const mostID = 1_000_000_000

var aRange = regexp.MustCompile(`^([0-9]{1,9})-([0-9]{1,9})(?::([0-9]{1,9}))?$`)

// ParseRange reads 1-30000 or 0-98:2. It reports false for anything that is not written like a range, such as a file's name.
func ParseRange(text string) (List, bool, error) {
	m := aRange.FindStringSubmatch(text)
	if m == nil {
		return List{}, false, nil
	}
	first, _ := strconv.Atoi(m[1])
	last, _ := strconv.Atoi(m[2])
	step := 1
	if m[3] != "" {
		step, _ = strconv.Atoi(m[3])
	}
	if last < first || step < 1 {
		return List{}, true, fmt.Errorf("no task in the range %s: want FIRST-LAST or FIRST-LAST:STEP", text)
	}
	l := List{Tasks: (last-first)/step + 1, First: first, Step: step}
	if l.Tasks > MostTasks {
		return List{}, true, fmt.Errorf("%d tasks in the range %s: at most %d go into a bag", l.Tasks, text, MostTasks)
	}
	return l, true, nil
}

// Tasks reads the tasks of a range, or of a file: its lines, without the empty ones.
func Tasks(spec string) (List, error) {
	if l, is, err := ParseRange(spec); is {
		return l, err
	}
	text, err := readBounded(spec, MostBytes)
	if err != nil {
		return List{}, err
	}
	l, err := lines(text)
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", spec, err)
	}
	return l, nil
}

// readBounded reads a plain file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", path, info.Size(), most)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}

// lines takes the text of a file apart.
func lines(text []byte) (List, error) {
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return List{}, fmt.Errorf("line %d has a NUL byte: no argument of a command can", bytes.Count(text[:at], []byte{'\n'})+1)
	}
	sum := sha256.Sum256(text)
	l := List{First: 1, Step: 1, Sum: hex.EncodeToString(sum[:])}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		task := bytes.TrimSuffix(line, []byte{'\n'})
		switch {
		case len(task) == 0:
			continue
		case len(task) > mostLine:
			return List{}, fmt.Errorf("line %d has %d bytes: a task has at most %d", number, len(task), mostLine)
		case l.Tasks == MostTasks:
			return List{}, fmt.Errorf("it has more than %d tasks", MostTasks)
		}
		l.text = append(append(l.text, task...), '\n')
		l.ends = append(l.ends, uint32(len(l.text))) // at most MostBytes
		l.Tasks++
	}
	if l.Tasks == 0 {
		return List{}, fmt.Errorf("it has no task")
	}
	return l, nil
}
