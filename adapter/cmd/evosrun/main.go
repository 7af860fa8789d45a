// Command evosrun runs a command over all nodes that an evolving job has now.
package main

import (
	"os"

	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

var linked string // the version, set by the linker

func main() { os.Exit(injob.Main("evosrun", version.Line(linked), os.Args[1:])) }
