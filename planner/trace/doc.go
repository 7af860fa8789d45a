// Package trace reads, checks, writes and changes traces: logs of jobs, or workloads made to look
// like such.
//
// There is one kind of job, [Job], with the fields of the Standard Workload Format (SWF) 2.2 of
// Feitelson and others, and what a job has beyond them, a [Shape]. It is read from SWF, Evoslurm's
// own workload JSON, Batsim's workload JSON and ElastiSim's jobs, gzipped or not, and written as
// the first three. A [Reader] gives jobs one after the other; what reads SWF needs no more memory
// for a longer trace.
//
// What is wrong with a trace is a [Fault], which names place and field. Such a job is refused, or,
// by a lenient reader, left out and counted in a [Report].
package trace
