// Package evosim is the command evosim as far as the planner goes: it plans a workload file,
// generates workloads and repeats the papers' evaluations. What runs the sidecar's core, too,
// is added by its main (adapter/cmd/evosim).
package evosim

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
)

// New is the command evosim with more subcommands. Version is what the linker has set.
func New(version string, more ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "evosim",
		Short:         "Plan evolving jobs offline",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if root.Version = "evoslurm " + version; version == "" {
		root.Version += "(devel)"
	}
	root.SetVersionTemplate("{{.Version}}\n") // as all of Evoslurm's commands
	root.Flags().BoolP("version", "V", false, "show the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return inputError{err} })
	root.AddCommand(scheduleCommand(), generateCommand(), paperCommand(), compareCommand(), koalaCommand(), pecs23Command(), oarCommand())
	root.AddCommand(more...)
	return root
}

// Run is main with everything passed in; it gives the exit status: 0, 2 for bad usage or bad
// input, and 1 for anything else (see [Failure]).
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "evosim: %v\n", err)
	if errors.Is(err, context.Canceled) {
		return 130 // as a shell has it for SIGINT
	}
	if errors.As(err, new(Failure)) {
		return 1
	}
	return 2
}

// inputError is what the caller did wrong.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// Failure is what went wrong with good input.
type Failure struct{ Err error }

func (e Failure) Error() string { return e.Err.Error() }
func (e Failure) Unwrap() error { return e.Err }

// format is the value of --format.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "json|table" }
func (f *format) Set(s string) error {
	if s != "json" && s != "table" {
		return errors.New(`must be "json" or "table"`)
	}
	*f = format(s)
	return nil
}

// output makes an error of writing a failure.
func output(err error) error {
	if err != nil {
		return Failure{err}
	}
	return nil
}

// create writes a file that is there whole or not at all, gzipped if it ends in .gz.
func create(file string, write func(io.Writer) error) error {
	filled := false
	err := wholefile.Write(file, 0o666, func(out io.Writer) error {
		err := fill(out, strings.HasSuffix(file, ".gz"), write)
		filled = err == nil
		return err
	})
	if filled {
		return output(err)
	}
	return err
}

// fill has write write to out, by way of a buffer.
func fill(out io.Writer, zipped bool, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(sink{out}, 1<<16)
	if !zipped {
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	}
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return errors.Join(z.Close(), w.Flush())
}

// sink is what is written to; where it takes no more, that is not the input's fault.
type sink struct{ io.Writer }

func (s sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	return n, output(err)
}
