// Package pace decides when to poll Slurm, and makes a snapshot of what a poll shows.
package pace
