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
// Minima and maxima depend on the tests drawn, averages hardly do.
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
package sim
