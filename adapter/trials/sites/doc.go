// Package sites has real sites' Slurm configurations, scaled to some eight nodes, and
// runs evolving jobs on them as the users of those sites would.
//
// Every [Site] says where its configuration is published, what there is a trap for jobs
// that change size, and what stock Slurm takes and refuses there (its probes), so that
// the trap is known to be set. The rule for all of them: a job runs as its profile
// says, or is refused at submission with the reason; what goes wrong later is told in
// the job's own words and costs nobody else anything.
//
// `make sites` runs all of them and prints a table; with -sites.out it also writes the
// table into slurmctl/MATRIX.md. `make test` runs a part.
//
// Changed everywhere: no cgroups (proctrack/linuxproc, task/none), and the numbers of
// nodes, memory and long times are scaled.
package sites
