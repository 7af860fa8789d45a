package request

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/planner"
)

// Directive is one option of an #EVO line.
type Directive struct {
	Line  int    // 1-based, in the script
	Name  string // without the dashes
	Value string
}

// DirectiveError is an #EVO line that cannot be used.
type DirectiveError struct {
	Line int // 1-based, in the script
	Err  error
}

func (e *DirectiveError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason, a *planner.ParseError for a bad profile.
func (e *DirectiveError) Unwrap() error { return e.Err }

// Options lists evosbatch's own options, which are also those of #EVO lines. IsFlag says which have no value.
var Options = []string{"profile", "component", "moldable", "moldable-by", "malleable", "size", "grace", "speedup", "expand-limit", "drive", "max-nodes", "on-grow", "on-shrink", "on-step", "stage-in", "prefer-start", "prefer-waste", "prefer-near", "best-effort"}

// ParseDirectives returns the options of a batch script's #EVO lines, in order. They are read as
// sbatch reads #SBATCH: at the start of a line, before the first line that is neither blank nor a
// comment, split at white space, with quotes, backslashes and trailing # comments as there. After
// the first command, where sbatch would silently ignore a line, an #EVO line is an error.
func ParseDirectives(script []byte) ([]Directive, error) { return parseDirectives(string(script)) }

// parseDirectives does what ParseDirectives does, without a copy of the script, which may have megabytes.
func parseDirectives(script string) ([]Directive, error) {
	var found []Directive
	begun := false // the first command has been seen
	number := 0
	for line := range strings.SplitSeq(script, "\n") {
		number++
		rest, ok := strings.CutPrefix(line, "#EVO")
		if !ok || rest != "" && !isSpace(rest[0]) { // #EVOLUTION is a plain comment
			begun = begun || isCommand(line)
			continue
		}
		if begun {
			return nil, &DirectiveError{number, errors.New("#EVO after the first command: move it above")}
		}
		words, err := SplitDirective(rest)
		if err != nil {
			return nil, &DirectiveError{number, err}
		}
		for len(words) > 0 {
			var d Directive
			if d, words, err = nextOption(words); err != nil {
				return nil, &DirectiveError{number, err}
			}
			d.Line = number
			found = append(found, d)
		}
	}
	return found, nil
}

// nextOption takes --option=value or --option value from the front of words.
func nextOption(words []string) (Directive, []string, error) {
	text, ok := strings.CutPrefix(words[0], "--")
	name, value, joined := strings.Cut(text, "=")
	if !ok || !isOption(name) {
		return Directive{}, nil, fmt.Errorf("unknown #EVO option %q: there are --%s", legible.Brief(words[0]), strings.Join(Options, ", --"))
	}
	words = words[1:]
	switch {
	case IsFlag(name) && joined:
		return Directive{}, nil, fmt.Errorf("option --%s has no value", name)
	case !joined && !IsFlag(name):
		if len(words) == 0 {
			return Directive{}, nil, fmt.Errorf("option --%s needs a value", name)
		}
		value, words = words[0], words[1:]
	}
	return Directive{Name: name, Value: value}, words, nil
}

func isOption(name string) bool {
	return slices.Contains(Options, name)
}

// isCommand reports whether sbatch stops reading directives at this line.
func isCommand(line string) bool {
	trimmed := strings.TrimLeft(line, " \t\r\v\f")
	return trimmed != "" && trimmed[0] != '#'
}

// SplitDirective splits the text after #EVO or #SBATCH into words as sbatch does. Quotes group. A
// backslash escapes the next character (but outside of quotes a tab still ends the word; so does a
// space in old versions, including 22.05). An unquoted # or an empty word ends the line.
func SplitDirective(text string) ([]string, error) {
	var words []string
	for {
		word, rest, err := nextWord(text)
		if err != nil || word == "" {
			return words, err
		}
		words, text = append(words, word), rest
	}
}

// nextWord takes one word from the front of text; an empty one ends the line.
func nextWord(text string) (word, rest string, err error) {
	var b strings.Builder
	i, quote := 0, byte(0)
	for i < len(text) && isSpace(text[i]) {
		i++
	}
scan:
	for ; i < len(text) && (quote != 0 || !isSpace(text[i])); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i+1 < len(text) && (quote != 0 || text[i+1] == ' ' || !isSpace(text[i+1])) {
				i++
				b.WriteByte(text[i])
			}
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == '#':
			break scan
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("unmatched %c", quote)
	}
	return b.String(), text[i:], nil
}

func isSpace(c byte) bool { return c < 0x80 && unicode.IsSpace(rune(c)) }

