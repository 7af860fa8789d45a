// Package msg holds what goes into the core and comes out of it: inputs, effects with their commands, and
// the problem that a strategy solves. The core's shell sees only this package and core itself.
package msg
