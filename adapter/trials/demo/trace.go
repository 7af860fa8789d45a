package demo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trace holds what a job wrote about itself.
type trace struct {
	begin time.Time
	end   time.Time // zero: it did not come to its end
	steps []traceStep
}

// traceStep is a step as the job saw it.
type traceStep struct {
	called time.Time // when it called next; the first step: zero
	began  time.Time // when next returned; the first step: when the script began
	first  answer    // at its beginning
	last   answer    // at its end
}

// answer is one srun over all nodes.
type answer struct {
	came   time.Time
	status int
	nodes  []string // sorted, each once
}

// stepEnd returns when the step ended: when the next one began, or the script ended.
func (t trace) stepEnd(i int) time.Time {
	if i+1 < len(t.steps) {
		return t.steps[i+1].began
	}
	return t.end
}

// nodeSeconds returns what the job held.
func (t trace) nodeSeconds() float64 {
	var sum float64
	for i, s := range t.steps {
		if end := t.stepEnd(i); !end.IsZero() {
			sum += float64(len(s.first.nodes)) * end.Sub(s.began).Seconds()
		}
	}
	return sum
}

func readTrace(path string) (trace, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return trace{}, err
	}
	t, err := parseTrace(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// parseTrace reads the lines that job.sh writes.
func parseTrace(text string) (trace, error) {
	var t trace
	for line := range strings.Lines(text) {
		if err := t.add(strings.Fields(line)); err != nil {
			return t, fmt.Errorf("%q: %w", line, err)
		}
	}
	return t, nil
}

func (t *trace) add(f []string) error {
	var numbers []int64
	for _, word := range f {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	at := func(i int) time.Time { return time.UnixMicro(numbers[i]) }
	switch {
	case len(f) == 2 && f[0] == "begin" && len(numbers) == 1:
		t.begin = at(0)
		t.steps = append(t.steps, traceStep{began: at(0)})
	case len(f) == 4 && f[0] == "next" && len(numbers) == 3 && int(numbers[0]) == len(t.steps)+1:
		t.steps = append(t.steps, traceStep{called: at(1), began: at(2)})
	case len(f) >= 6 && f[0] == "nodes" && len(numbers) == 4 && len(t.steps) > 0 && int(numbers[0]) == len(t.steps):
		a := answer{came: at(2), status: int(numbers[3]), nodes: slices.Compact(slices.Sorted(slices.Values(f[6:])))}
		if f[2] == "first" {
			t.steps[len(t.steps)-1].first = a
		} else {
			t.steps[len(t.steps)-1].last = a
		}
	case len(f) == 2 && f[0] == "end" && len(numbers) == 1:
		t.end = at(0)
	default:
		return fmt.Errorf("no such line in a trace, or not at this place")
	}
	return nil
}
