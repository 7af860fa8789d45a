// Package slurmctl holds everything that speaks to Slurm: it runs the stock commands (squeue,
// sinfo, scontrol, sbatch, salloc, scancel), parses what they print, and returns typed values. Only
// this package knows Slurm's quirks. They were measured on real clusters (20.11 to 26.05), and each
// is described at the function that handles it.
//
//	c := &slurmctl.Client{}
//	jobs, err := c.Jobs(ctx)
//	if errors.Is(err, slurmctl.ErrUnreachable) { … }
//
// # Arguments
//
// No command ever goes through a shell, every call has a deadline, and every
// argument is checked so that no value can become an option or a second setting.
// Free text (job names, comments) travels as one argument of its own.
//
// # Output
//
// The client asks for formatted text, which changes less between versions than JSON. Job names and
// comments may hold anything, including newlines. So a random separator, drawn for each call, keeps
// fields apart; it travels in the environment, where other users cannot read it. Commands run in a
// clean environment with times as epoch seconds (SLURM_TIME_FORMAT=%s) and get times as
// "uts<seconds>", so that neither time zones nor clock changes matter. All jobs are read, whatever
// one user requests: an odd value becomes text or the largest possible value.
//
// # Errors
//
// A command that fails returns a *CommandError with its arguments, exit status, and stderr.
// errors.Is finds its meaning (ErrUnknownJob, ErrNodesBusy, …).
package slurmctl
