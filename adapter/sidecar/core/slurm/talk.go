package slurm

import (
	"cmp"
)

// Turn holds what decides in Slurm which job goes first: the tier of the partition, then the priority.
type Turn struct {
	Tier     int
	Priority uint64
}

func (t Turn) Compare(other Turn) int {
	return cmp.Or(cmp.Compare(t.Tier, other.Tier), cmp.Compare(t.Priority, other.Priority))
}
