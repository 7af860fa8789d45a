// Package bag works off a bag of tasks inside a job whose nodes come and go (evosrun --tasks).
//
// One process, the leader, leases tasks to a worker on each node, and writes what becomes of them to a journal in the bag's
// folder. Workers read leases from their standard input and write the ends of runs to their standard output: there is no
// listener. State decides, from its records alone, which task comes next; it has no I/O and no clock. A leader does what it
// replays, so a bag that was read again is in the state that its leader saw.
//
// A run may be repeated, since its node may go. Its result counts once: the first end in the journal is the only one.
package bag
