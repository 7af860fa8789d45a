// Package slurmsim is a model of slurmctld in virtual time: as much of it as the
// sidecar and its users' jobs see. A [Client] of it has the methods of
// slurmctl.Client, and every command takes as much virtual time as measured on real
// clusters; between two commands the clock stands still unless [Cluster.Run] moves it.
//
//	c := slurmsim.New(slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true})
//	id, _ := c.Submit(slurmsim.Job{User: alice, Nodes: 2, TimeLimit: time.Hour, Lasts: 10 * time.Minute})
//	c.Run(c.Now().Add(time.Minute))
//	jobs, _ := c.Client(slurmsim.Root).Jobs(ctx)
//
// It is not a mock: one conformance suite (conformance_test.go) runs on it and on a
// real Slurm, and where they differ the model is wrong, or the difference is in the
// list below.
//
// # What is modelled
//
// Jobs that take whole nodes or CPUs of them, arrays (as one record until a task
// starts), begin times, holds, afterok/afterany/afternotok/expand dependencies,
// --nodelist and --exclude; partitions with limits, tiers and default times;
// reservations with IGNORE_JOBS, OVERLAP, MAINT, FLEX, NO_HOLD_JOBS_AFTER_END and
// PURGE_COMP; the main scheduler (every change, sched_interval, batch_sched_delay)
// and the backfill scheduler (bf_interval, bf_window, bf_resolution,
// bf_max_job_test); priority/basic and priority/multifactor by age; merges and
// shrinks with their refusals; time limits, which slurmctld looks at every 30 s;
// completing; suspension; nodes that go down or are drained; records of ended jobs
// for MinJobAge; a restart and a crash of slurmctld, whose state is saved lazily.
//
// # What is not
//
// Memory and GRES as resources, licences, associations and QOS, preemption, power
// saving, topology, heterogeneous jobs, steps.
//
// # Known differences
//
// A real slurmctld starts a job at some moment within a second of being asked to; the
// model at the next of its once-a-second looks, always.
package slurmsim
