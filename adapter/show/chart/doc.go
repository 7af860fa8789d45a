// Package chart draws evolving jobs for a terminal: what was allocated to them and what is planned,
// over time. Each job has two rows: the node count of each step above a bar of that height, solid
// until now and paler afterwards. If the cluster's size is known, all jobs stacked on top of each
// other follow.
//
//	             14:00           14:05           14:10
//	7 amr        2       5       │       1
//	alice R 2/3  ▃▃▃▃▃▃▃▃████████│▒▒▒▒▒▒▒░░░░░░░
//
// It only produces text: it queries no terminal and reads no clock, so the same jobs at the same
// time give the same chart.
package chart
