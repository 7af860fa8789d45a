package malleable

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner/profile"
)

// Step is a step of a job that evolves and is malleable: Min to Max nodes. On the fewest nodes, it
// takes Duration seconds; on more, it may end sooner.
type Step struct {
	Duration int64 `json:"duration"` // seconds, ≥ 1
	Bounds
}

// Profile is a sequence of such steps.
type Profile []Step

// maxText bounds the profile's text, as package profile does its own.
const maxText = 1 << 20

// ParseProfile reads MIN-MAX@DURATION[,MIN-MAX@DURATION…], as profile.ParseProfile reads
// durations; NODES@DURATION is a step that is not malleable. The error is a
// *profile.ParseError.
func ParseProfile(text string) (Profile, error) {
	fail := func(offset int, format string, args ...any) (Profile, error) {
		return nil, &profile.ParseError{Input: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return fail(0, "empty profile: MIN-MAX@DURATION[,MIN-MAX@DURATION…] expected")
	case len(text) > maxText:
		return fail(maxText, "profile longer than %d bytes", maxText)
	}
	var p Profile
	offset := 0
	for part := range strings.SplitSeq(text, ",") {
		step := len(p) + 1
		nodes, duration, found := strings.Cut(part, "@")
		low, high, ranged := strings.Cut(nodes, "-")
		least, err := profile.ParseNodes(low)
		switch {
		case part == "":
			return fail(offset, "step %d is empty: MIN-MAX@DURATION expected", step)
		case err != nil:
			return fail(offset, "step %d: %v", step, err)
		}
		most := least
		if ranged {
			if most, err = profile.ParseNodes(high); err != nil {
				return fail(offset+len(low)+1, "step %d: maximum: %v", step, err)
			}
		}
		switch {
		case most < least:
			return fail(offset, "step %d: the minimum %d is above the maximum %d", step, least, most)
		case !found:
			return fail(offset+len(part), "step %d: @DURATION missing", step)
		}
		seconds, err := profile.ParseDuration(duration)
		if err != nil {
			return fail(offset+len(nodes)+1, "step %d: %s", step, reason(err))
		}
		if step > profile.MaxSteps {
			return fail(offset, "more than %d steps", profile.MaxSteps)
		}
		p = append(p, Step{seconds, Bounds{least, most}})
		offset += len(part) + 1
	}
	return p, nil
}

// reason returns a *profile.ParseError without its position.
func reason(err error) string {
	if e, ok := err.(*profile.ParseError); ok { //nolint:errorlint // made by ParseDuration
		return e.Reason
	}
	return err.Error()
}

// String returns the canonical form, e.g. 2-4@10m,5@1h30m; ParseProfile reads it back.
func (p Profile) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		if s.Min == s.Max {
			b.WriteString(strconv.Itoa(s.Min))
		} else {
			b.WriteString(s.Bounds.String())
		}
		b.WriteByte('@')
		b.WriteString(profile.FormatDuration(s.Duration))
	}
	return b.String()
}

// Malleable reports whether some step has more than one size.
func (p Profile) Malleable() bool {
	for _, s := range p {
		if s.Min < s.Max {
			return true
		}
	}
	return false
}

// Validate returns which step cannot use such sizes.
func (p Profile) Validate(s Sizes) error {
	for i, step := range p {
		if err := step.Bounds.Validate(s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return p.Least(s).Validate()
}

// Least returns the promised profile: every step at its smallest usable size.
func (p Profile) Least(s Sizes) profile.Profile {
	least := make(profile.Profile, len(p))
	for i, step := range p {
		least[i] = profile.Step{Duration: step.Duration, Nodes: step.Bounds.Least(s)}
	}
	return least
}
