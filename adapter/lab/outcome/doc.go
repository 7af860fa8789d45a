// Package outcome measures the outcome of jobs: one set of figures for every simulation and
// scheduler, and a comparison of the same jobs in two outcomes. It reads what evosim run and evosim
// baseline write, lays outcomes out on nodes, and writes other tools' formats: Batsim's jobs.csv
// and schedule.json, and Perfetto's traces.
//
// Times are whole seconds from the first one on; sizes are nodes. The figures:
//
//   - wait, turnaround: from submission to start, and to end.
//   - bounded slowdown: turnaround over the time that a job ran, this taken as 10 s where it is less
//     (Feitelson and Rudolph 1998), 1 at least.
//   - utilisation: what was allocated of nodes × makespan; effective: what jobs asked for of it.
//   - held idle: nodes that were kept free for a job but not used.
//   - changes: how often jobs grew or shrank.
//   - fairness: Jain's index over users' mean bounded slowdowns (Jain, Chiu and Hawe 1984): 1 where all
//     users fare alike, 1/n where one of n bears it all.
package outcome
