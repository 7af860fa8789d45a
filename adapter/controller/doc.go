// Package controller is the sidecar's loop. It turns what users asked for into
// what Slurm does:
//
//	observe  one squeue, one sinfo, one look at the reservations   observe.go
//	adopt    parked jobs with a marker become evolving jobs        adopt.go
//	follow   what became of the jobs that are known                follow.go
//	plan     every evolving job together with all that runs        occupancy.go, plan.go, refit.go
//	hold     nodes of coming starts and growths, as reservations   holds.go
//	act      start, grow, shrink, one action a job at a time       act.go, start.go, resize.go
//
// One goroutine owns all state and runs the loop; Slurm commands that change a
// job run beside it and post their outcome back (post). Every decision is made
// from the present state alone, never from a history of calls: a sidecar that was
// killed at any point looks again and goes on.
//
// Terms: a job's base job runs the user's script; expanders bring nodes; a hold
// is a reservation on nodes of a coming start or growth.
package controller
