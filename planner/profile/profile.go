package profile

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// Bounds on plans. They keep all sums of times, and all products of nodes and seconds of one
// profile, far from overflow.
const (
	MaxNodes    = math.MaxInt32 // nodes of a cluster or a step
	MaxDuration = math.MaxInt32 // seconds of a requested step, some 68 years
	MaxSteps    = 100_000       // steps of a profile
	maxProfile  = 1 << 20       // bytes of a profile in text form
)

// Step is one step of an evolution profile: Nodes nodes for Duration seconds.
type Step struct {
	Duration int64 `json:"duration"` // seconds, ≥ 1
	Nodes    int   `json:"nodes"`    // ≥ 1 in a requested profile
}

// Profile is an evolution profile (paper, section 3.1): a sequence of steps.
type Profile []Step

// ParseError says where and why a profile, a duration, or an expand limit is invalid.
type ParseError struct {
	Input  string // the whole text
	Offset int    // offset of the offending byte; len(Input) if something is missing
	Reason string // in words
}

// Error returns one line: the reason, the position (counted from 1), and the text.
func (e *ParseError) Error() string {
	if e.Offset >= len(e.Input) {
		return fmt.Sprintf("%s at the end of %s", e.Reason, quoteShort(e.Input))
	}
	return fmt.Sprintf("%s at character %d of %s", e.Reason, e.column(), quoteShort(e.Input))
}

