// Command search is the strategy of that name as a plugin process.
package main

import (
	"github.com/evoslurm/evoslurm/plugins/builtin"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

func main() { strategy.Serve(builtin.Search()) }
