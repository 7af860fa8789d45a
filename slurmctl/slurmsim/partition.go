package slurmsim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

type partition struct {
	Partition
	set nodeSet
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

func clonePartitions(all []*partition) []*partition {
	copied := make([]*partition, len(all))
	for i, p := range all {
		one := *p
		copied[i] = &one
	}
	return copied
}

// partition returns the partition of that name, or for "" the default one.
func (c *Cluster) partition(name string) *partition {
	for _, p := range c.partitions {
		if p.Name == name || name == "" && p.Default {
			return p
		}
	}
	if name == "" {
		return c.partitions[0]
	}
	return nil
}

// partitionsOf returns the first partition to try for a job that names these, and all of them if
// there are several; nil if one of them does not exist.
func (c *Cluster) partitionsOf(names string) (first *partition, several []*partition) {
	if !strings.Contains(names, ",") {
		return c.partition(names), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		p := c.partition(name)
		if p == nil || name == "" {
			return nil, nil
		}
		several = append(several, p)
	}
	slices.SortStableFunc(several, func(a, b *partition) int { return cmp.Compare(b.Tier, a.Tier) })
	return several[0], several
}
