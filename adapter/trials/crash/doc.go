// Package crash is how the sidecar is tried at every point where it could
// die, and against a Slurm that answers badly. Nothing of it is in production
// builds.
//
// The sidecar's commands are replaced by slurmshim, which asks the test before and after it runs
// the real one. A sidecar built with the tag crashtest also asks before every commit of its
// database. All ask over one Unix socket, so a scenario is one numbered sequence of points. At each
// point, the test may kill the sidecar with SIGKILL, or make the command fail in one of the ways of
// Action.
//
//	evoslurmd ── slurmshim ── scontrol, salloc, …     the real ones, a real Slurm
//	    │ commit     │ before, after
//	    └────────────┴──────── the test: counts, kills, injects
//
// Commands that only look change nothing, so that a crash before or after one is
// the same as at the next point; they are recorded but not numbered.
package crash
