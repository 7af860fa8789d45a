// Package injob is what runs inside an evolving job: what a shell must unset and
// set after the job has changed size (Exports), host files, and Run, which starts
// a command over all nodes that the job has, whether they are one Slurm job
// (drive modes merge and chain) or several (companion).
//
// An allocation is read from the sidecar; nothing in it is trusted to be harmless
// in a shell: node names are checked, values quoted.
package injob
