// Package simulate runs the sidecar in virtual time: the same decision core (package core) and the
// same commands (package drive) as with a live Slurm, over a model of slurmctld (package slurmsim).
// A day takes a fraction of a second, and equal seeds give equal runs.
//
// A row calls those below it, never one above.
//
//	storm.go     random faults, crashes, and users
//	history.go   readable scripts of what happens, and what the sidecar does about it: the same at rest
//	words.go     the words of scripts: submit.go for users, site.go for the cluster and its
//	             administrators, faults.go, sluggish.go, and lost.go for what fails
//	check.go     what must hold in every history, also delays (delay.go), what the core promises to leave
//	             (promise.go), the ledger (ledger.go), and that jobs make progress
//	             once a storm is over (alive.go)
//	stage.go     what a history is about: its jobs, and what is wrong with them
//	hosts.go     two hosts with a sidecar each, and the lease between them
//	experiment.go whole workloads and their outcome, with checkpoints (checkpoint.go)
//	scripts.go   applications as they run
//	calls.go     what jobs ask of the sidecar
//	app.go       applications, with what they got (verdict.go) and asked for since (changed.go)
//	sidecar.go   the shell: one core, its tasks as processes in virtual time (rest.go skips polls)
//	database.go  what it writes down, in memory
package simulate
