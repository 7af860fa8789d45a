// Package malleable decides the sizes of running malleable jobs: jobs whose number of nodes the
// scheduler changes between a minimum and a maximum. State goes in, changes come out. Nothing is
// kept between two calls, and equal input gives equal output.
//
//	sizes.go          how many nodes a job takes: --malleable=MIN-MAX, --size=pow2
//	profile.go        evolving and malleable: --profile=2-4@10m,5-16@30m
//	speedup.go        how fast an application is on how many nodes, as declared
//	progress.go       the same, measured
//	job.go            jobs, requests to them, their answers; what may be believed of a policy
//	fpsma.go, egs.go  the policies of Buisson et al. 2007, figures 4 and 5
//	equipartition.go  equal shares
//	folding.go        doubling and halving (McCann and Zahorjan 1994)
//	gain.go           by marginal gain
//	manage.go         when to grow and when to shrink: PRA and PWA
//
// # From the paper to the code
//
// Buisson, Sonmez, Mohamed, Lammers, Epema: Scheduling Malleable Applications in
// Multicluster Systems (CLUSTER 2007). "Policies are applied for each cluster separately": a
// call is about the jobs of one cluster, or one partition.
//
//	II-B      minimum and maximum, no step size     Job, Job.Accepts
//	II-D      mandatory and voluntary changes       Request.Mandatory, Job.Voluntary
//	V-B       PRA, PWA, the threshold               Manage
//	figure 4  FPSMA_GROW, FPSMA_SHRINK              fpsmaGrow, fpsmaShrink
//	figure 5  EQUI_GROW, EQUI_SHRINK                equiGrow, equiShrink
//	VI-A      FT takes powers of two                Sizes, Pow2
//
// Where the print cannot be meant as it stands:
//
//   - EQUI_SHRINK, line 5, gives the malus to jobs with i ≥ growRemainder, of a list in
//     decreasing order of start time. That reclaims another number than shrinkValue, and from
//     the oldest jobs. The text (V-C) says what is meant: the remainder is reclaimed from the
//     most recently started, the first shrinkRemainder of the list.
//   - FPSMA_SHRINK ends at shrinkValue == 0. An application that takes powers of two may give
//     back more than it is asked for; the end is shrinkValue ≤ 0.
//   - Jobs with equal start times are ordered as given: an earlier job
//     counts as started first.
package malleable
