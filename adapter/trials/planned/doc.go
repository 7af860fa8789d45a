// Package planned measures how close to their planned starts stock jobs start: sidecars in mode observe watch six mixed
// workloads on private Slurms, and what they planned is compared with what Slurm did, beside squeue --start: make planned.
package planned
