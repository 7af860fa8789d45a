// Package follow finds out what became of the known jobs: begun, in another step, requeued, suspended, ended.
package follow
