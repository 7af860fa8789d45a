// Package slurmtest boots a private, real, multi-node Slurm for tests and
// demonstrations, as net/http/httptest does for HTTP servers: slurmctld, one
// slurmd for every node, a munged with a key of its own and, where accounting is
// asked for, slurmdbd on a private MariaDB. They are the daemons of Debian's
// packages, run in a temporary folder, without systemd, talking over 127.0.0.1
// only, on ports that no other cluster uses. Where the host's name means another
// address than that, Slurm cannot be told to listen there only; its daemons still
// trust nobody without the cluster's own MUNGE key.
//
//	func TestJob(t *testing.T) {
//		c := slurmtest.Start(t, slurmtest.Options{Nodes: 8, PermitJobExpansion: true})
//		out, err := c.Run(t.Context(), c.Users()[0], "srun", "-N2", "hostname")
//		…
//	}
//
// A program uses [Boot] and [Cluster.Stop]. The nodes are called n1, n2, ….
//
// # Rights
//
// Started by root, the cluster runs as on a real site (slurmctld as the account
// slurm, slurmd as root) and [Cluster.Users] are two different unprivileged
// accounts of the machine. Started by anybody else, all runs as that one user,
// who is then SlurmUser and the only one who can run jobs.
//
// # Nothing stays behind
//
// Every daemon is the child of a supervisor: this same executable, started once
// more by Boot, in a session of its own. It is a child subreaper
// (PR_SET_CHILD_SUBREAPER), so that all that the daemons start and abandon (a
// slurmstepd, the processes of a job) become its own children and can be found
// and killed without guessing. It holds the ports, and it watches a pipe from the
// process that called Boot: when that process ends, by Stop, by a panic or by
// SIGKILL, the supervisor kills everything, removes the folder and ends.
// An importing program therefore must not have package initialisers that run
// before this package's and do visible things.
//
// # Logs
//
// Logs are in Dir/log. When a test of Start fails, the last lines of the
// controller's log and the errors of the others go to the test's log; the
// environment variable SLURMTEST_LOGS names a folder where the whole log folder
// of every failed test is kept.
package slurmtest
