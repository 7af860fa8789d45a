package submit

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
)

// maxScript bounds a script, in bytes; Slurm's own bound is 4 MiB as a rule.
const maxScript = 64 << 20

// reader reads what a command line refers to.
type reader struct {
	environ  []string
	stdin    *os.File
	stderr   io.Writer
	lastRuns func(ctx context.Context, name string) (profile, what string, err error) // Command.LastRuns
	site     site
}

// script reads the script of a command line.
func (in reader) script(line getopt.Line) (s script, err error) {
	switch {
	case contains(line.Options, "wrap"):
		return script{name: "--wrap"}, nil
	case len(line.Operands) > 0:
		s.name = filepath.Base(line.Operands[0])
		s.text, err = readScript(in.find(line.Operands[0]))
	default:
		s.name, s.fromStdin = "stdin", true
		s.text, err = readAll(in.stdin)
	}
	return s, err
}

// find searches for a script where sbatch does: a name without a leading dot or slash in the
// working directory, then in PATH.
func (in reader) find(name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") {
		return name
	}
	for _, dir := range append([]string{""}, filepath.SplitList(valuesOf(in.environ)["PATH"])...) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("unable to open the script: %w", err)
	}
	defer f.Close()
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	script, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the script: %w", err)
	case len(script) > maxScript:
		return nil, fmt.Errorf("the script is larger than %d MiB", maxScript>>20)
	}
	return script, nil
}
