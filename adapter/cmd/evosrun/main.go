// Command evosrun runs a command over all nodes that an evolving job holds now.
package main

import (
	"os"

	"github.com/evoslurm/evoslurm/adapter/injob"
)

func main() { os.Exit(injob.Main("evosrun", os.Args[1:])) }
