// Package sweep runs a declared grid of experiments (package simulate): traces × shapes × shares × strategies ×
// seeds. Every cell's outcome is a file, so that a sweep that was interrupted goes on where it was, and its
// cells can be run by many processes, on many nodes; the table is made of the files. docs/experiments.md has what came of one.
package sweep
