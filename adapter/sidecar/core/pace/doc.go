// Package pace decides when to poll Slurm. It makes the snapshot of what a poll shows, and alone changes it.
package pace
