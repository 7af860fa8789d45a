package slurmctl

import (
	"fmt"
	"slices"
	"strings"
)

// Constraint is a condition on a node's features: features joined by & or a comma (and) and by |
// (or). Slurm reads it from left to right without precedence: a|b,c is (a or b) and c. Every node
// meets the zero Constraint.
type Constraint struct {
	features []string
	or       []bool // whether the feature with that index is an alternative to the ones before it
}

// ParseConstraint reads the value of --constraint, or what squeue shows for it. It returns an error
// that names the value if the constraint says more than which nodes suit (brackets, counts) or has
// parentheses.
func ParseConstraint(text string) (Constraint, error) {
	var c Constraint
	// Slurm accepts one trailing operator.
	rest := strings.TrimSpace(text)
	if n := len(rest); n > 1 && strings.ContainsAny(rest[n-1:], "&|,") {
		rest = rest[:n-1]
	}
	for or := false; rest != ""; {
		name, operator := rest, ""
		if i := strings.IndexAny(rest, "&|,"); i >= 0 {
			name, operator = rest[:i], rest[i:i+1]
		}
		rest = rest[len(name)+len(operator):]
		if name == "" || strings.ContainsAny(name, "*[]() \t") || operator != "" && rest == "" {
			return Constraint{}, fmt.Errorf("--constraint=%s: only features joined by & , or | can be planned, without brackets, parentheses and counts", oneLine(text, 80))
		}
		c.features, c.or = append(c.features, name), append(c.or, or)
		or = operator == "|"
	}
	return c, nil
}

// Met reports whether a node with these features meets the constraint.
func (c Constraint) Met(features []string) bool {
	met := true
	for i, f := range c.features {
		if has := slices.Contains(features, f); c.or[i] {
			met = met || has
		} else {
			met = met && has
		}
	}
	return met
}
