// Package recorder is the flight recorder. It records every input of the decision core with its
// time, and the effects of each step, so that the core can be replayed and does the same.
//
//	poll.go      what is recorded (package codec writes it), and polls of Slurm as differences to the one before
//	segment.go   files: a heading and compressed, chained blocks of records
//	recorder.go  the ring of files that the shell writes
//	mask.go      recordings without names and paths
//	replay.go    a core that is stepped through a recording
//	why.go       why a job is where it is, in words
//
// A recording is a run of the sidecar: files of one name, numbered. Each begins with who
// runs where by which configuration, and can be read by itself. All but the first begin with the core's
// state, so a replay can begin with any of them. When a folder has more than it may, the oldest runs go, then,
// of the present run, all but its beginning and what is newest. A state that would take more than an eighth of
// the folder is left out. What is behind a gap can then be read, with the effects as they were, and not be replayed.
package recorder
