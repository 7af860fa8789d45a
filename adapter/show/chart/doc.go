// Package chart draws evolving jobs for a terminal: what was allocated to them and what is
// planned for them, over time. Two rows a job: the node count of each step above
// a bar whose height is that count; solid up to now, paler from there on. Where the
// cluster's size is known, all jobs stacked on top of each other follow.
//
//	             14:00           14:05           14:10
//	7 amr        2       5       │       1
//	alice R 2/3  ▃▃▃▃▃▃▃▃████████│▒▒▒▒▒▒▒░░░░░░░
//
// It draws text only: no terminal is asked and no clock is read, so that the
// same jobs at the same time are the same chart.
package chart
