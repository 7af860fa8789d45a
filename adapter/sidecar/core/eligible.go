package core

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// eligibility holds the answer of [snapshot.eligible], which is the same for all jobs with the
// same request.
type eligibility struct {
	nodes []int
	err   error
}

// wish holds what a job requests of its nodes.
type wish struct {
	partition, features    string
	cpus                   int
	memory                 int64
	heterogenous           bool
	excluded, wanted, gres string
}

// eligible lists the nodes (indices into the cluster's nodes) on which Slurm may run a job. It
// takes the nodes of the job's partitions, narrowed by --constraint, --exclude, --nodelist, CPUs
// and memory per node, and the gres requested on each node. The error explains what Evoslurm
// cannot plan. Callers must not change the list, because it is shared.
func (s *snapshot) eligible(r *slurmctl.Job, gres []slurmctl.GRES) ([]int, error) {
	key := wish{r.Partition, r.Features, r.MinCPUs, r.MinMemory, r.Heterogenous, strings.Join(r.ExcNodes, " "), strings.Join(r.ReqNodes, " "), ""}
	if len(gres) > 0 {
		key.gres = fmt.Sprint(gres)
	}
	known, ok := s.eligibles[key]
	if !ok {
		known.nodes, known.err = s.findEligible(r, gres)
		if s.eligibles == nil {
			s.eligibles = map[wish]eligibility{}
		}
		s.eligibles[key] = known
	}
	return known.nodes, known.err
}

// findEligible computes what eligible returns. O(nodes).
func (s *snapshot) findEligible(r *slurmctl.Job, gres []slurmctl.GRES) ([]int, error) {
	if r.Heterogenous {
		return nil, fmt.Errorf("heterogeneous jobs cannot be planned yet")
	}
	constraint, err := slurmctl.ParseConstraint(r.Features)
	if err != nil {
		return nil, err
	}
	excluded, wanted := setOf(r.ExcNodes), setOf(r.ReqNodes)
	member := make([]bool, len(s.nodes))
	for _, name := range strings.Split(r.Partition, ",") {
		p, ok := s.partitions[name]
		if !ok || !p.Up {
			continue
		}
		for _, n := range p.Nodes {
			if i, ok := s.index[n]; ok {
				member[i] = true
			}
		}
	}
	hasGRES := map[string]bool{} // by the text that sinfo shows for a node
	var nodes []int
	for i, n := range s.nodes {
		if !member[i] || excluded[n.Name] || len(wanted) > 0 && !wanted[n.Name] || !constraint.Met(n.Features) ||
			n.CPUs < r.MinCPUs || r.MinMemory > 0 && n.Memory < r.MinMemory {
			continue
		}
		if len(gres) > 0 {
			has, ok := hasGRES[n.GRES]
			if !ok {
				of, err := slurmctl.ParseGRES(n.GRES)
				has = err == nil && slurmctl.HasGRES(of, gres)
				hasGRES[n.GRES] = has
			}
			if !has {
				continue
			}
		}
		nodes = append(nodes, i)
	}
	return nodes, nil
}
