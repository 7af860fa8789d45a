// Package slurm works out what Slurm would do: which nodes a job may get, limits of accounts and partitions, rank,
// age, and what is busy until when.
package slurm
