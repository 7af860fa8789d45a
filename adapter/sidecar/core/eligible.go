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
	member := s.members(r.Partition)
	hasGRES := map[string]bool{} // by the text that sinfo shows for a node
	var nodes []int
	for i, n := range s.nodes {
		if !member[i] || excluded[n.Name] || len(wanted) > 0 && !wanted[n.Name] || !constraint.Met(n.Features) || tooSmall(&n, r) {
			continue
		}
		if len(gres) > 0 {
			if _, known := hasGRES[n.GRES]; !known {
				of, err := slurmctl.ParseGRES(n.GRES)
				hasGRES[n.GRES] = err == nil && slurmctl.HasGRES(of, gres)
			}
			if !hasGRES[n.GRES] {
				continue
			}
		}
		nodes = append(nodes, i)
	}
	return nodes, nil
}

// tooSmall reports whether a node has fewer CPUs or less memory than a job asks for.
func tooSmall(n *slurmctl.Node, r *slurmctl.Job) bool {
	return n.CPUs < r.MinCPUs || r.MinMemory > 0 && n.Memory < r.MinMemory
}

// members reports which nodes are in any of these partitions that is up.
func (s *snapshot) members(partitions string) []bool {
	member := make([]bool, len(s.nodes))
	for _, name := range strings.Split(partitions, ",") {
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
	return member
}
