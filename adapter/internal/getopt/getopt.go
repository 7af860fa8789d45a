// Package getopt reads the options of sbatch and srun as they do (getopt_long): up to "--" or the
// first word that is not an option. Letters may be joined, and long names abbreviated while
// unambiguous.
package getopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// Arity reports whether an option has a value.
type Arity int

// The arities.
const (
	Flag     Arity = iota // never
	Optional              // only joined on: --name=value, -xvalue
	Required              // joined on or the next word
)

// Table knows a command's options by their long names and by their letters.
type Table struct {
	Long  map[string]Arity
	Short map[byte]string // letter to long name
	// Foreign accepts unknown options: an option that is not in the table, or whose name is
	// ambiguous, counts as a flag, with a value if one is joined on.
	Foreign bool
	// Whole lists long names that are never abbreviated.
	Whole []string
}

// NewTable makes a table of names, each long/letters.
func NewTable(names map[Arity]string) *Table {
	t := &Table{Long: map[string]Arity{}, Short: map[byte]string{}}
	for has, list := range names {
		for field := range strings.FieldsSeq(list) {
			name, letters, _ := strings.Cut(field, "/")
			t.Add(name, letters, has)
		}
	}
	return t
}

// Add adds an option.
func (t *Table) Add(name, letters string, has Arity) {
	t.Long[name] = has
	for i := range len(letters) {
		t.Short[letters[i]] = name
	}
}

// Option is one option as it was found.
type Option struct {
	Name     string // long, in full
	Value    string
	HasValue bool
	Words    []string // as written, a bundle of letters taken apart
	At       int      // index of the word it begins in
	Source   string   // for messages: "" for the command line, otherwise the source
}

// String names the option and its place for a message.
func (o Option) String() string {
	text := "--" + o.Name
	if o.HasValue {
		text += "=" + legible.Brief(o.Value)
	}
	if o.Source != "" {
		text += " (" + o.Source + ")"
	}
	return text
}

// Line is a list of words, taken apart.
type Line struct {
	Options  []Option
	Dashes   bool     // "--" ended the options
	Operands []string // what follows them
	Failed   int      // index of the unreadable word, with an error
}

// UnknownError is an option that the table does not have.
type UnknownError struct{ Word string }

func (e *UnknownError) Error() string { return "unrecognized option '" + e.Word + "'" }

// Parse parses words. If the table lacks an option, the error is an *UnknownError.
func (t *Table) Parse(words []string, source string) (Line, error) {
	var line Line
	for i := 0; i < len(words); {
		word := words[i]
		read := t.short
		switch {
		case word == "--":
			line.Dashes, line.Operands = true, words[i+1:]
			return line, nil
		case strings.HasPrefix(word, "--"):
			read = t.long
		case len(word) < 2 || word[0] != '-':
			line.Operands = words[i:]
			return line, nil
		}
		found, used, err := read(words[i:])
		if err != nil {
			line.Failed = i
			return line, err
		}
		for _, o := range found {
			o.Source, o.At = source, i
			line.Options = append(line.Options, o)
		}
		i += used
	}
	return line, nil
}

// long reads --name, --name=value or --name value.
func (t *Table) long(words []string) ([]Option, int, error) {
	name, value, joined := strings.Cut(words[0][2:], "=")
	full, err := t.complete(name)
	if err != nil && !t.Foreign {
		return nil, 0, err
	}
	o := Option{Name: full, Value: value, HasValue: joined, Words: words[:1]}
	switch has := t.Long[full]; {
	case has == Flag && joined && !t.Foreign:
		return nil, 0, fmt.Errorf("option '--%s' doesn't allow an argument", full)
	case has != Required || joined:
		return []Option{o}, 1, nil
	case len(words) < 2:
		return nil, 0, fmt.Errorf("option '--%s' requires an argument", full)
	}
	o.Value, o.HasValue, o.Words = words[1], true, words[:2]
	return []Option{o}, 2, nil
}

// complete returns the full name or, with an error, the name itself.
func (t *Table) complete(name string) (string, error) {
	if _, exact := t.Long[name]; exact {
		return name, nil
	}
	var candidates []string
	if name != "" {
		for _, full := range slices.Sorted(maps.Keys(t.Long)) {
			if strings.HasPrefix(full, name) && !slices.Contains(t.Whole, full) {
				candidates = append(candidates, full)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return name, &UnknownError{"--" + name}
	case 1:
		return candidates[0], nil
	}
	return name, fmt.Errorf("option '--%s' is ambiguous: --%s", name, strings.Join(candidates, ", --"))
}

// short reads a word of letters such as -N2, -vv or -kHJ name.
func (t *Table) short(words []string) ([]Option, int, error) {
	var found []Option
	letters := words[0][1:]
	for i := range len(letters) {
		letter, rest := letters[i:i+1], letters[i+1:]
		name, known := t.Short[letters[i]]
		if !known && !t.Foreign {
			return nil, 0, &UnknownError{"-" + letter}
		}
		o := Option{Name: name, Words: []string{"-" + letter}}
		has := Flag
		if known {
			has = t.Long[name]
		} else {
			o.Name = letter
		}
		switch {
		case has == Flag || has == Optional && rest == "":
			found = append(found, o)
			continue
		case rest != "":
			o.Value, o.HasValue, o.Words = rest, true, []string{"-" + letters[i:]}
			return append(found, o), 1, nil
		case len(words) < 2:
			return nil, 0, fmt.Errorf("option requires an argument -- '%s'", letter)
		}
		o.Value, o.HasValue, o.Words = words[1], true, []string{"-" + letter, words[1]}
		return append(found, o), 2, nil
	}
	return found, 1, nil
}
