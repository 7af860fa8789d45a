// Package drive carries out the decision core's commands (package core) on Slurm. Each is one or
// several commands of Slurm, in an order in which no crash between two of them leaves more behind
// than the core finds again. It decides nothing, and keeps only what it has seen of the backfill
// scheduler.
package drive
