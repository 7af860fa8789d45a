package request

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// Moldable holds a job's alternative profiles. The job gets one of them at its start.
type Moldable struct {
	Alternatives []planner.Profile // in the user's order
	By           planner.Preference

	// Minutes holds the Slurm job's time limits with each alternative, for a chain one per step;
	// Unlimited for none. An empty list means that the alternative was infeasible at submission and
	// is left out. evosbatch sets it; nil before that.
	Minutes [][]int64

	// Choice is the alternative that the job was given, from 1; 0 if as submitted.
	Choice int
}

// Unlimited is a time limit without bound, in minutes.
const Unlimited = 1<<31 - 1

// LeftOut reports whether an alternative, from 0, was infeasible at submission.
func (m *Moldable) LeftOut(k int) bool { return len(m.Minutes) > 0 && len(m.Minutes[k]) == 0 }

// Submitted returns the alternative, from 0, as which the job is submitted: of the remaining ones,
// the one that begins with the fewest nodes, so that Slurm is never asked for more CPUs and tasks
// than any other has; of several, the longest, then the first. -1 if all are left out.
func (m *Moldable) Submitted() int {
	found := -1
	for k, p := range m.Alternatives {
		if m.LeftOut(k) {
			continue
		}
		if found >= 0 {
			best := m.Alternatives[found]
			if p[0].Nodes > best[0].Nodes || p[0].Nodes == best[0].Nodes && p.Duration() <= best.Duration() {
				continue
			}
		}
		found = k
	}
	return found
}

// Chosen returns the alternative, from 0, that the job was given, otherwise Submitted.
func (m *Moldable) Chosen() int {
	if m.Choice > 0 {
		return m.Choice - 1
	}
	return m.Submitted()
}

