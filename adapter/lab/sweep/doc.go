// Package sweep runs a declared grid of experiments (package simulate): traces × shapes × shares ×
// strategies × seeds. Every cell's outcome is a file. So an interrupted sweep can continue, and
// many processes on many nodes can run its cells; the table is made from the files.
// docs/experiments.md shows the results of a sweep.
package sweep
