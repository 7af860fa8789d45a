// Package live has a real private Slurm with the sidecar run what the model runs: workloads are
// injected, extracted from Slurm's accounting, and compared with evosim run's outcome, job by job.
// make live does it for a trace's hour and for the benchmark ESP (adapter/BENCHMARKS.md). TestGrowDelay has jobs ask for nodes,
// and counts what their growths cost others (docs/experiments.md).
package live
