// Package drive carries out on Slurm what the decision core (package core) asks for: each
// command is one or several of Slurm's, in an order in which no crash between two of them
// leaves more behind than the core finds again. It decides nothing, and keeps nothing
// between two commands but what it has seen of the backfill scheduler.
package drive
