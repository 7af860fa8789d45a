// Command evosqueue shows the evolving jobs: a table in the manner of squeue, or
// a chart of what was allocated to them and of what is planned (package chart).
package main
