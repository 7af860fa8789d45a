package slurm

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// PartitionOf returns the partition in which the base job runs.
func PartitionOf(j *state.Job) string {
	if j.Record.Partition != "" {
		return j.Record.Partition
	}
	return j.Partition
}
