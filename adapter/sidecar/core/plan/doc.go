// Package plan lists the jobs to plan with the nodes that each may get, makes the problem for the strategy, and takes
// over its answer.
package plan
