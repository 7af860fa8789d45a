// Package simulate runs the sidecar in virtual time: the same decision core (package core) and the
// same commands (package drive) as with a live Slurm, over a model of slurmctld (package slurmsim).
// A day takes a fraction of a second, and equal seeds give equal runs.
//
//	sidecar.go   the shell: one core, its tasks as processes in virtual time
//	database.go  what it writes down, in memory
//	users.go     who submits jobs, and the applications in them
//	experiment.go whole workloads and their outcome (rest.go skips polls)
//	history.go   readable scripts of what happens, and what the sidecar does about it: the same at rest;
//	             site.go has their words for the cluster and its administrators
//	storm.go     random faults, crashes, and users, and what must hold anyway (check.go), also
//	             that jobs make progress once the storm is over (alive.go)
package simulate
