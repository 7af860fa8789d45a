// Package trace reads, checks, writes and changes traces: logs of jobs, or workloads made to look
// like such.
//
// There is one kind of job, [Job], with the fields of the Standard Workload Format (SWF) 2.2 of
// Feitelson and others, and what a job has beyond them, a [Shape]. It is read from SWF, Evoslurm's
// own workload JSON, Batsim's workload JSON and ElastiSim's jobs, gzipped or not, and written as
// the first three. A [Reader] gives jobs one after the other; what reads SWF needs little more memory
// for a longer trace: a bit for each job, by which it knows a number that is there twice. What needs all jobs
// at once, such as an order, has them in a [Packed]; for two outcomes' difference when each started and ended is enough.
//
// For a job that was swapped out or checkpointed, SWF may list the whole (status 0 or 1) and its
// parts (2, 3, 4) under the same number. A job is read once: parts are skipped if the whole stands
// before them or directly after. Consecutive parts alone are joined: the job is submitted and waits
// like the first part, runs as long as all parts together, and ends like the last one. A job that
// continues beyond the trace has no status.
//
// What is wrong with a trace is a [Fault], which names place and field. Such a job is refused, or,
// by a lenient reader, left out and counted in a [Report].
package trace
