// Package measured makes a profile from a run that was measured: its size over time, such as the cells of a mesh. It reads what a
// code printed, and finds the steps that keep the least node time beyond the need. It knows of no Slurm and no sidecar.
package measured
