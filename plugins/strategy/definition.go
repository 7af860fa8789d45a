package strategy

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Definition is a strategy as sites see it.
type Definition struct {
	Name       string // lower-case letters, digits, - and _
	Version    string
	Help       string // what it does, in one or a few lines
	Parameters []Parameter

	// New makes the strategy for one set of parameters, each within its bounds. It is called once
	// per set; several goroutines may call its strategies at once. If the strategy has an
	// ExpandLimit or a Rigid method (see planner.ExpandLimitOf, planner.IsRigid), sites see its
	// result. New is nil if the definition does not plan.
	New func(Values) (planner.Strategy, error)

	// NewPolicy makes a malleability policy in the same way; see Resizer. It is nil if the
	// definition is no policy.
	NewPolicy func(Values) (malleable.Policy, error)
}

// Type is the type of a parameter.
type Type int

// The types, with examples of values.
const (
	Bool     Type = iota + 1 // true, false
	Int                      // 42
	Number                   // 1.5, inf
	Duration                 // 90s, 10m, 1h30m
	String                   // anything, or one of the choices
)

var typeNames = map[Type]string{Bool: "true or false", Int: "integer", Number: "number", Duration: "duration", String: "text"}

func (t Type) String() string { return typeNames[t] }

// Parameter is a parameter that sites may set.
type Parameter struct {
	Name     string // lower-case letters, digits and _
	Type     Type
	Default  string
	Help     string   // one line
	Min, Max string   // for Int, Number, and Duration; "" for none
	Choices  []string // for String; empty for any value
}

var (
	validName      = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	validParameter = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

// ValidName reports whether name is valid for a strategy.
func ValidName(name string) bool { return validName.MatchString(name) }

// Bounds on a definition.
const (
	maxParameters = 100
	maxText       = 4096 // bytes, of one text
)

// Validate returns what is wrong with the definition, apart from New and NewPolicy.
func (d Definition) Validate() error {
	if !ValidName(d.Name) {
		return fmt.Errorf("strategy name %q: want lower-case letters, digits, - and _", d.Name)
	}
	if len(d.Version) > 100 || len(d.Help) > maxText || len(d.Parameters) > maxParameters {
		return fmt.Errorf("strategy %s: version, help or parameters are too long", d.Name)
	}
	seen := map[string]bool{}
	for _, p := range d.Parameters {
		if err := p.validate(); err != nil {
			return fmt.Errorf("strategy %s: parameter %q: %w", d.Name, p.Name, err)
		}
		if seen[p.Name] {
			return fmt.Errorf("strategy %s: parameter %q is there twice", d.Name, p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

func (p Parameter) validate() error {
	switch {
	case !validParameter.MatchString(p.Name):
		return errors.New("want lower-case letters, digits and _")
	case typeNames[p.Type] == "":
		return errors.New("it has no type")
	case len(p.Help) > maxText || len(p.Choices) > maxParameters || len(strings.Join(p.Choices, "")) > maxText:
		return errors.New("its help or choices are too long")
	}
	for _, bound := range []string{p.Min, p.Max} {
		if bound == "" {
			continue
		}
		if _, err := p.number(bound); err != nil {
			return fmt.Errorf("its bound: %w", err)
		}
	}
	_, err := p.Parse(p.Default)
	if err != nil {
		return fmt.Errorf("its default: %w", err)
	}
	return nil
}

// Parse checks a value and returns its canonical form.
func (p Parameter) Parse(text string) (string, error) {
	if len(text) > maxText {
		return "", errors.New("the value is too long")
	}
	switch p.Type {
	case Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "", fmt.Errorf("%s: %q; want true or false", p.Name, text)
		}
		return strconv.FormatBool(b), nil
	case String:
		if len(p.Choices) > 0 && !slices.Contains(p.Choices, text) {
			return "", fmt.Errorf("%s: %q; want one of %s", p.Name, text, strings.Join(p.Choices, ", "))
		}
		return text, nil
	}
	v, err := p.number(text)
	if err != nil {
		return "", err
	}
	if p.Min != "" {
		if least, err := p.number(p.Min); err == nil && v < least {
			return "", fmt.Errorf("%s: %s; want %s or more", p.Name, text, p.Min)
		}
	}
	if p.Max != "" {
		if most, err := p.number(p.Max); err == nil && v > most {
			return "", fmt.Errorf("%s: %s; want %s or less", p.Name, text, p.Max)
		}
	}
	switch p.Type {
	case Int:
		i, _ := strconv.ParseInt(text, 10, 64) // number has already parsed it
		return strconv.FormatInt(i, 10), nil
	case Duration:
		d, _ := time.ParseDuration(text)
		return d.String(), nil
	}
	if math.IsInf(v, 1) {
		return "inf", nil
	}
	return strconv.FormatFloat(v, 'g', -1, 64), nil
}

// number returns a value as a number, durations in seconds.
func (p Parameter) number(text string) (float64, error) {
	switch p.Type {
	case Int:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %q; want an integer", p.Name, text)
		}
		return float64(i), nil
	case Number:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) {
			return 0, fmt.Errorf("%s: %q; want a number", p.Name, text)
		}
		return v, nil
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%s: %q; want a duration such as 90s or 10m", p.Name, text)
		}
		return d.Seconds(), nil
	}
	return 0, fmt.Errorf("%s has no bounds", p.Name)
}

// Values holds parameters' values in canonical form.
type Values map[string]string

// Values checks the given values and fills in the defaults.
func (d Definition) Values(given map[string]string) (Values, error) {
	all := make(Values, len(d.Parameters))
	var names []string
	for _, p := range d.Parameters {
		text, ok := given[p.Name]
		if !ok {
			text = p.Default
		}
		v, err := p.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("strategy %s: %w", d.Name, err)
		}
		all[p.Name] = v
		names = append(names, p.Name)
	}
	for name := range given {
		if _, ok := all[name]; ok {
			continue
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("strategy %s has no parameters, %q is given", d.Name, name)
		}
		return nil, fmt.Errorf("strategy %s has no parameter %q; it has %s", d.Name, name, strings.Join(names, ", "))
	}
	return all, nil
}

// Bool returns a parameter's value. As with the methods below, an undefined name is a mistake in
// the strategy and panics.
func (v Values) Bool(name string) bool { return v.get(name) == "true" }

// Int returns an Int parameter's value.
func (v Values) Int(name string) int64 {
	i, _ := strconv.ParseInt(v.get(name), 10, 64)
	return i
}

// Number returns a Number parameter's value; +Inf for inf.
func (v Values) Number(name string) float64 {
	f, _ := strconv.ParseFloat(v.get(name), 64)
	return f
}

// Duration returns a Duration parameter's value.
func (v Values) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(v.get(name))
	return d
}

// String returns a String parameter's value.
func (v Values) String(name string) string { return v.get(name) }

func (v Values) get(name string) string {
	text, ok := v[name]
	if !ok {
		panic(fmt.Sprintf("parameter %q is not in the definition", name))
	}
	return text
}
