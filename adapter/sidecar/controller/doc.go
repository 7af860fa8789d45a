// Package controller is the shell around the decision core (package core): the sidecar as it
// runs beside a live Slurm. It alone has a clock, goroutines and a log.
//
//	core  ← inputs ─ polls, outcomes, calls of scripts, plans, another configuration
//	core  ─ effects → drive (Slurm), store (rows and intents), strategy (plans), api (replies), log
//
// One goroutine owns the core and calls its Step, writes the rows and intents of a step in
// one transaction, and then begins what is to be done (controller.go). Plans are made at
// once, by the strategy in use (strategies.go); everything on Slurm runs beside the loop,
// and its outcome is the next input. What the API shows is made after every step and never
// changed (backend.go).
package controller
