// Package core is the sidecar's decision core: what is known of a cluster and its evolving
// jobs, and what follows from that. It does nothing itself. It has no I/O, no clock, no
// goroutine and no log; a shell around it has all these:
//
//	effects := core.Step(now, inputs...)
//
// An [Input] is what has happened: Slurm was observed, an effect has come out somehow, a
// job's script calls next, a strategy has answered, the configuration is another one. An
// [Effect] is what is to be done: a change of Slurm or a question to it ([Task]), a plan to
// be made by the strategy ([Plan]), rows to be written ([Write]), a reply, a line for the
// log, the time at which to call again. Inputs and effects are plain values: they can be
// printed, compared and written down. So the same core runs beside a live Slurm
// (package controller), and over a model of one in virtual time.
//
// The order is in [Core.Step]:
//
//	observe  a poll of Slurm replaces the one before             observe.go, pace.go, marks.go
//	adopt    parked jobs with a marker become evolving jobs       adopt.go, asked.go, request.go
//	         what malleable ones take beyond their profiles       sizes.go
//	         what their drive modes mean on this site             drivetable.go
//	         those are set aside whose handling ended the sidecar  aside.go
//	follow   what became of the jobs that are known               follow.go, replaced.go, suspended.go, kept.go, refit.go
//	plan     every evolving job together with all that runs       occupancy.go, plan.go, problem.go, age.go, partitions.go
//	         which alternative a moldable job gets, and has in Slurm       moldable.go
//	manage   which malleable jobs may have more than is planned       malleable.go, manage.go, policy.go
//	act      start, grow, shrink, one action a job at a time      act.go, start.go, resize.go, bring.go
//	         how long Slurm lets it run                            timelimit.go, deadlock.go
//	hold     nodes of coming starts and growths, as reservations  holds.go, holdsync.go
//	         as far as shares allow, for those in time           bounds.go, lapse.go
//	         as far as stock jobs are not late by them            delay.go, giveway.go
//	         and whoever gets into one that is for another        intruders.go
//	         and what they keep from jobs that wait               price.go
//	switch   nodes of holds on, where Slurm saves power           power.go
//	mirror   planned starts, for squeue and for Slurm             mirror.go
//	         why each job is where it is, in words                reason.go
//	answer   scripts that wait, and who changes what is to come   calls.go, change.go
//	         whether a change can be had, on a copy                attempt.go, trychange.go
//	         how many events users cause by asking                  muted.go
//	         what malleable applications are offered, and say     offers.go
//	         how far applications are, and how fast on how many nodes        progress.go
//
// Changes of Slurm take their time: slurmctld may let one wait for seconds. Until its
// outcome is there the job is busy, and nothing else is done to it; what is due then is
// found anew from the state, never from a queue (work.go). What a poll has shown may be
// older than what was done since: of a job that is busy, or was touched after the poll
// began, it is not believed. A sidecar that was killed at any point polls again and goes on.
//
// Terms: a job's base job runs the user's script; expanders bring nodes; a hold
// is a reservation on nodes of a coming start or growth.
package core
