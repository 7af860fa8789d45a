package slurmsim

import (
	"context"
	"errors"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Errors of commands that cannot reach slurmctld.
var (
	errUnreachable = &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: 1, Stderr: "Unable to contact slurm controller (connect failure)",
		Err: errors.New("exit status 1")}
	errTimeout = &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: -1, Err: context.DeadlineExceeded}
)

// refusal returns an error in slurmctld's words.
func refusal(text string) error { return refusalOf("scontrol", text) }

func refusalOf(command, text string) error {
	return &slurmctl.CommandError{Args: []string{command}, ExitCode: 1, Stderr: text, Err: errors.New("exit status 1")}
}

// Refusal returns the error of a Slurm command that fails with these words, for [Fault.Err].
func Refusal(text string) error { return refusal(text) }

// submitted rewrites a refusal as sbatch or salloc prints it.
func submitted(command, prefix string, err error) error {
	var ce *slurmctl.CommandError
	if !errors.As(err, &ce) {
		return err
	}
	return refusalOf(command, command+": error: "+prefix+ce.Stderr)
}

func errDBIndex() error {
	return refusal("Job update not available right now, the DB index is being set, try again in a bit")
}
