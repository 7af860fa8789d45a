// Package submit is evosbatch. It reads a command line with sbatch's and Evoslurm's options and
// checks the evolution profile. It then runs sbatch as the user with the first step's nodes, the
// whole time limit, a begin time that parks the job until the sidecar starts it, and a marker in
// the comment that carries the request (package request). It needs only Slurm, never the sidecar.
//
//	words ─ parse ─┐
//	SBATCH_* ──────┼─ layers ─ refuse ─ request ─ sbatch (once, or once a step in a chain)
//	#SBATCH, #EVO ─┘
//
// If the cluster has plugins that may change a submission, the script also carries the request
// (carry.go), and the job is checked afterwards (lookback.go); otherwise sbatch replaces this
// process.
//
// sbatch's options pass through as written. Those that affect the request (time limit, begin time,
// comment) are read as sbatch reads them: the command line overrides the environment, which
// overrides the script.
package submit
