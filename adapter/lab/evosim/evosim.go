// Package evosim is the part of the command evosim that needs only the planner: it plans a workload
// file, generates workloads, and repeats the papers' evaluations. Its main (adapter/cmd/evosim)
// adds the commands that run the sidecar's core.
package evosim

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// New returns the command evosim with further subcommands. The linker sets version.
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
	root.SetVersionTemplate("{{.Version}}\n") // like all commands of Evoslurm
	root.Flags().BoolP("version", "V", false, "show the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return inputError{err} })
	root.AddCommand(scheduleCommand(), generateCommand(), paperCommand(), compareCommand(), koalaCommand(), placementCommand(), pecs23Command(), oarCommand(), greenCommand(), cigriCommand())
	root.AddCommand(more...)
	return root
}

// Run is main with all its inputs as arguments. It returns the exit status: 0, 2 for bad usage or
// bad input, and 1 for anything else (see [Failure]).
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
		return 130 // a shell's status for SIGINT
	}
	if errors.As(err, new(Failure)) {
		return 1
	}
	return 2
}

// inputError is an error in the caller's input.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// Failure is an error despite good input.
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
