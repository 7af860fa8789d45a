// Command evosim runs the planner offline: it plans a workload file, generates
// workloads and repeats the paper's evaluation.
//
// It exits with 0, with 2 for bad usage or bad input, and with 1 for anything else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

var linked string // the version, set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with everything passed in; it gives the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "evosim",
		Short:         "Plan evolving jobs offline",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if root.Version = "evoslurm " + linked; linked == "" {
		root.Version += "(devel)"
	}
	root.SetVersionTemplate("{{.Version}}\n") // as all of Evoslurm's commands
	root.Flags().BoolP("version", "V", false, "show the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return inputError{err} })
	root.AddCommand(scheduleCommand(), generateCommand(), paperCommand(), compareCommand())
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
	if errors.As(err, new(failure)) {
		return 1
	}
	return 2
}

// inputError is what the caller did wrong.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// failure is what went wrong with good input.
type failure struct{ error }

func (e failure) Unwrap() error { return e.error }

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
		return failure{err}
	}
	return nil
}
