// Command evosqueue shows the evolving jobs: a table in the manner of squeue, or
// a chart of what they held and of what is planned (package chart).
package main
