// Command evosrun runs a command over all nodes that an evolving job has now.
package main

import (
	"os"

	"github.com/evoslurm/evoslurm/adapter/injob"
	"github.com/evoslurm/evoslurm/adapter/version"
)

var linked string // the version, set by the linker

func main() { os.Exit(injob.Main("evosrun", version.Line(linked), os.Args[1:])) }
