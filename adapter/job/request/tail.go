package request

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// A profile may have an open tail: a last step ?MIN-MAX@DURATION, in which the application finds out what it needs. The
// job is promised MIN nodes there and claims MAX, so that is what evosctl grow and update may take it to.

// openTail begins the text of a tail.
const openTail = "?"

// setOpen reads a profile with an open tail, which begins at a byte of the text.
func (r *Request) setOpen(text string, at int) error {
	fail := func(offset int, format string, args ...any) error {
		return &planner.ParseError{Input: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	tail := text[at+len(openTail):]
	if more := strings.IndexByte(tail, ','); more >= 0 {
		return fail(at, "only the last step may be open")
	}
	if at > 0 && text[at-1] != ',' {
		return fail(at, "an open tail is a step of its own: ?MIN-MAX@DURATION expected")
	}
	nodes, duration, found := strings.Cut(tail, "@")
	bounds, err := malleable.ParseBounds(nodes)
	if err != nil {
		offset, why := reasonOf(err)
		return fail(at+len(openTail)+offset, "open tail: %s", why)
	}
	if !found {
		return fail(len(text), "open tail: @DURATION missing")
	}
	seconds, err := planner.ParseDuration(duration)
	if err != nil {
		_, why := reasonOf(err)
		return fail(at+len(openTail)+len(nodes)+1, "open tail: %s", why)
	}
	var steps planner.Profile
	if at > 0 {
		if ranged(text[:at-1]) {
			return fail(at, "a malleable job has no open tail: it is lent what is free")
		}
		if steps, err = planner.ParseProfile(text[:at-1]); err != nil {
			offset, why := reasonOf(err)
			return fail(offset, "%s", why)
		}
		if peak := steps.Peak(); peak > bounds.Max {
			return fail(at, "open tail: its most is the job's claim, and a step before has %d nodes: give ?%d-%d or more", peak, bounds.Min, peak)
		}
	}
	p := append(steps, planner.Step{Duration: seconds, Nodes: bounds.Min})
	if err := p.Validate(); err != nil {
		return fail(0, "%v", err)
	}
	r.Profile, r.Tail = p, bounds.Max
	if r.Malleable != nil {
		r.malleability().Max = nil
	}
	return CheckSteps(p)
}

// reasonOf returns the place and the reason of a parser's error.
func reasonOf(err error) (offset int, why string) {
	if e, ok := err.(*planner.ParseError); ok { //nolint:errorlint // made by the planner's parsers
		return e.Offset, e.Reason
	}
	return 0, err.Error()
}

// SettleTail makes the most nodes of an open tail the job's claim.
func (r *Request) SettleTail() error {
	if r.Tail == 0 {
		return nil
	}
	if r.MaxNodes != 0 && r.MaxNodes != r.Tail {
		return fmt.Errorf("--max-nodes=%d: the open tail of the profile claims %d nodes: leave --max-nodes out", r.MaxNodes, r.Tail)
	}
	r.MaxNodes, r.Tail = r.Tail, 0
	return nil
}
