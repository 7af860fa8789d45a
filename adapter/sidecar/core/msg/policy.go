package msg

import (
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// FallbackPolicy answers if a plugin fails.
var FallbackPolicy malleable.Policy = malleable.EGS{}
