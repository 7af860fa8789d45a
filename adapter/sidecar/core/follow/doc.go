// Package follow finds out what became of the known jobs and refits their plans. It also decides when to poll Slurm.
package follow
