// Package slurmctl is everything that speaks to Slurm: it runs the stock
// commands (squeue, sinfo, scontrol, sbatch, salloc, scancel), parses what they
// print and gives typed values back. It is the only place that knows Slurm's
// quirks; what they are was measured on real clusters (20.11 to 26.05) and is
// described at each function that deals with one.
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
// Output is text by format, which changes less between versions than JSON. Job
// names and comments may hold anything, newlines too: fields are kept apart by a
// separator drawn at random for each call and passed in the environment, where
// other users cannot read it. Commands run in a clean environment with times as
// epoch seconds (SLURM_TIME_FORMAT=%s) and give times as "uts<seconds>", so that
// neither time zones nor changes of clocks matter. Whatever one user asks for,
// all jobs are read: what is odd is given as text, or as the most there is.
//
// # Errors
//
// A command that fails gives a *CommandError with its arguments, exit status and
// stderr; errors.Is tells what it means (ErrUnknownJob, ErrNodesBusy, …).
package slurmctl
