package slurmsim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

type partition struct {
	Partition
	Set nodeSet
}

// against returns why the partition rejects a job, or "".
func (p *partition) against(j *job) string {
	switch {
	case !p.Up:
		return "PartitionDown"
	case j.NumNodes > len(p.Nodes), p.MaxNodes > 0 && j.NumNodes > p.MaxNodes, j.NumNodes < p.MinNodes:
		return "PartitionNodeLimit"
	case p.MaxTime > 0 && (j.TimeLimit > p.MaxTime || j.TimeLimit == slurmctl.Unlimited):
		return "PartitionTimeLimit"
	}
	return ""
}

// partitions holds the partitions in the order of the configuration.
type partitions []*partition

// clone returns copies of all.
func (all partitions) clone() partitions {
	copied := make(partitions, len(all))
	for i, p := range all {
		one := *p
		copied[i] = &one
	}
	return copied
}

// named returns the partition of that name, or for "" the default one.
func (all partitions) named(name string) *partition {
	for _, p := range all {
		if p.Name == name || name == "" && p.Default {
			return p
		}
	}
	if name == "" {
		return all[0]
	}
	return nil
}

// several returns the first partition to try for a job that names these, and all of them if
// there are several; nil if one of them does not exist.
func (all partitions) several(names string) (first *partition, several []*partition) {
	if !strings.Contains(names, ",") {
		return all.named(names), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		p := all.named(name)
		if p == nil || name == "" {
			return nil, nil
		}
		several = append(several, p)
	}
	slices.SortStableFunc(several, func(a, b *partition) int { return cmp.Compare(b.Tier, a.Tier) })
	return several[0], several
}
