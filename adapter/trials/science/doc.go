// Package science runs one case of contrib/examples/amr on a full cluster in four ways, each on a private Slurm with the same other
// jobs, and shows what each waits for and costs: make science. The case is the application's; others' jobs come from Stream.
package science
