// Package controller is the shell around the decision core (package core): the sidecar as it runs
// beside a live Slurm. Only the controller has a clock, goroutines, and a log.
//
//	core  ← inputs ─ polls, outcomes, calls of scripts, plans, another configuration
//	core  ─ effects → drive (Slurm), store (rows and intents), strategy (plans), api (replies), log
//
// One goroutine owns the core and calls its Step, writes the rows and intents of a step in one
// transaction, and then starts the actions (controller.go). Plans are made at once, by the strategy
// in use (strategies.go). All commands of Slurm run beside the loop, and their outcome is the next
// input. What the API shows is made after every step and never changed (backend.go).
package controller
