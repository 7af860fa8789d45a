// Package stock lists the stock jobs that compete with evolving jobs, in the order of their urgency, and predicts how Slurm
// packs them on nodes that they share.
package stock