// Set returns r the option name (one of Options) with the value as written. The
// error of a bad profile is a *planner.ParseError.
func (r *Request) Set(name, value string) (err error) {
	switch name {
	case "component":
		err = r.addComponent(value)
	case "profile":
		if len(r.Components) > 0 {
			return r.setComponent(value)
		}
		err = r.setProfile(value)
	case "malleable":
		err = r.setMalleable(value)
	case "size", "grace", "speedup", "best-effort":
		err = r.malleability().setOption(name, value)
	case "moldable":
		var all []planner.Profile
		if all, err = ParseAlternatives(value); err == nil {
			r.setAlternatives(all)
		}
	case "moldable-by":
		if r.Moldable == nil {
			r.Moldable = &Moldable{}
		}
		r.Moldable.By, err = planner.ParsePreference(value)
	case "expand-limit":
		r.ExpandLimit, err = planner.ParseExpandLimit(value)
	case "drive":
		r.Drive, err = drivemode.Parse(value)
	case "max-nodes":
		r.MaxNodes, err = parseClaim(value)
	case "prefer-start", "prefer-waste", "prefer-near":
		err = r.setAim(name)
	case "on-grow", "on-shrink", "on-step", "stage-in":
		err = r.setScript(name, value)
	default:
		err = fmt.Errorf("unknown option --%s", legible.Brief(name))
	}
	return err
}

// FromScript returns the request in a batch script's #EVO lines. The last value of an option
// counts, as with #SBATCH.
func FromScript(script []byte) (Request, error) { return fromScript(string(script)) }

func fromScript(script string) (Request, error) {
	var s Request
	found, err := parseDirectives(script)
	if err != nil {
		return Request{}, err
	}
	seen := map[string]bool{}
	for _, d := range found {
		if err := s.Set(d.Name, d.Value); err != nil {
			return Request{}, &DirectiveError{d.Line, err}
		}
		seen[d.Name] = true
		if err := Contradiction(func(name string) bool { return seen[name] }); err != nil {
			return Request{}, &DirectiveError{d.Line, err}
		}
	}
	return s, s.SettleComponents()
}

// ErrBoth means that a request has both a profile and alternatives.
var ErrBoth = errors.New("--profile and --moldable exclude each other: a profile among others is one more alternative of --moldable")

// Contradiction returns an error for given options that exclude each other.
func Contradiction(given func(name string) bool) error {
	if given("best-effort") {
		for _, name := range []string{"profile", "moldable", "malleable", "component", "max-nodes"} {
			if given(name) {
				return fmt.Errorf("--best-effort and --%s exclude each other: nothing is promised to a best-effort job; give --nodes=MIN-MAX and --time", name)
			}
		}
	}
	switch {
	case given("profile") && given("moldable"):
		return ErrBoth
	case given("component") && given("moldable"), given("component") && given("malleable"):
		return errors.New("--component excludes --moldable and --malleable: each component has one profile")
	case given("malleable") && given("profile"):
		return errors.New("--malleable and --profile exclude each other: a job that evolves and is malleable has bounds in its profile, as --profile=2-4@10m,5-16@30m")
	case given("malleable") && given("moldable"):
		return errors.New("--malleable and --moldable exclude each other: the size is chosen once, at the start, or it changes while the job runs")
	}
	return nil
}

// Join fills gaps in r, which comes from a marker, from the request in the job's script: the
// profile if the marker had no room for it, and options that are only on #EVO lines.
func (r Request) Join(given Request) (Request, error) {
	if r.Profile == nil {
		r.Profile, r.Components, r.Frequencies = given.Profile, given.Components, given.Frequencies
		if m := given.Moldable; m != nil && r.Moldable != nil {
			one := *r.Moldable
			one.Alternatives = m.Alternatives
			r.Moldable = &one
			if err := r.settle(); err != nil {
				return Request{}, err
			}
		} else if m != nil || r.Moldable != nil {
			return Request{}, errors.New("the marker and the script do not agree on whether the job is moldable")
		}
		if err := r.joinMalleable(given); err != nil {
			return Request{}, err
		}
	}
	if r.ExpandLimit == 0 {
		r.ExpandLimit = given.ExpandLimit
	}
	if r.Drive == "" {
		r.Drive = given.Drive
	}
	if r.MaxNodes == 0 {
		r.MaxNodes = given.MaxNodes
	}
	if r.Aim == planner.NoAim {
		r.Aim = given.Aim
	}
	if r.Profile == nil {
		return Request{}, errors.New("neither the marker nor the script has a profile")
	}
	return r, r.agrees()
}

// WithCommand returns a script of a shell with a line before its first command, below all directives.
func WithCommand(script []byte, command string) []byte {
	at := 0
	for line := range bytes.Lines(script) {
		if isCommand(strings.TrimSuffix(string(line), "\n")) {
			break
		}
		at += len(line)
	}
	before := script[:at:at]
	if at > 0 && script[at-1] != '\n' {
		before = append(before, '\n')
	}
	return slices.Concat(before, []byte(command), []byte("\n"), script[at:])
}
