package slurmctl

import (
	"fmt"
	"slices"
	"strings"
)

// Constraint is what a node's features have to be: features joined by & or a comma
// (and) and by | (or). Slurm reads them from left to right, none before the other:
// a|b,c is (a or b) and c. The zero Constraint is met by every node.
type Constraint struct {
	features []string
	or       []bool // whether the feature of that index is an alternative to those before it
}

// ParseConstraint reads the value of --constraint, or what squeue shows of it. What
// says more than which nodes will do (brackets, counts), and parentheses, is an
// error that names the value.
func ParseConstraint(text string) (Constraint, error) {
	var c Constraint
	// Slurm takes one operator at the end.
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

// Met reports whether a node with these features will do.
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
