// Package simulate runs the sidecar in virtual time: the same decision core (package core)
// and the same commands (package drive) as beside a live Slurm, over a model of slurmctld
// (package slurmsim). A day takes a fraction of a second, and equal seeds give equal runs.
//
//	sidecar.go   the shell: one core, its tasks as processes in virtual time
//	database.go  what it writes down, in memory
//	users.go     who submits jobs, and the applications in them
//	experiment.go whole workloads, and what became of them (rest.go leaves polls out)
//	history.go   readable scripts of what happens, and what the sidecar does about it: the same at rest;
//	             site.go has their words for the cluster and its administrators
//	storm.go     chance: faults, crashes, users; and what must hold all the same (check.go), also
//	             that everybody gets on once it is over (alive.go)
package simulate
