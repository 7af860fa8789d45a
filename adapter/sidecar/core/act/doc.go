// Package act starts, grows, and shrinks jobs, one action per job at a time, and shows planned starts to Slurm.
package act
