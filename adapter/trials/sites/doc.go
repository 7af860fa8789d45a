// Package sites has real sites' Slurm configurations, scaled to some eight nodes, and
// runs evolving jobs on them as the users of those sites would.
//
// Every [Site] says where its configuration is published, which trap it sets for jobs that change
// size, and what stock Slurm accepts and refuses there (its probes), so that the trap is known to
// work. One rule holds for all: a job runs as its profile says, or is refused at submission with
// the reason. What goes wrong later is reported in the job's own output and harms no other job.
//
// `make sites` runs all of them and prints a table; with -sites.out it also writes the
// table into slurmctl/MATRIX.md. `make test` runs a part.
//
// A site that needs another Slurm than the machine's is tried in a root of package matrix, where it can be made.
//
// Changed everywhere: no cgroups (proctrack/linuxproc, task/none), and the numbers of
// nodes, memory and long times are scaled.
package sites
