// Package sim runs experiments over the planner's core.
//
// # The paper's tables
//
// Paper repeats the evaluation of "Towards Scheduling Evolving Applications" (section 5): many
// random tests, every strategy on each, and the minimum, average and maximum of the paper's ten
// metrics (Tables 1 and 2). Where the text is ambiguous, the figures decide:
//
//   - The cluster's size is not given; 100 nodes gives the printed averages.
//   - "Waste" is relative to the area used, not to that of the cluster: rigid's
//     maximum of 116 % could not be otherwise. So is the waste per application
//     (rigid's maximum: 681 %).
//   - "Utilisation (relative)" is the area allocated, divided by rigid's.
//   - "App expansion" and "Per-app. waste" are taken over all applications of
//     all tests, expanded or not; everything else is one figure a test.
//
// The printed averages look truncated, not rounded: cut to the printed digits, 47 of our 54 averages equal them (seed 1); rounded,
// 26 do. Minima and maxima depend on the tests drawn. They are within 30 % of the published range (from minimum to maximum) of the
// published ones, and the maxima per application, which a single application decides, within a factor of four.
//
// # KOALA
//
// Koala repeats the evaluation of "Scheduling Malleable Applications in Multicluster Systems"
// (Buisson et al. 2007, sections VI and VII): 300 jobs on the five clusters of the DAS-3. What
// the text leaves open:
//
//   - Of the speed-ups it tells the end points: GADGET 2 takes 10 minutes on 2 processors and 4
//     at best, FT 2 and 1. Between them it is a serial and a parallel part (Amdahl), the best
//     at 32 and 16 processors, both below the maximum as the text says, and no slower beyond.
//   - The threshold over which jobs are not grown decides about all. Without one every job has
//     a cluster of its own to grow in, FPSMA and EGS do the same, and GADGET 2 takes 250 s; the
//     text has it take some 460 s under PRA and 600 s under PWA. 15 % of each cluster gives that.
//   - Growing takes 5 s a processor, "despite the poor reactivity of that solution" (V-A), and
//     the application stands still for 10 s at every change. The scheduler looks every 10 s.
//   - The threshold is on growing alone; initial placement is by idle processors.
//
// # Choosing among clusters
//
// Placement compares KOALA's placement policies (package place) on the DAS-3, beside the choice by
// the plans of the clusters. The clusters, the policies, and the two applications are from Buisson et
// al. 2007. Of its references on placement (Mohamed and Epema, CLUSTER 2004; Sonmez et al.,
// e-Science 2006 and TPDS 2010), we found only abstracts in public text, so what follows is ours:
//
//   - Each cluster plans by conservative backfilling of requested times, twice what a job takes. When
//     a job ends, waiting ones move forward. Local jobs arrive at each cluster, as in Cigri: powers of
//     two up to a quarter of it, for half an hour on average. They begin four hours before the others.
//   - Jobs of apps, files, and replicated run on fixed sizes, with two equal components: GADGET 2 on 8,
//     16, or 32 nodes, FT on 4, 8, or 16. Those of components have four of 4, 8, or 16 nodes. Arrivals are Poisson.
//   - Idle nodes are nodes that the job could keep to its end without moving a promise.
//   - In KOALA's queue, a job is placed only where it starts as soon as its file is there. The queue is
//     scanned from head to tail, after each submission and every 10 s after a job has ended. There is no
//     limit to the number of tries.
//   - A file has the full bandwidth between two clusters, by 10 Gbit/s or 1 Gbit/s, whatever else is transferred.
//     Its transfer begins at the placement; the job holds no nodes meanwhile, but has them promised. Each cluster of a
//     split job needs the file. Copies are deleted after the job, so the replica table stays.
//   - A split job communicates for 10 % of its time on average, uniformly from 0 to 20 %, from computation to
//     communication intensive. All pairs of nodes exchange alike, so a share 1 - sum (n_i/n)^2 of the
//     messages is between clusters, and these take six times as long: with two equal halves, 1.25 times as long in all.
//   - Only cluster minimisation splits. Other policies run all components of a job on one cluster,
//     although KOALA's place each one.
//
// # On one machine
//
// OAR and PECS23 repeat published experiments with malleable jobs on package machine: table 5.3 of
// Georgiou's thesis (2010), and Posner, Hupfeld and Finnerty (PECS 2023). The latter's workloads
// come out number for number (package workload), and its schedulers run as they really work
// (agreement). PECS23 also covers evolving applications. MALLEABLE.md has the figures, and what is
// not reached.
//
// # Nodes that are switched off
//
// Green repeats table 6.2 of Georgiou's thesis: what it costs in waits, and saves in energy, to switch idle nodes off. Its
// comments say what the text leaves open (DefaultGreen, workload.Green). docs/experiments.md has the figures, and what is not
// reached.
//
// # A bag of tasks
//
// Cigri repeats tables 4.1 and 4.2 of Georgiou's thesis (2010) on package bag. The text has the
// grace, the period, the length of tasks, and the load of local jobs. What it leaves open:
//
//   - The parts of the DAS2 logs are unknown. With none, every CPU that a local job gets is an
//     interruption, so the published number of these gives how long a local job has a CPU: 40 % of
//     64 CPUs for 5 hours, by 194, is 2375 s, and 60 % of 400 CPUs by 581 is 7435 s. Its CPUs are a
//     power of two up to a quarter of the cluster, like those of OAR. Arrivals are Poisson and
//     times exponential, from a full load on. The load is that of the thesis within a point.
//   - Users request twice the time. OAR plans by conservative backfilling.
//   - 8 s to start a task is OAR's reaction in table 5.3.
//   - With triggered, 123 of 586 interrupted tasks failed, and 290 were valuable. So 30 % fail
//     after a restart, as the text says of BLCR, and 1 % of those without one. A quarter of the
//     checkpoints takes longer than the grace: their mean is 2.9 s.
//   - The text gives periodic checkpoints a "big overhead", and no figure. At the end, 6 tasks run,
//     and 14 with the others. So 6/14 of the time is computation: each 20 minutes cost 1600 s.
//   - A checkpoint stays in its cluster, where the NFS is. The bag is never empty.
package sim
