package slurm

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Driven reports whether the site allows evolving jobs in any of these partitions. The sidecar
// adopts jobs in no other partition.
func Driven(c *state.Core, partitions string) bool {
	return len(c.Config.Partitions) == 0 || slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool {
		return slices.Contains(c.Config.Partitions, p)
	})
}
