// Package machine simulates, event by event, one machine of equal nodes and the jobs on it: rigid,
// moldable, malleable, evolving, and both evolving and malleable jobs.
//
// A job is a sequence of phases, each with an amount of work and a speed-up; its size decides how
// fast the work is done. Nodes are counts. Times are whole seconds. Progress is exact; only the
// seconds at which a part of the work is complete are rounded up. A [Scheduler] decides what starts
// when, and the sizes of malleable jobs: [Queue] for a list in order of submission (FCFS, EASY,
// first fit), [Planned] for the planner's own fit of declared profiles, either with a malleability
// policy.
//
// Equal input gives equal output: nothing depends on chance, map order, or the clock.
package machine
