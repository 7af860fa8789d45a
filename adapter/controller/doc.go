// Package controller is the sidecar's loop. It turns what users asked for into
// what Slurm does:
//
//	observe  one squeue, one sinfo, one look at the reservations   observe.go, pace.go
//	adopt    parked jobs with a marker become evolving jobs        adopt.go, asked.go
//	follow   what became of the jobs that are known                follow.go
//	plan     every evolving job together with all that runs        occupancy.go, plan.go, age.go, partitions.go, refit.go
//	act      start, grow, shrink, one action a job at a time       act.go, start.go, resize.go, bring.go
//	keep     what a limit does not let happen, holding nothing     kept.go
//	hold     nodes of coming starts and growths, as reservations   holds.go, holdsync.go
//	         below the site's bounds, for those in time            bounds.go, lapse.go
//	         and whoever gets into one that is for another        intruders.go
//	switch   nodes of holds on, where Slurm saves power             power.go
//	mirror   planned starts, for squeue and for Slurm              mirror.go
//
// One goroutine owns all state and runs the loop. It runs no Slurm command itself:
// slurmctld may let one wait for seconds. All of them, looks too, run beside it
// (work.go) and post their outcome back (post), after which act, hold and mirror
// begin what is due by then, the most urgent first. Every decision is made
// from the present state alone, never from a history of calls or a queue: a sidecar
// that was killed at any point looks again and goes on.
//
// What a look has shown may be older than what was done since: of a job that is busy,
// or was touched after the look began, it is not believed.
//
// Terms: a job's base job runs the user's script; expanders bring nodes; a hold
// is a reservation on nodes of a coming start or growth.
package controller
