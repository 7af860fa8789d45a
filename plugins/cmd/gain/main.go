// Command gain is the malleability policy of that name as a plugin process.
package main

import (
	"github.com/evoslurm/evoslurm/plugins/builtin"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

func main() { strategy.Serve(builtin.Policy("gain")) }
