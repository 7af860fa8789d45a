// Command evosqueue shows the evolving jobs: a table like squeue's, or a chart of past allocations
// and plans (package chart).
package main
