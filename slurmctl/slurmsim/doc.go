// Package slurmsim is a model of slurmctld in virtual time: as much of it as the
// sidecar and its users' jobs see.
//
//	c := slurmsim.New(slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true, Seed: 7})
//	defer c.Close()
//	k := c.Client(slurmsim.Root) // has the methods of slurmctl.Client
//
// It is not a mock: one conformance suite (conformance_test.go) runs on it and on a
// real Slurm, and where they differ the model is wrong, or the difference is in the
// list below.
//
// # Time
//
// All that will happen is on one agenda, in the order of its times and, at one time, in
// the order in which it was put there; there are no goroutines that race, and chance
// (Latency.Spread) has a seed: equal runs are equal to the byte on any GOMAXPROCS.
// [Cluster.Step], [Cluster.Run] and [Cluster.Sleep] move the clock; [Cluster.At] and
// [Cluster.After] put a callback on the agenda; [Cluster.Now] is the clock's reading,
// which [Cluster.StepClock] sets forth or back, [Cluster.Elapsed] is not moved by that.
//
// A command takes as much virtual time as measured on real clusters; it takes effect in
// the midst of it. A call of a [Client] blocks: in a [Process] (a coroutine, begun with
// [Cluster.Go]) until the command has ended, while all others go on; from outside of any
// process, as in a test, it moves the clock on itself. So a simulator of many
// concurrent commands has a process for each,
//
//	c.Go(func(*slurmsim.Process) {
//		job, err := k.Allocate(ctx, request)
//		post(outcome{job, err})
//	})
//
// and what runs a sidecar's effects over slurmctl.Client in goroutines runs them over
// this one in processes as it stands. Callbacks must not block. Deadlines are those of
// [Cluster.WithTimeout]; of one by the real clock what is left is taken, rounded up to
// seconds. [Process.Kill] is kill -9: what the process had begun takes effect all the
// same.
//
// # Jobs
//
// A [Job] runs for Lasts, or its Program is run as a process: it sleeps, waits for
// signals (Wait), for whatever the simulation answers (Await, as evosctl next does), and
// ends the job when it returns. It is killed with its job, and stands still while that
// is suspended.
//
// # Faults
//
// Options.Faults sees every command when it is begun and says what befalls it: it does
// not arrive, arrives late, its answer comes late, never, or says something else than
// what happened. [Cluster.StopController] and [Cluster.StartController] kill slurmctld
// and start it with what it had saved, which is done lazily; meanwhile commands fail and
// jobs run on. [Cluster.SetNode] takes nodes down, drains them and brings them back.
//
// # What is modelled
//
// Jobs that take whole nodes or CPUs, memory and GRES of them, arrays (as one record
// until a task starts), begin times, holds, afterok/afterany/afternotok/expand
// dependencies, --nodelist, --exclude and simple constraints; partitions with limits,
// tiers and default times; node weights; reservations with IGNORE_JOBS, OVERLAP, MAINT,
// FLEX, NO_HOLD_JOBS_AFTER_END and PURGE_COMP; the main scheduler (when a job has left
// its nodes, batch_sched_delay after any other change, and for the whole queue every
// sched_interval) and the backfill scheduler with its table of times (bf_interval,
// bf_window, bf_resolution, bf_max_job_test), both after the source of 22.05;
// priority/basic and priority/multifactor by age; limits of associations and QOS;
// preemption by partition and by QOS, with REQUEUE and CANCEL; job_submit plugins (of
// submissions and updates; hold and release they do not see); merges and shrinks with
// their refusals; time limits, which slurmctld looks at every 30 s; completing; requeue;
// suspension; nodes that are switched off and on; records of ended jobs for MinJobAge.
// [Options.Events] tells what jobs have as time goes by.
//
// # What is not
//
// Licences, fair share and other factors of priority, topology, gang scheduling,
// heterogeneous jobs, steps, prologs, federations.
//
// # Known differences
//
// slurmctld's loop looks once a second, at some moment of it, and its threads wait for
// each other; the model looks at whole seconds from its start (Options.LoopPhase,
// BackfillPhase), and nothing waits. BENCHMARKS.md has what that comes to.
//
// An expander that has GRES cannot be merged, in the model either; 22.05 then keeps it
// COMPLETING until it is restarted, the model does not.
//
// Of several QOS limits the model knows those of [Bound].
package slurmsim
