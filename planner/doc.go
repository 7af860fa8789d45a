// Package planner is the pure core of Evoslurm. A [Pool] is the nodes and jobs of a live
// cluster; [Pool.Plan] says when each job holds which nodes: it calls a [Strategy] and maps
// the node counts to node IDs (Klein and Pérez's research report RR-7205).
//
// It does no I/O, reads no clock and logs nothing: state goes in, a plan comes
// out. Times are whole seconds from an origin that the caller chooses;
// intervals are half-open, [start, end).
//
// The algorithms are in rooms, each built on those before it: profile, timeline, grid,
// paper, search. Who plans needs this package alone.
package planner
