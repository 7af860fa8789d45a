// Package outcome measures what became of jobs that ran: one set of figures for every simulation and
// every scheduler, and how the jobs of one outcome fared beside those of another.
// Outcomes are read from what evosim run and evosim baseline write, laid out on nodes, and written as others
// read them: as Batsim's jobs.csv and schedule.json, and as Perfetto's traces.
//
// Times are whole seconds from the first one on, sizes nodes. What the figures are:
//
//   - wait, turnaround: from submission to start, and to end.
//   - bounded slowdown: turnaround over the time that a job ran, this taken as 10 s where it is less
//     (Feitelson and Rudolph 1998), 1 at least.
//   - utilisation: what was allocated of nodes × makespan; effective: what jobs asked for of it.
//   - held idle: nodes that were kept free for somebody, and that nobody used.
//   - changes: how often jobs grew or shrank.
//   - fairness: Jain's index over users' mean bounded slowdowns (Jain, Chiu and Hawe 1984): 1 where all
//     users fare alike, 1/n where one of n bears it all.
package outcome
