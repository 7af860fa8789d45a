// Package planner is the pure core of Evoslurm. A [Pool] holds the nodes and jobs of a live
// cluster. [Pool.Plan] decides when each job holds which nodes: it calls a [Strategy] and maps node
// counts to node IDs (Klein and Pérez's research report RR-7205).
//
// It does no I/O, reads no clock, and logs nothing: state goes in, a plan comes out. Times are
// whole seconds from an origin that the caller chooses; intervals are half-open, [start, end).
//
// The algorithms are in rooms, each built on the ones before it: profile, timeline, grid, paper,
// search. A caller that plans needs only this package.
package planner
