// Package core decides what the sidecar does: it holds the known state of a cluster and its evolving
// jobs, and derives what follows from that state. It carries out nothing itself. It has no I/O, no
// clock, no goroutine and no log. A shell around it has all these:
//
//	effects := core.Step(now, inputs...)
//
// An [Input] reports what has happened: Slurm was observed, an effect has an outcome, a job's
// script calls next, a strategy has answered, or the configuration has changed. An [Effect]
// describes what the shell must do: change or query Slurm ([Task]), have the strategy make a plan
// ([Plan]), write rows ([Write]), send a reply, write a log line, or call again at some time. Inputs
// and effects are plain values. They can be printed, compared and saved. So the same core runs
// beside a live Slurm (package controller), and over a model of Slurm in virtual time.
//
// [Core.Step] has this order:
//
//	observe  a poll of Slurm replaces the one before             observe.go, pace.go, marks.go
//	adopt    parked jobs with a marker become evolving jobs       adopt.go, asked.go, request.go
//	         what malleable jobs take beyond their profiles       sizes.go
//	         what their drive modes mean on this site             drivetable.go
//	         jobs whose handling ended the sidecar are set aside   aside.go
//	follow   what became of the known jobs                        follow.go, replaced.go, suspended.go, kept.go, refit.go
//	plan     every evolving job together with all that runs       occupancy.go, plan.go, problem.go, age.go, partitions.go
//	         which alternative a moldable job gets, and has in Slurm       moldable.go
//	manage   which malleable jobs may have more than planned          malleable.go, manage.go, policy.go
//	act      start, grow, shrink, one action per job at a time    act.go, start.go, resize.go, bring.go
//	         how long Slurm lets a job run                         timelimit.go, deadlock.go
//	hold     nodes of coming starts and growths, as reservations  holds.go, holdsync.go
//	         as far as shares allow, for jobs in time            bounds.go, lapse.go
//	         as far as they do not make stock jobs late           delay.go, giveway.go
//	         jobs that get into a hold for another job            intruders.go
//	         what holds keep from waiting jobs                    price.go
//	switch   nodes of holds on, if Slurm saves power              power.go
//	mirror   planned starts, for squeue and for Slurm             mirror.go
//	         why each job is where it is, in words                reason.go
//	answer   waiting scripts, and requests for changes            calls.go, change.go
//	         whether a change is possible, on a copy              attempt.go, trychange.go
//	         how many events users cause by asking                 muted.go
//	         offers to malleable applications, and their answers  offers.go
//	         progress of applications, and their speed by nodes   progress.go
//
// Changes of Slurm take time: slurmctld may delay a change for seconds. Until the outcome of an
// action is known, the job is busy, and the core starts no other action for it. The core then
// derives what is due from the state again, never from a queue (work.go). A poll may be older than
// changes made since. So the core ignores a poll for a job that is busy, or was touched after the
// poll began. If the sidecar is killed at any point, it polls again after a restart and continues.
//
// Terms: a job's base job runs the user's script; expanders bring nodes; a hold
// is a reservation on nodes of a coming start or growth.
package core
