// Command evosacct shows what evolving jobs had and used, step by step: in the manner of
// sacct, from the sidecar's history.
package main
