// Package core decides what the sidecar does: it holds the known state of a cluster and its evolving
// jobs, and derives what follows from that state. It carries out nothing itself. It has no I/O, no
// clock, no goroutine and no log. A shell around it has all these:
//
//	effects := core.Step(now, inputs...)
//
// A [msg.Input] reports what has happened: Slurm was observed, an effect has an outcome, a job's
// script calls next, a strategy has answered, or the configuration has changed. A [msg.Effect]
// describes what the shell must do: change or query Slurm ([msg.Task]), have the strategy make a plan
// ([msg.Plan]), write rows ([msg.Write]), send a reply, write a log line, or call again at some time. Inputs
// and effects are plain values. They can be printed, compared and saved. So the same core runs
// beside a live Slurm (package controller), and over a model of Slurm in virtual time.
//
// The core is a stack of rooms. A room is a package of functions over the state, and imports only
// rooms below it:
//
//	core     Step: the order of everything; settled tasks          core.go, api.go, still.go, clock.go
//	talk     answers to waiting calls of scripts and users
//	change   changes of a profile on demand, and their trials
//	view     answers to questions: what users see, and what tests check
//	act      starts, growths, shrinks; one action per job at a time
//	lend     nodes beyond the plan for malleable jobs, and offers
//	delay    what holds cost stock jobs: promises lapse before they delay one for too long
//	power    idle nodes that go off by plan, and what that saves
//	hold     reservations for coming steps, within shares; power; price
//	follow   what became of the known jobs: begun, in another step, requeued, ended
//	refit    what is taken until when, and the plans of running jobs around that
//	adopt    parked jobs with a marker become evolving jobs
//	plan     who is planned, where, and the problem for the strategy
//	stock    which stock jobs count, how urgent they are, and how they share nodes
//	couple   which nodes each component of a job has
//	pace     when to poll, and the snapshot that a poll shows
//	slurm    what Slurm would do: eligibility, limits, rank, age, power, what is busy
//	state    what is known, with verbs that change it; pending tasks
//	mode     what drive modes mean on the site; their table is package drivemode
//	msg      inputs, effects, and problems: what the shell sees
//
// A job ([state.Job]) is a stack of groups of fields. Each group has an owner, a room that writes it. Other rooms
// read it, and call verbs that say what happened: BeginStep, EndStep, Requeue, KeepBack, Forgo.
//
// In a room, a file that is named after another room holds what that room's subject needs so far down.
//
// [Core.Step] has this order: observe a poll, adopt, follow, plan; then, once the strategy has answered,
// manage malleable jobs, act, hold, switch nodes on, mirror planned starts, and answer calls.
//
// Changes of Slurm take time: slurmctld may delay a change for seconds. Until the outcome of an
// action is known, the job is busy, and the core starts no other action for it. The core then
// derives what is due from the state again, never from a queue (state/work.go). A poll may be older than
// changes made since. So the core ignores a poll for a job that is busy, or was touched after the
// poll began. If the sidecar is killed at any point, it polls again after a restart and continues.
//
// The state is data. [Core.Encode] writes all of it, and [Decode] returns a core that continues in the same way.
// A field with the tag `codec:"-"` is a cache, or belongs to the process (state/encode.go).
//
// A decision compares times with the clock only by the methods of [msg.Moments], which note when the comparison
// will turn out differently. So the first noted time is when a decision may differ although nothing has happened
// ([Core.Still]), and nobody lists the conditions of a room elsewhere. Those that cannot wait for a poll (Due) make up
// [msg.Wake], with the time of the next poll.
//
// Terms: a job's base job runs the user's script; expanders bring nodes; a hold
// is a reservation on nodes of a coming start or growth.
package core
