// Package slurmtest boots a private, real, multi-node Slurm for tests and demonstrations, as
// net/http/httptest does for HTTP servers. It runs slurmctld, one slurmd per node, a munged with
// its own key and, if accounting is requested, slurmdbd on a private MariaDB. These daemons come
// from Debian's packages. They run in a temporary folder without systemd, and talk only over
// 127.0.0.1, on ports that no other cluster uses. If the host's name resolves to another address,
// Slurm cannot listen only there; its daemons still trust only clients with the cluster's own MUNGE
// key.
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
// Started by root, the cluster runs as on a real site (slurmctld as the account slurm, slurmd as
// root), and [Cluster.Users] are two different unprivileged accounts of the machine. Started by
// another user, everything runs as that user, who is then SlurmUser and the only one who can run
// jobs.
//
// # Nothing stays behind
//
// Every daemon is the child of a supervisor: this same executable, started again by Boot in a
// session of its own. The supervisor is a child subreaper (PR_SET_CHILD_SUBREAPER). So everything
// that the daemons start and abandon (a slurmstepd, the processes of a job) becomes its own child
// and can be found and killed without guessing. It holds the ports and watches a pipe from the
// process that called Boot. When that process ends, by Stop, a panic, or SIGKILL, the supervisor
// kills everything, removes the folder, and ends. A program that imports this package therefore
// must not have package initialisers that run earlier and have visible effects.
//
// # Logs
//
// Logs are in Dir/log. When a test that called Start fails, the last lines of the controller's log
// and the errors from the other logs go to the test's log. If the environment variable
// SLURMTEST_LOGS names a folder, the whole log folder of every failed test is kept there.
package slurmtest
