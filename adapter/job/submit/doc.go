// Package submit is what evosbatch does: it reads a command line of sbatch's
// options and Evoslurm's own, checks the evolution profile, and runs sbatch as
// the user with the first step's nodes, the whole time limit, a begin time that
// parks the job until the sidecar starts it, and a marker in its comment that
// carries the request (package request). It needs Slurm alone, never the sidecar.
//
//	words ─ parse ─┐
//	SBATCH_* ──────┼─ layers ─ refuse ─ request ─ sbatch (once, or once a step in a chain)
//	#SBATCH, #EVO ─┘
//
// Where the cluster has plugins that may change a submission, the request stands in the
// script, too (carry.go), and the job is looked at afterwards (lookback.go); else sbatch
// takes this process's place.
//
// sbatch's options pass through as they were written. Those that the request
// must know of (the time limit, the begin time, the comment) are read as sbatch
// reads them: the command line beats the environment, which beats the script.
package submit
