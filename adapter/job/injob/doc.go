// Package injob is the code that runs inside an evolving job: what a shell must unset and set after
// the job has changed size (Exports), host files, and Run, which starts a command on all nodes of
// the job, whether they are one Slurm job (drive modes merge and chain) or several (companion).
//
// An allocation comes from the sidecar, but nothing in it is trusted in a shell: node names are
// checked and values quoted.
package injob
