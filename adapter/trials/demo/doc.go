// Package demo shows Evoslurm at work on a real Slurm, and measures it: it boots a
// private cluster, starts evoslurmd, submits evolving jobs with evosbatch among
// stock sbatch jobs of another user, and lets every job measure by srun which
// nodes it has at the beginning and at the end of each step. Then it submits the
// same jobs to the same Slurm once more, rigid, at their peak sizes.
//
//	lab.go       cluster, folder, sidecar
//	scenario.go  the jobs
//	job.sh       what every job runs; trace.go reads what it writes
//	phase.go     submits, watches (watch.go) and collects
//	judge.go     what must hold; summary.go says it
//
// [Shell] gives a shell in such a lab instead, and tutorial.go has what to type there.
package demo
