// Package planner is the pure core of Evoslurm: evolution profiles and their
// algebra, the resource timeline, the fit algorithms of Klein and Pérez
// ("Towards Scheduling Evolving Applications", 2011) and the mapping of node
// counts to node IDs of their research report RR-7205.
//
// It does no I/O, reads no clock and logs nothing: state goes in, a plan comes
// out. Times are whole seconds from an origin that the caller chooses;
// intervals are half-open, [start, end).
package planner
