package slurmctl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Constraint is a condition on the nodes of an allocation: features joined by & or a comma (and) and by |
// (or). Slurm reads it from left to right without precedence: a|b,c is (a or b) and c. Parentheses group
// features. One list in brackets, [a|b], names alternatives: all nodes of the allocation have the same one of these
// features. Every node meets the zero Constraint.
type Constraint struct {
	terms  []term
	either []string // in brackets
}

// term is a feature or a group in parentheses, and how it is joined to the terms before it.
type term struct {
	name  string
	group []term
	or    bool
}

// MostAlternatives is how many alternatives a constraint may have in brackets.
const MostAlternatives = 32

// ParseConstraint reads the value of --constraint, or what squeue shows for it. It returns an error that names the
// value if Slurm rejects it, or if it cannot be planned.
func ParseConstraint(text string) (Constraint, error) { return parseOption("constraint", text) }

// ParsePrefer reads the value of --prefer in the same way, without alternatives in brackets.
func ParsePrefer(text string) (Constraint, error) {
	c, err := parseOption("prefer", text)
	if err == nil && c.either != nil {
		err = fmt.Errorf("--prefer=%s: alternatives cannot be preferred: give --constraint=%s, or prefer a|b", oneLine(text, 80), oneLine(text, 80))
	}
	if err != nil {
		return Constraint{}, err
	}
	return c, nil
}

// Counted is how many nodes of an allocation must have a feature.
type Counted struct {
	Feature string
	Nodes   int
}

// LooseConstraint reads the constraint of a job that Slurm has accepted, as ParseConstraint does. Of what that rejects, it keeps that each
// node has one of the features. Without brackets around numbers of nodes, any node may be one of the others. The result also has the numbers
// of nodes by feature, if the text is a list of these in brackets, such as [a*2&b*4].
func LooseConstraint(text string) (Constraint, []Counted) {
	c, err := ParseConstraint(text)
	if err == nil {
		return c, nil
	}
	inside, bracketed := strings.CutPrefix(strings.TrimSpace(text), "[")
	var counts []Counted
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("&|,()[] ", r) }) {
		name, number, has := strings.Cut(name, "*")
		n, err := strconv.Atoi(number)
		if err != nil || n > math.MaxInt32 {
			n = 0
		}
		counts = append(counts, Counted{name, n})
		if name != "" {
			c.terms = append(c.terms, term{name: name, or: true})
		}
		if len(c.terms) > MostAlternatives || has && !bracketed {
			return Constraint{}, nil
		}
	}
	inside, whole := strings.CutSuffix(inside, "]")
	if !whole || strings.ContainsAny(inside, "|()[]") || slices.ContainsFunc(counts, func(one Counted) bool { return one.Feature == "" || one.Nodes <= 0 }) {
		return c, nil
	}
	return c, counts
}

func parseOption(option, text string) (Constraint, error) {
	// Slurm accepts one trailing operator.
	rest := strings.TrimSpace(text)
	if n := len(rest); n > 1 && strings.ContainsAny(rest[n-1:], "&|,") {
		rest = rest[:n-1]
	}
	var c Constraint
	var err error
	if rest != "" {
		c, err = parseConstraint(rest)
	}
	if err != nil {
		return Constraint{}, fmt.Errorf("--%s=%s: %w", option, oneLine(text, 80), err)
	}
	return c, nil
}

var (
	errConstraint  = errors.New("only features joined by & , or | can be planned, also in parentheses, and one list [a|b]")
	errFeatureNeed = errors.New("numbers of nodes by feature cannot be planned, since a profile has several numbers of nodes: ask for a|b, or for all nodes of one kind with [a|b]")
	errInBrackets  = errors.New("in brackets, only features joined by | can be planned: Slurm 22.05 does not look for the nodes of groups there")
	errByBrackets  = errors.New("brackets are joined to the other features by &, since Slurm ignores one side of |")
	errTooMany     = fmt.Errorf("more than %d alternatives cannot be planned", MostAlternatives)
)

func parseConstraint(rest string) (c Constraint, err error) {
	if strings.Contains(rest, "*") {
		return c, errFeatureNeed
	}
	if strings.Count(rest, "[") > 1 {
		return c, errConstraint
	}
	for or := false; ; {
		switch {
		case rest == "":
			return c, errConstraint
		case rest[0] == '[':
			var inside string
			inside, rest, err = enclosed(rest, "]")
			if err == nil && (or || strings.HasPrefix(rest, "|")) {
				err = errByBrackets
			}
			if err == nil {
				err = c.setEither(inside, or)
			}
		case rest[0] == '(':
			var inside string
			if inside, rest, err = enclosed(rest, ")"); err == nil {
				var group []term
				group, err = parseTerms(inside)
				c.terms = append(c.terms, term{group: group, or: or})
			}
		default:
			at := strings.IndexAny(rest, "&|,")
			if at < 0 {
				at = len(rest)
			}
			c.terms, err = appendFeature(c.terms, rest[:at], or)
			rest = rest[at:]
		}
		if err != nil || rest == "" {
			return c, err
		}
		or, rest = rest[0] == '|', rest[1:]
	}
}

// enclosed splits a text that begins with a bracket or parenthesis after its end, which an operator or nothing
// must follow.
func enclosed(text, end string) (inside, rest string, err error) {
	inside, rest, ok := strings.Cut(text[1:], end)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], "&|,") {
		return "", "", errConstraint
	}
	return inside, rest, nil
}

// setEither takes over what stands in brackets; a single feature there is one that every node must have.
func (c *Constraint) setEither(inside string, or bool) error {
	names := strings.Split(inside, "|")
	switch {
	case strings.ContainsAny(inside, "&,()"):
		return errInBrackets
	case len(names) > MostAlternatives:
		return errTooMany
	}
	var terms []term
	var err error
	for _, name := range names {
		if terms, err = appendFeature(terms, name, or); err != nil {
			return err
		}
	}
	if len(names) == 1 {
		c.terms = append(c.terms, terms...)
		return nil
	}
	c.either = names
	return nil
}

func parseTerms(text string) (terms []term, err error) {
	for or := false; ; {
		at := strings.IndexAny(text, "&|,")
		if at < 0 {
			return appendFeature(terms, text, or)
		}
		if terms, err = appendFeature(terms, text[:at], or); err != nil {
			return nil, err
		}
		or, text = text[at] == '|', text[at+1:]
	}
}

func appendFeature(terms []term, name string, or bool) ([]term, error) {
	if name == "" || strings.ContainsAny(name, "[]() \t") {
		return nil, errConstraint
	}
	return append(terms, term{name: name, or: or}), nil
}

// Met reports whether a node with these features meets the constraint, with any of its alternatives.
func (c Constraint) Met(features []string) bool {
	return met(c.terms, features) && (c.either == nil || slices.ContainsFunc(c.either, func(f string) bool { return slices.Contains(features, f) }))
}

// Alternatives returns the features in brackets. All nodes of an allocation have the same one of them, in addition
// to what Met says; nil if any nodes that meet the constraint go together.
func (c Constraint) Alternatives() []string { return c.either }

func met(terms []term, features []string) bool {
	is := true
	for i, t := range terms {
		has := false
		if t.group != nil {
			has = met(t.group, features)
		} else {
			has = slices.Contains(features, t.name)
		}
		switch {
		case i == 0:
			is = has
		case t.or:
			is = is || has
		default:
			is = is && has
		}
	}
	return is
}
