// Package cores divides a node's cores among the evosruns of one job that run there (evosrun
// --cores=SHARE), and divides them again whenever one starts or ends.
//
// Slurm cannot give cores of a running job to another one, but a job may share its own nodes by
// cores. Each step of evosrun has a keeper on each node. The keepers agree by a small file in the
// user's private folder, which they lock, and each one moves only the processes of its own step,
// with sched_setaffinity. All of it runs with the user's rights.
package cores
