// Package submit is evosbatch. It reads a command line with sbatch's and Evoslurm's options and
// checks the evolution profile. It then runs sbatch as the user with the first step's nodes, the
// whole time limit, a begin time that parks the job until the sidecar starts it, and a marker in
// the comment that carries the request (package request). It needs only Slurm, never the sidecar,
// except to choose among clusters.
//
// Command.run (command.go) is a line of stages. Each takes a value and returns the next:
//
//	words → options          options.go                        pure, except for sbatch's help
//	whose job is it?         stock.go                          sbatch gets other jobs unchanged
//	options → sources        sources.go, named.go, reader.go   reads files
//	sources → submission     submission.go, and a file for     pure
//	                         each topic: moldable, malleable,
//	                         hooks, gres, nodes, refuse, begin
//	submission → cluster     among.go                          asks the sidecars of several clusters
//	submission → feasible    feasible.go, alternatives.go,     asks Slurm (site.go); places,
//	                         fit.go                            limits, and resizes are pure
//	submission → arguments   calls.go                          pure
//	arguments → job          send.go, chain.go                 runs sbatch (sbatch.go, output.go)
//
// No two files refer to each other, not even by way of others. job.go has the value that the stages
// hand on; layers.go joins the places where options can stand.
//
// If the cluster has plugins that may change a submission, the script also carries the request
// (carry.go), and the job is checked afterwards (lookback.go); otherwise sbatch replaces this
// process.
//
// sbatch's options pass through as written. Those that affect the request (time limit, begin time,
// comment) are read as sbatch reads them: the command line overrides the environment, which
// overrides the script.
package submit
