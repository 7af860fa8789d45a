package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Trace is a log in the Standard Workload Format of the Parallel Workloads Archive, as far
// as a simulation of rigid jobs needs it.
type Trace struct {
	Nodes, Processors int // by the header; 0: not told
	Jobs              []TraceJob
	Left              int // jobs that never ran or have no size
}

// TraceJob is one job; times are seconds.
type TraceJob struct {
	Number     int64
	Submit     int64 // the first one's is 0
	Duration   int64
	Limit      int64 // requested time; 0: not told
	Processors int
	User       int64 // -1: not told
}

// fields of a line, all of them numbers; -1 stands for what is not known.
const (
	swfNumber = iota
	swfSubmit
	swfWait
	swfDuration
	swfProcessors
	swfCPU
	swfMemory
	swfWanted // processors
	swfLimit
	swfWantedMemory
	swfStatus
	swfUser
	swfFields = 18
)

// MostTraceJobs bounds the jobs of a trace.
const MostTraceJobs = 10_000_000

// ReadSWF reads a trace. Jobs that never ran are left out. The error names the line.
func ReadSWF(r io.Reader) (Trace, error) {
	var t Trace
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if header, ok := strings.CutPrefix(line, ";"); ok {
			t.header(header)
			continue
		}
		if line == "" {
			continue
		}
		if err := t.job(strings.Fields(line)); err != nil {
			return Trace{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Trace{}, err
	}
	if len(t.Jobs) == 0 {
		return Trace{}, errors.New("there is no job that ran")
	}
	first := t.Jobs[0].Submit
	for _, j := range t.Jobs {
		first = min(first, j.Submit)
	}
	for i := range t.Jobs {
		t.Jobs[i].Submit -= first
	}
	return t, nil
}

func (t *Trace) header(text string) {
	key, value, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 {
		return
	}
	switch strings.TrimSpace(key) {
	case "MaxNodes":
		t.Nodes = n
	case "MaxProcs":
		t.Processors = n
	}
}

func (t *Trace) job(words []string) error {
	if len(words) != swfFields {
		return fmt.Errorf("%d fields; a job has %d", len(words), swfFields)
	}
	var field [swfFields]int64
	for i, w := range words[:swfUser+1] {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			f, err := strconv.ParseFloat(w, 64)
			if err != nil || f != f || f < -MaxTime || f > MaxTime {
				return fmt.Errorf("field %d is %q; want a number", i+1, w)
			}
			n = int64(f)
		}
		if n < -1 || n > MaxTime {
			return fmt.Errorf("field %d is %s; want -1 … 2^53", i+1, w)
		}
		field[i] = n
	}
	j := TraceJob{Number: field[swfNumber], Submit: field[swfSubmit], Duration: field[swfDuration], Limit: max(field[swfLimit], 0), User: field[swfUser]}
	size := field[swfProcessors]
	if size < 1 {
		size = field[swfWanted]
	}
	if size > 1<<31-1 {
		return fmt.Errorf("%d processors", size)
	}
	if j.Processors = int(size); j.Duration < 1 || j.Processors < 1 || j.Submit < 0 {
		t.Left++
		return nil
	}
	if len(t.Jobs) == MostTraceJobs {
		return fmt.Errorf("more than %d jobs", MostTraceJobs)
	}
	t.Jobs = append(t.Jobs, j)
	return nil
}
