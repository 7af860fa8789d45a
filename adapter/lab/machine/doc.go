// Package machine simulates one machine of equal nodes and the jobs that run on it, event by
// event: rigid, moldable, malleable, evolving, and evolving and malleable ones.
//
// A job is phases, each an amount of work and a speed-up; its size decides how fast the work is
// done. Nodes are counts. Times are whole seconds; progress is not rounded, only the seconds at
// which a part of the work is complete are, upwards. What starts when, and which size malleable
// jobs have, is a [Scheduler]'s: [Queue] for a list in order of submission (FCFS, EASY, first fit),
// [Planned] for the planner's own fit over declared profiles, either with a malleability policy.
//
// Equal input gives equal output: nothing is left to chance, to maps or to the clock.
package machine
