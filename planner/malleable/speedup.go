package malleable

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner/profile"
)

// Speedup is an application's speed on some nodes, as a multiple of its speed on one.
type Speedup interface {
	At(nodes int) float64
}

// Amdahl is the speed-up of an application that does this part of its work, 0 to 1, in parallel: 1
// / (1 − f + f/n).
type Amdahl float64

// At implements Speedup.
func (f Amdahl) At(nodes int) float64 {
	return 1 / (1 - float64(f) + float64(f)/float64(max(nodes, 1)))
}

func (f Amdahl) String() string { return "amdahl:" + strconv.FormatFloat(float64(f), 'g', -1, 64) }

// Point is a measured or declared speed-up.
type Point struct {
	Nodes   int     `json:"nodes"`
	Speedup float64 `json:"speedup"`
}

// Table holds speed-ups in ascending order of nodes. It is linear between two points, proportional
// below the first, and constant above the last.
type Table []Point

// At implements Speedup.
func (t Table) At(nodes int) float64 {
	if len(t) == 0 {
		return 1
	}
	i, _ := slices.BinarySearchFunc(t, nodes, func(p Point, n int) int { return p.Nodes - n })
	switch {
	case i == len(t):
		return t[len(t)-1].Speedup
	case i == 0:
		return t[0].Speedup * float64(nodes) / float64(t[0].Nodes)
	}
	a, b := t[i-1], t[i]
	return a.Speedup + (b.Speedup-a.Speedup)*float64(nodes-a.Nodes)/float64(b.Nodes-a.Nodes)
}

// String returns the form that ParseDeclared reads: 1:1,2:1.8,8:5.
func (t Table) String() string {
	texts := make([]string, len(t))
	for i, p := range t {
		texts[i] = strconv.Itoa(p.Nodes) + ":" + strconv.FormatFloat(p.Speedup, 'g', -1, 64)
	}
	return strings.Join(texts, ",")
}

// ParseDeclared reads a speed-up as Amdahl and Table print themselves: amdahl:F, or
// NODES:SPEEDUP[,NODES:SPEEDUP…]. The error is a *profile.ParseError.
func ParseDeclared(text string) (Speedup, error) {
	if strings.HasPrefix(text, "amdahl:") || text == "" {
		s, _, err := ParseSpeedup(text)
		return s, err
	}
	var t Table
	offset := 0
	for part := range strings.SplitSeq(text, ",") {
		fail := func(reason string) (Speedup, error) {
			return nil, &profile.ParseError{Input: text, Offset: offset, Reason: reason}
		}
		left, right, found := strings.Cut(part, ":")
		if !found {
			return fail("NODES:SPEEDUP expected")
		}
		nodes, err := profile.ParseNodes(left)
		if err != nil {
			return fail(err.Error())
		}
		speedup, err := strconv.ParseFloat(right, 64)
		if err != nil {
			return fail("the speed-up is no number")
		}
		t = append(t, Point{nodes, speedup})
		if err := t[max(len(t)-2, 0):].Validate(); err != nil {
			return fail(err.Error())
		}
		offset += len(part) + 1
	}
	return t, nil
}

// Validate returns what is wrong with a table.
func (t Table) Validate() error {
	if len(t) == 0 {
		return errors.New("there is no speed-up")
	}
	for i, p := range t {
		switch {
		case p.Nodes < 1 || p.Nodes > profile.MaxNodes:
			return fmt.Errorf("nodes is %d, must be within 1 … %d", p.Nodes, profile.MaxNodes)
		case !(p.Speedup > 0) || math.IsInf(p.Speedup, 0):
			return fmt.Errorf("the speed-up on %d nodes is %v, must be above 0", p.Nodes, p.Speedup)
		case i > 0 && t[i-1].Nodes >= p.Nodes:
			return fmt.Errorf("%d nodes come after %d, must be in ascending order", p.Nodes, t[i-1].Nodes)
		}
	}
	return nil
}

// ParseSpeedup reads the value of --speedup. amdahl:F returns a Speedup. Anything else is a file
// name; the caller reads that file and calls ParseTable. The error is a *profile.ParseError.
func ParseSpeedup(text string) (s Speedup, file string, err error) {
	fail := func(offset int, reason string) (Speedup, string, error) {
		return nil, "", &profile.ParseError{Input: text, Offset: offset, Reason: reason}
	}
	if text == "" {
		return fail(0, "FILE or amdahl:F expected")
	}
	part, amdahl := strings.CutPrefix(text, "amdahl:")
	if !amdahl {
		return nil, text, nil
	}
	f, err := strconv.ParseFloat(part, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return fail(len("amdahl:"), "the parallel part is not a number from 0 to 1")
	}
	return Amdahl(f), "", nil
}

// ParseTable reads a table of speed-ups, one per line: the nodes, and the speed-up (3.4) or the
// application's time (10m, 90s). The first time, on the fewest nodes, counts as ideal: n times as
// fast as on one node. # begins a comment.
func ParseTable(text string) (Table, error) {
	var t Table
	var first float64 // seconds × nodes of the first line, if it is a time; else 0
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		fail := func(err error) (Table, error) { return nil, fmt.Errorf("line %d: %w", number, err) }
		if len(fields) != 2 {
			return fail(errors.New("want the nodes and the speed-up or time"))
		}
		nodes, err := profile.ParseNodes(fields[0])
		if err != nil {
			return fail(err)
		}
		speedup, err := strconv.ParseFloat(fields[1], 64)
		isTime := err != nil
		if isTime {
			seconds, err := profile.ParseDuration(fields[1])
			if err != nil {
				return fail(fmt.Errorf("%q is neither a speed-up nor a time", fields[1]))
			}
			if len(t) == 0 {
				first = float64(seconds) * float64(nodes)
			}
			speedup = first / float64(seconds)
		}
		if isTime != (first != 0) {
			return fail(errors.New("speed-ups and times are mixed"))
		}
		t = append(t, Point{nodes, speedup})
		if err := t[max(len(t)-2, 0):].Validate(); err != nil {
			return fail(err)
		}
	}
	return t, t.Validate()
}