// Pointer shows the text with a caret under the position, for a terminal: two lines without a final
// newline. It returns "" if the text is unsuitable (too long, or with control characters).
func (e *ParseError) Pointer() string {
	if len(e.Input) > 200 || strings.ContainsFunc(e.Input, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return "  " + e.Input + "\n  " + strings.Repeat(" ", min(e.Offset, len(e.Input))) + "^"
}

// column returns the position in characters, from 1.
func (e *ParseError) column() int { return len([]rune(e.Input[:e.Offset])) + 1 }

func quoteShort(s string) string {
	if len(s) > 120 {
		s = s[:100] + "…"
	}
	return strconv.Quote(s)
}

// ParseProfile reads NODES@DURATION[,NODES@DURATION…]. A duration is in Go's form (90s, 10m, 1h30m)
// or Slurm's (MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS); a bare integer is minutes. The error
// is a *ParseError.
func ParseProfile(text string) (Profile, error) {
	fail := func(offset int, format string, args ...any) (Profile, error) {
		return nil, &ParseError{Input: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return fail(0, "empty profile: NODES@DURATION[,NODES@DURATION…] expected")
	}
	if len(text) > maxProfile {
		return fail(maxProfile, "profile longer than %d bytes", maxProfile)
	}
	profile := make(Profile, 0, strings.Count(text, ",")+1)
	for offset := 0; ; {
		part, _, more := strings.Cut(text[offset:], ",")
		nodesText, durationText, found := strings.Cut(part, "@")
		nodes, err := parseNodes(nodesText)
		switch {
		case part == "":
			return fail(offset, "step %d is empty: NODES@DURATION expected", len(profile)+1)
		case err != nil:
			return fail(offset, "step %d: %v", len(profile)+1, err)
		case !found:
			return fail(offset+len(part), "step %d: @DURATION missing", len(profile)+1)
		}
		seconds, err := parseDuration(durationText)
		if err != nil {
			return fail(offset+len(nodesText)+1, "step %d: %v", len(profile)+1, err)
		}
		if len(profile) == MaxSteps {
			return fail(offset, "more than %d steps", MaxSteps)
		}
		profile = append(profile, Step{Duration: seconds, Nodes: nodes})
		if !more {
			break
		}
		offset += len(part) + 1
	}
	if err := profile.Validate(); err != nil {
		return fail(0, "%v", err)
	}
	return profile, nil
}

func parseNodes(s string) (int, error) {
	if s == "" {
		return 0, errors.New("node count missing")
	}
	if !digits(s) {
		return 0, fmt.Errorf("node count %s is not a whole number", quoteShort(s))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > MaxNodes {
		return 0, fmt.Errorf("node count %s is too large", quoteShort(s))
	}
	if n == 0 {
		return 0, errors.New("node count must be at least 1")
	}
	return int(n), nil
}

// ParseDuration reads one duration of the profile grammar, in whole seconds.
// The error is a *ParseError.
func ParseDuration(text string) (int64, error) {
	seconds, err := parseDuration(text)
	if err != nil {
		return 0, &ParseError{Input: text, Reason: err.Error()}
	}
	return seconds, nil
}

func parseDuration(s string) (int64, error) {
	var seconds int64
	var err error
	switch {
	case s == "":
		return 0, errors.New("duration missing")
	case strings.ContainsAny(s, "hmsuµμn"):
		seconds, err = parseGoDuration(s)
	default:
		seconds, err = parseSlurmDuration(s)
	}
	switch {
	case err != nil:
		return 0, err
	case seconds == 0:
		return 0, errors.New("duration must be at least 1 second")
	case seconds > MaxDuration:
		return 0, tooLong(s)
	}
	return seconds, nil
}

func notDuration(s string) error {
	return fmt.Errorf("%s is not a duration (like 90s, 1h30m, 10:00 or 1-12)", quoteShort(s))
}

func tooLong(s string) error {
	return fmt.Errorf("duration %s is longer than %d seconds", quoteShort(s), MaxDuration)
}

// parseGoDuration reads what time.ParseDuration does, without a sign.
func parseGoDuration(s string) (int64, error) {
	if s[0] == '+' || s[0] == '-' {
		return 0, fmt.Errorf("duration %s has a sign", quoteShort(s))
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, notDuration(s)
	case d%time.Second != 0:
		return 0, fmt.Errorf("duration %s is not in whole seconds", quoteShort(s))
	}
	return int64(d / time.Second), nil
}

// parseSlurmDuration reads Slurm's time formats. Like Slurm, it does not bound the fields (90:00 is
// 90 minutes).
func parseSlurmDuration(s string) (int64, error) {
	var days string
	clock, withDays := s, false
	if before, after, found := strings.Cut(s, "-"); found {
		days, clock, withDays = before, after, true
	}
	fields := strings.Split(clock, ":")
	if len(fields) > 3 || withDays && !digits(days) {
		return 0, notDuration(s)
	}
	units := []int64{60, 1} // MM[:SS]
	if withDays || len(fields) == 3 {
		units = []int64{3600, 60, 1} // HH[:MM[:SS]]
	}
	var total int64
	add := func(text string, unit int64) error {
		if !digits(text) {
			return notDuration(s)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > MaxDuration {
			return tooLong(s)
		}
		total += n * unit // at most 4 terms below 2^31 × 86,400: no overflow
		return nil
	}
	if withDays {
		if err := add(days, 86400); err != nil {
			return 0, err
		}
	}
	for i, f := range fields {
		if err := add(f, units[i]); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// FormatDuration writes seconds the way String does, e.g. 90m → "1h30m".
func FormatDuration(seconds int64) string {
	var b strings.Builder
	for _, unit := range []struct {
		seconds int64
		letter  byte
	}{{3600, 'h'}, {60, 'm'}, {1, 's'}} {
		if n := seconds / unit.seconds; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10))
			b.WriteByte(unit.letter)
			seconds -= n * unit.seconds
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// String returns the canonical form, e.g. 2@10m,5@1h30m, which ParseProfile reads.
func (p Profile) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s.Nodes))
		b.WriteByte('@')
		b.WriteString(FormatDuration(s.Duration))
	}
	return b.String()
}

// Validate returns what is wrong with p as a requested profile: no step, or a duration or node
// count outside 1 … MaxDuration, MaxNodes.
func (p Profile) Validate() error {
	if len(p) == 0 {
		return errors.New("profile has no steps")
	}
	if len(p) > MaxSteps {
		return fmt.Errorf("profile has %d steps, more than %d", len(p), MaxSteps)
	}
	for i, s := range p {
		switch {
		case s.Duration < 1:
			return fmt.Errorf("step %d: duration is %d, must be at least 1 second", i+1, s.Duration)
		case s.Duration > MaxDuration:
			return fmt.Errorf("step %d: duration is %d, must be at most %d seconds", i+1, s.Duration, MaxDuration)
		case s.Nodes < 1:
			return fmt.Errorf("step %d: nodes is %d, must be at least 1", i+1, s.Nodes)
		case s.Nodes > MaxNodes:
			return fmt.Errorf("step %d: nodes is %d, must be at most %d", i+1, s.Nodes, MaxNodes)
		}
	}
	return nil
}

// Duration returns the sum of the steps' durations in seconds, at most Forever.
func (p Profile) Duration() int64 {
	var total int64
	for _, s := range p {
		total = exact.AddTime(total, s.Duration)
	}
	return total
}

// Peak returns the largest node count.
func (p Profile) Peak() int {
	peak := 0
	for _, s := range p {
		peak = max(peak, s.Nodes)
	}
	return peak
}

// Area returns the node-seconds under p, or math.MaxInt64 if they do not fit.
func (p Profile) Area() int64 {
	sum := p.WideArea()
	if sum.Hi != 0 || sum.Lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(sum.Lo)
}

// At returns the node count t seconds after the start: ep(t) of the paper; 0 outside.
func (p Profile) At(t int64) int {
	if t < 0 {
		return 0
	}
	for _, s := range p {
		if t < s.Duration {
			return s.Nodes
		}
		t -= s.Duration
	}
	return 0
}

// Rigid returns p as a non-evolving job: the peak for the whole duration.
func (p Profile) Rigid() Profile {
	return Profile{{Duration: p.Duration(), Nodes: p.Peak()}}
}

// WideArea returns the node-seconds under p, however many.
func (p Profile) WideArea() (sum exact.Wide) {
	for _, s := range p {
		sum.Add(int64(s.Nodes), s.Duration)
	}
	return sum
}
