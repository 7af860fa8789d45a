// Package observed keeps a record of what happened on a cluster: which jobs came, when they started and ended, what the
// sidecar and Slurm had predicted for them, and what the sidecar asked of slurmctld.
//
//	record.go   what a line says
//	write.go    a folder of files, one or more for each day (UTC), within a bound
//	read.go     the days of a folder, and their lines
//	watch.go    what is recorded of the core's inputs: polls, and plans
//	jobs.go     jobs, from poll to poll
//	predict.go  starts that were predicted
//	site.go     what the cluster is like
//
// A file is gzip'd JSON, one line for each record. Its first line is a [Heading]. A file's name is its day, and a number
// from the second file of a day on: the sidecar begins a new file whenever it starts or a file is large. The writer
// flushes every minute. If the sidecar dies, the file ends within a line or a block, and a reader reports that.
package observed
