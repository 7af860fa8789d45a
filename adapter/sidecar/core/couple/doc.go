// Package couple decides which nodes each component of a job of coupled codes has. All components share one allocation.
// A component keeps its nodes as far as possible. At a boundary, components that shrink give nodes to those that grow
// first; only then nodes leave the job.
//
//	assign.go  pure functions over lists of nodes
//	couple.go  the same for a job
package couple
