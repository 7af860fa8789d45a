// Package observe has a sidecar in mode observe watch a mixed workload on a private Slurm, under an account without
// any right beyond reading. Then it plays the same time in the model, and writes the report: make observe, for half an
// hour. It checks by sdiag that the observer changed nothing.
package observe
