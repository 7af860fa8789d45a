package submit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// arity says whether an option has a value, as getopt_long has it.
type arity int

const (
	flag     arity = iota // never
	optional              // only joined on: --name=value, -xvalue
	required              // joined on or the next word
)

// sbatch's options of releases 22.05 to 26.05, as long/short. An option that is
// in some of them only is harmless in the others: sbatch itself refuses it.
const (
	requiredOptions = `account/A acctg-freq array/a autocomplete batch bb bbf begin/b chdir/D cluster
		cluster-constraint clusters/M comment constraint/C container container-id container-type context
		core-spec/S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task/c deadline delay-boot dependency/d
		distribution/m error/e exclude/x export export-file extra extra-node-info/B gid gpu-bind gpu-freq
		gpus/G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input/i job-name/J
		kill-on-invalid-dep licenses/L mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu
		mem-update mincpus network nodefile/F nodelist/w nodes/N ntasks/n ntasks-per-core ntasks-per-gpu
		ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output/o partition/p power prefer
		priority profile qos/q reservation resources segment signal sockets-per-node switches
		tasks-per-node thread-spec threads-per-core time/t time-min tmp tres-bind tres-per-task uid
		wait-all-nodes wckey wrap`
	optionalOptions = `exclusive get-user-env nice no-kill/k oom-kill-step propagate requeue resv-ports`
	flagOptions     = `consolidate-segments contiguous external help/h hold/H ignore-pbs no-requeue overcommit/O
		oversubscribe/s parsable quiet/Q reboot spread-job spread-segments stepmgr test-only usage
		use-min-nodes verbose/v version/V wait/W`
	ownOptions = `expand-limit drive` // and profile, whose name sbatch uses too
	ownFlags   = `dry-run`
)

// optionTable knows the options by their long names and by their letters.
type optionTable struct {
	long  map[string]arity
	short map[byte]string // letter to long name
}

func newOptionTable() *optionTable {
	t := &optionTable{long: map[string]arity{}, short: map[byte]string{}}
	for has, names := range map[arity]string{
		required: requiredOptions + " " + ownOptions,
		optional: optionalOptions,
		flag:     flagOptions + " " + ownFlags,
	} {
		for field := range strings.FieldsSeq(names) {
			name, letter, _ := strings.Cut(field, "/")
			t.add(name, letter, has)
		}
	}
	return t
}

func (t *optionTable) add(name, letter string, has arity) {
	t.long[name] = has
	if letter != "" {
		t.short[letter[0]] = name
	}
}

var helpLine = regexp.MustCompile(`(?m)^\s+(?:-(\w),\s+)?--([A-Za-z0-9][\w-]*)(\[=|=)?`)

// learn adds the options of sbatch's own help text that the table does not know:
// those of a site's plugins, and of releases to come.
func (t *optionTable) learn(help string) {
	for _, m := range helpLine.FindAllStringSubmatch(help, -1) {
		if _, known := t.long[m[2]]; known {
			continue
		}
		has := flag
		switch {
		case strings.HasPrefix(m[3], "["):
			has = optional
		case m[3] != "":
			has = required
		}
		letter := m[1]
		if letter != "" && t.short[letter[0]] != "" {
			letter = ""
		}
		t.add(m[2], letter, has)
	}
}

// option is one option as it was found.
type option struct {
	name     string // long, in full
	value    string
	hasValue bool
	words    []string // as written, a bundle of letters taken apart
	at       int      // index of the word it begins in
	source   string   // for messages: "" the command line, else where it stands
}

// spelled names the option and its place for a message.
func (o option) spelled() string {
	text := "--" + o.name
	if o.hasValue {
		text += "=" + clip(o.value)
	}
	if o.source != "" {
		text += " (" + o.source + ")"
	}
	return text
}

// commandLine is a list of words, taken apart as getopt_long does for sbatch.
type commandLine struct {
	options  []option
	dashes   bool     // "--" ended the options
	operands []string // the script and its arguments
	failed   int      // index of the word that could not be read, beside an error
}

// unknownOption is an option that the table does not have.
type unknownOption struct{ word string }

func (e *unknownOption) Error() string { return "unrecognized option '" + e.word + "'" }

