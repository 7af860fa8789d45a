// Package matrix tells what works on which Slurm: every operation that Evoslurm
// relies on, tried on a real private cluster, for each select plugin and drive
// mode.
//
// Its test runs the operations on the Slurm of the machine. With EVOSLURM_MATRIX
// set to a file's name it also writes one [Result] a line there. The program
// evosmatrix runs that same test in the Debian releases that have other versions
// of Slurm, each in a root made by debootstrap, and joins the results in the table
// of slurmctl/MATRIX.md. Beside them is a table of what works under which account of the sidecar (TestRights).
//
// Tests of other packages run again in such a root ([Again]), as part of `make test`: in e2e those that observe a cluster
// and release everything, in sites those of a site with a newer Slurm.
package matrix
