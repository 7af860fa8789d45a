package submit

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// owner says whose a command line is.
type owner int

const (
	byScript  owner = iota // the script's #EVO lines decide
	evosbatch              // it asks something of Evoslurm
	stock                  // it is for sbatch as it is
)

// ownerOf returns whose a command line is; bad is what is wrong with its words.
func ownerOf(line getopt.Line, bad error, words, environ []string) owner {
	for _, o := range line.Options {
		switch o.Name {
		case "help", "usage", "version", "autocomplete", "require-profile", "rigid":
			return evosbatch
		}
		if asksToEvolve(o) {
			return evosbatch
		}
	}
	variables := valuesOf(environ)
	if slices.ContainsFunc(shapes, func(name string) bool { return variables[ownVariable(name)] != "" }) {
		return evosbatch
	}
	if bad == nil {
		return byScript
	}
	for _, word := range words { // they cannot be read, but may be meant for us
		if slices.ContainsFunc(request.Options, func(name string) bool { return strings.HasPrefix(word, "--"+name) }) {
			return evosbatch
		}
	}
	return stock
}

// passOn passes a submission that requests nothing of Evoslurm on to sbatch, unchanged, and reports
// whether it did. Otherwise, it returns the script if it had to read it. sbatch also reports
// unreadable files.
func (in reader) passOn(program sbatch, line getopt.Line, bad error, words []string) (*script, bool, error) {
	switch ownerOf(line, bad, words, in.environ) {
	case evosbatch:
		return nil, false, nil
	case stock:
		return nil, true, program.become(words, script{})
	}
	text, err := in.script(line)
	if err != nil && text.fromStdin {
		return nil, true, err
	}
	if hasDirectives(text.text) {
		return &text, false, nil
	}
	if contains(line.Options, "dry-run") {
		program.show(slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "--dry-run" }))
		return nil, true, nil
	}
	return nil, true, program.become(words, text)
}

// hasDirectives reports whether a script has #EVO lines, valid or not; errors in them are reported
// where they are read.
func hasDirectives(script []byte) bool {
	found, err := request.ParseDirectives(script)
	return err != nil || len(found) > 0
}
