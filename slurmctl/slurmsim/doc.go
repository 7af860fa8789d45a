// Package slurmsim models slurmctld in virtual time, as far as the sidecar and its users' jobs see
// it.
//
//	c := slurmsim.New(slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true, Seed: 7})
//	defer c.Close()
//	k := c.Client(slurmsim.Root) // has the methods of slurmctl.Client
//
// It is not a mock. One conformance suite (conformance_test.go) runs on the model and on a real
// Slurm. Where they differ, the model is wrong, or the difference is in the list below.
//
// # Files
//
// The state is plain data, in [Cluster]. What needs only a part of it, such as the nodes, is a method
// of that part. Decisions are functions over the whole. A file calls only its own functions and those
// of the files before it in this list (TestFilesCallBackward):
//
//	bits, agenda, refusal                     sets of nodes, the clock, errors
//	options, config, conf_names, conf_set, conf
//	                                          what a cluster is like
//	coroutine, process                        code that runs in virtual time
//	partition, job, node, resources, reservation, queue
//	                                          the parts of the state
//	topology, blocks                          switches, and topology/block
//	timers, cluster, priority                 the whole state, and who looks at it when
//	choose, limits, limits_text, licenses     a job's nodes; the limits of users
//	arrays, life, preempt                     how jobs start and end
//	eligible, start, schedule, slots, backfill
//	                                          which jobs start
//	power, reserve, loop                      nodes and reservations over time
//	submit, resize, update, controller        what commands and administrators change
//	show, command, client, plugin, change, allocate
//	                                          commands and what they print
//	checkpoint                                the state as it is written and read
//
// The timers of slurmctld call later files through turns in cluster.go.
//
// # Time
//
// One agenda lists all future events in the order of their times and, at equal times, in the order
// of insertion. No goroutines race, and randomness (Latency.Spread) has a seed, so equal runs are
// equal to the byte on any GOMAXPROCS. [Cluster.Step], [Cluster.Run], and [Cluster.Sleep] advance
// the clock; [Cluster.At] and [Cluster.After] put a callback on the agenda. [Cluster.Now] reads the
// clock, which [Cluster.StepClock] sets forward or back; [Cluster.Elapsed] ignores that.
//
// A command takes as much virtual time as measured on real clusters and takes effect in the middle
// of it. A call of a [Client] blocks. In a [Process] (a coroutine started by [Cluster.Go]), others
// continue until the command has ended. From outside any process, as in a test, the call itself
// advances the clock. So a simulator of many concurrent commands has a process for each,
//
//	c.Go(func(*slurmsim.Process) {
//		job, err := k.Allocate(ctx, request)
//		post(outcome{job, err})
//	})
//
// and code that runs a sidecar's effects over slurmctl.Client in goroutines can run them unchanged
// over this client in processes. An [Action] ([Cluster.Later]) and a [Program] ([Cluster.Start]) are
// plain data, which a checkpoint can hold ([Parts]). Callbacks must not block. Deadlines come from
// [Cluster.WithTimeout]; of a deadline by the real clock, the remaining time counts, rounded up to
// seconds. [Process.Kill] is kill -9: commands that the process has started still take effect.
//
// # Jobs
//
// A [Job] runs for Lasts, or runs its Program as a process. The program sleeps, waits for signals
// (Wait), waits for an answer of the simulation (Await, as evosctl next does), and ends the job
// when it returns. It is killed with its job and stands still while the job is suspended.
//
// # Faults
//
// Options.Faults sees every command at its start and can inject a fault: the command does not
// arrive or arrives late, or its answer comes late, never, or is false. [Cluster.StopController]
// and [Cluster.StartController] kill slurmctld and start it from its saved state, which lags
// behind; meanwhile commands fail and jobs keep running. [Cluster.SetNode] sets nodes down, drains
// them, and resumes them.
//
// # What is modelled
//
// Jobs that take whole nodes or CPUs, memory, and GRES of them; sockets, cores, and threads as bounds only; arrays (as one record until a task
// starts or is changed: the first tasks of a record, or all), with their limit; begin times; holds; afterok/afterany/afternotok/expand dependencies; --nodelist,
// --exclude, and constraints as slurmctl.LooseConstraint reads them, if they have no groups in brackets (beside --nodelist, 22.05 ignores brackets, and the model
// does where it chooses nodes); partitions with limits, tiers, and default times; node
// weights; topology/tree, without --contiguous, and topology/block, without --segment, and the node of a
// job of one node, both as in 24.11, or as in 26.05 if Options.Version says so; reservations with IGNORE_JOBS, OVERLAP, MAINT, FLEX, NO_HOLD_JOBS_AFTER_END, and
// PURGE_COMP; the main scheduler (when a job has left its nodes, batch_sched_delay after any other
// change, and for the whole queue every sched_interval) and the backfill scheduler with its table
// of times (bf_interval, bf_window, bf_resolution, bf_max_job_test), both following the source of
// 22.05; priority/basic and priority/multifactor by age; limits of associations and QOS;
// licences, without reservations of them and without bf_licenses; preemption
// by partition and by QOS, with REQUEUE and CANCEL; job_submit plugins (for submissions and
// updates, not for hold and release); merges and shrinks with their refusals; time limits, which
// slurmctld checks every 30 s; completing; requeue; suspension; powering nodes down and up; records
// of ended jobs for MinJobAge. [Options.Events] reports how many nodes jobs have over time.
//
// # What is not modelled
//
// Fair share and other priority factors, other topologies, gang scheduling, heterogeneous jobs,
// steps, prologs, federations.
//
// # Known differences
//
// slurmctld's loop looks once a second, at some moment of that second, and its threads wait for
// each other. The model looks at whole seconds from its start (Options.LoopPhase, BackfillPhase),
// and nothing waits. BENCHMARKS.md measures the effect.
//
// An expander with GRES cannot be merged, in the model either. 22.05 then keeps it COMPLETING until
// slurmctld restarts; the model does not.
//
// The model knows only the QOS limits in [Bound].
package slurmsim