// parse takes words apart: options first, up to "--" or the first word that is
// none. The error is an *unknownOption where the table lacks one.
func (t *optionTable) parse(words []string, source string) (commandLine, error) {
	var line commandLine
	for i := 0; i < len(words); {
		word := words[i]
		switch {
		case word == "--":
			line.dashes, line.operands = true, words[i+1:]
			return line, nil
		case strings.HasPrefix(word, "--"):
			o, used, err := t.parseLong(words[i:])
			if err != nil {
				line.failed = i
				return line, err
			}
			o.source, o.words, o.at = source, words[i:i+used], i
			line.options = append(line.options, o)
			i += used
		case len(word) > 1 && word[0] == '-':
			found, used, err := t.parseShort(words[i:])
			if err != nil {
				line.failed = i
				return line, err
			}
			for _, o := range found {
				o.source, o.at = source, i
				line.options = append(line.options, o)
			}
			i += used
		default:
			line.operands = words[i:]
			return line, nil
		}
	}
	return line, nil
}

// parseLong reads --name, --name=value or --name value; the name may be cut
// short as long as it is clear which one is meant.
func (t *optionTable) parseLong(words []string) (option, int, error) {
	name, value, joined := strings.Cut(words[0][2:], "=")
	full, err := t.complete(name)
	if err != nil {
		return option{}, 0, err
	}
	o := option{name: full, value: value, hasValue: joined}
	switch t.long[full] {
	case flag:
		if joined {
			return option{}, 0, fmt.Errorf("option '--%s' doesn't allow an argument", full)
		}
	case required:
		if !joined {
			if len(words) < 2 {
				return option{}, 0, fmt.Errorf("option '--%s' requires an argument", full)
			}
			o.value, o.hasValue = words[1], true
			return o, 2, nil
		}
	}
	return o, 1, nil
}

func (t *optionTable) complete(name string) (string, error) {
	if _, exact := t.long[name]; exact {
		return name, nil
	}
	var candidates []string
	if name != "" {
		for _, full := range slices.Sorted(maps.Keys(t.long)) {
			if strings.HasPrefix(full, name) {
				candidates = append(candidates, full)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return "", &unknownOption{"--" + name}
	case 1:
		return candidates[0], nil
	}
	return "", fmt.Errorf("option '--%s' is ambiguous: --%s", name, strings.Join(candidates, ", --"))
}

// parseShort reads a word of letters such as -N2, -vv or -kHJ name.
func (t *optionTable) parseShort(words []string) ([]option, int, error) {
	var found []option
	letters := words[0][1:]
	for i := 0; i < len(letters); i++ {
		name, known := t.short[letters[i]]
		if !known {
			return nil, 0, &unknownOption{"-" + letters[i:i+1]}
		}
		o := option{name: name}
		rest := letters[i+1:]
		has := t.long[name]
		switch {
		case has == flag || has == optional && rest == "":
			o.words = []string{"-" + letters[i:i+1]}
			found = append(found, o)
			continue
		case rest != "":
			o.value, o.hasValue, o.words = rest, true, []string{"-" + letters[i:]}
			return append(found, o), 1, nil
		case len(words) < 2:
			return nil, 0, fmt.Errorf("option requires an argument -- '%c'", letters[i])
		}
		o.value, o.hasValue, o.words = words[1], true, []string{"-" + letters[i:], words[1]}
		return append(found, o), 2, nil
	}
	return found, 1, nil
}

// clip bounds what a message repeats of a text.
func clip(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// OptionNames are all options for shell completion, evosbatch's own first; those
// that need a value end in '='.
func OptionNames() []string {
	t := newOptionTable()
	names := []string{"--profile=", "--expand-limit=", "--drive=", "--dry-run"}
	for _, name := range slices.Sorted(maps.Keys(t.long)) {
		text := "--" + name
		if t.long[name] == required {
			text += "="
		}
		if !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}

// ScriptGiven tells whether the words go beyond the options: what follows are
// the script's arguments.
func ScriptGiven(words []string) bool {
	line, err := newOptionTable().parse(words, "")
	return err == nil && len(line.operands) > 0
}
