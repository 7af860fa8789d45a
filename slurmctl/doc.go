// Package slurmctl is everything that speaks to Slurm: it runs the stock
// commands (squeue, sinfo, scontrol, sbatch, salloc, scancel), parses what they
// print and gives typed values back. It is the only place that knows Slurm's
// quirks; what they are was measured on real clusters and is told at each
// function that minds one.
//
// No command ever goes through a shell, every call has a deadline, and every
// argument is checked so that no value can become an option or a second command.
package slurmctl