// ParseAlternatives reads the value of --moldable: alternatives of one step each, separated
// by commas, or whole profiles, separated by bars:
//
//	4@2h,8@70m,16@40m
//	2@10m,5@30m | 4@15m,8@20m
//
// The error is a *planner.ParseError.
func ParseAlternatives(text string) ([]planner.Profile, error) {
	separator := ","
	if strings.Contains(text, "|") {
		separator = "|"
	}
	fail := func(offset int, format string, args ...any) error {
		return &planner.ParseError{Input: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	if err := noFrequency(text, "alternatives"); err != nil {
		return nil, err
	}
	var all []planner.Profile
	offset := 0
	for part := range strings.SplitSeq(text, separator) {
		trimmed := strings.TrimSpace(part)
		at := offset + strings.Index(part, trimmed)
		offset += len(part) + len(separator)
		if trimmed == "" {
			return nil, fail(at, "alternative %d is empty: NODES@DURATION expected", len(all)+1)
		}
		p, err := planner.ParseProfile(trimmed)
		var bad *planner.ParseError
		switch {
		case errors.As(err, &bad):
			return nil, fail(at+bad.Offset, "alternative %d: %s", len(all)+1, bad.Reason)
		case err != nil:
			return nil, err
		case CheckSteps(p) != nil:
			return nil, fail(at, "alternative %d: %v", len(all)+1, CheckSteps(p))
		case len(all) == planner.MaxAlternatives:
			return nil, fail(at, "more than %d alternatives", planner.MaxAlternatives)
		}
		for k, other := range all {
			if other.String() == p.String() {
				return nil, fail(at, "alternative %d is the same as alternative %d", len(all)+1, k+1)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// setAlternatives makes r moldable.
func (r *Request) setAlternatives(all []planner.Profile) {
	by := planner.ByCompletion
	if r.Moldable != nil {
		by = r.Moldable.By
	}
	r.Moldable = &Moldable{Alternatives: all, By: by}
	r.Profile = all[r.Moldable.Submitted()]
}

// Alternatives returns a moldable job's alternatives in the grammar of ParseAlternatives, or the
// profile.
func (r Request) Alternatives() string { return r.profileText() }

// profileText returns the profile, with its bounds if any, or all alternatives.
func (r Request) profileText() string {
	switch {
	case r.Malleable != nil:
		return r.Bounds().String()
	case r.Moldable == nil:
		return r.Profile.String()
	}
	texts := make([]string, len(r.Moldable.Alternatives))
	for i, p := range r.Moldable.Alternatives {
		texts[i] = p.String()
	}
	return strings.Join(texts, "|")
}

// marker writes the fields m, l, and k: the preference, the time limits as 121|71|0 (steps of
// chains with commas), and the choice.
func (m *Moldable) marker(b *strings.Builder) {
	b.WriteString(";m=" + m.By.String())
	if len(m.Minutes) > 0 {
		texts := make([]string, len(m.Minutes))
		for i, limits := range m.Minutes {
			if texts[i] = "0"; len(limits) > 0 {
				texts[i] = ""
			}
			for k, minutes := range limits {
				if k > 0 {
					texts[i] += ","
				}
				texts[i] += strconv.FormatInt(minutes, 10)
			}
		}
		b.WriteString(";l=" + strings.Join(texts, "|"))
	}
	if m.Choice > 0 {
		b.WriteString(";k=" + strconv.Itoa(m.Choice))
	}
}

// setField reads one of them.
func (m *Moldable) setField(key, value string) (err error) {
	switch key {
	case "m":
		m.By, err = planner.ParsePreference(value)
	case "l":
		for one := range strings.SplitSeq(value, "|") {
			var limits []int64
			for text := range strings.SplitSeq(one, ",") {
				if one == "0" {
					break
				}
				minutes, err := parseNumber(text, Unlimited)
				if err != nil {
					return err
				}
				limits = append(limits, minutes)
			}
			m.Minutes = append(m.Minutes, limits)
		}
	case "k":
		var choice int64
		choice, err = parseNumber(value, planner.MaxAlternatives)
		m.Choice = int(choice)
	}
	return err
}

// settle checks that the parts of a moldable request agree, and sets the chosen profile.
func (r *Request) settle() error {
	m := r.Moldable
	if m == nil || len(m.Alternatives) == 0 {
		return nil
	}
	if len(m.Minutes) > 0 && len(m.Minutes) != len(m.Alternatives) {
		return fmt.Errorf("%d time limits for %d alternatives", len(m.Minutes), len(m.Alternatives))
	}
	for k, limits := range m.Minutes {
		if n := len(limits); n > 1 && n != len(m.Alternatives[k]) {
			return fmt.Errorf("%d time limits for the %d steps of alternative %d", n, len(m.Alternatives[k]), k+1)
		}
	}
	switch {
	case m.Choice > len(m.Alternatives):
		return fmt.Errorf("alternative %d of %d", m.Choice, len(m.Alternatives))
	case m.Submitted() < 0:
		return errors.New("no alternative is feasible")
	case m.Choice > 0 && m.LeftOut(m.Choice-1):
		return fmt.Errorf("alternative %d is left out", m.Choice)
	}
	r.Profile = m.Alternatives[m.Chosen()]
	return nil
}

// Choose writes into a comment with a marker which alternative, from 1, the job was given. It
// returns false if there is no marker or it does not fit.
func Choose(comment string, choice int) (string, bool) {
	for at := strings.Index(comment, markerPrefix); at >= 0; {
		rest := comment[at:]
		if s, ok, err := parseAt(rest, at == 0); ok && err == nil && s.Moldable != nil {
			end := strings.Index(rest, markerEnd) + len(markerEnd)
			chosen := *s.Moldable
			chosen.Choice = choice
			script := s.Profile == nil
			s.Moldable = &chosen
			text := comment[:at] + s.marker(script) + rest[end:]
			return text, len(text) <= MaxComment
		}
		next := strings.Index(rest[len(markerPrefix):], markerPrefix)
		if next < 0 {
			break
		}
		at += len(markerPrefix) + next
	}
	return "", false
}
