// Package fidelity holds the model of Slurm with the sidecar beside it (package simulate) to
// the real ones: random workloads of stock and evolving jobs in all drive modes, as a real
// private Slurm with evoslurmd has played them (testdata, recorded by make fidelity), are
// played on the model as they were submitted.
package fidelity
