package request

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// The bounds of a job's input files. Their names stand in one line of its script.
const (
	MostInputs  = 256
	longestFile = 1024 // bytes
)

// setScript returns r an option for the script alone, which the sidecar does not see.
func (r *Request) setScript(name, value string) error {
	if name == "stage-in" {
		return r.addInputs(value)
	}
	return r.Hooks.set(name, value)
}

// addInputs adds the files of a value of --stage-in, separated by commas.
func (r *Request) addInputs(text string) error {
	all := slices.Clone(r.Inputs)
	for name := range strings.SplitSeq(text, ",") {
		switch {
		case name == "" || name[0] == '-':
			return fmt.Errorf("--stage-in: %q is no name of a file", legible.Brief(name))
		case len(name) > longestFile || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			return fmt.Errorf("--stage-in: %q: want UTF-8 text of %d bytes at most, without control characters", legible.Brief(name), longestFile)
		case slices.Contains(all, name):
			continue
		case len(all) == MostInputs:
			return fmt.Errorf("--stage-in: a job has %d input files at most: join some into an archive", MostInputs)
		}
		all = append(all, name)
	}
	r.Inputs = all
	return nil
}
