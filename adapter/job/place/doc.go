// Package place chooses among clusters that offer to run a job. It is pure: evosbatch -M asks the
// clusters, and evosim koala-placement simulates them.
//
// The policies are those of the grid scheduler KOALA (Buisson et al. 2007, section IV-A):
//
//   - WorstFit takes the cluster with the most idle nodes (Bucur and Epema, IPDPS 2003).
//   - CloseToFiles takes, among the clusters with room, the one where the input files arrive first
//     (Mohamed and Epema, CLUSTER 2004).
//   - ClusterMin and FlexibleClusterMin run a job on as few clusters as they can (Sonmez, Mohamed
//     and Epema, e-Science 2006). Only they split a job. The flexible form also chooses the sizes
//     of the components, by the idle nodes.
//
// Earliest is ours. It takes the cluster where the job completes first by the plan of that cluster.
// KOALA has no plans: it tries to place a waiting job again and again. Here, a job that has room
// nowhere is submitted and waits in one cluster: with all policies, the one where it completes first.
package place
