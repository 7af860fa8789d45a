package core

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// eligibility is the answer of [snapshot.eligible], the same for all jobs that ask
// for the same.
type eligibility struct {
	nodes []int
	err   error
}

// wish is what a job asks of its nodes.
type wish struct {
	partition, features    string
	cpus                   int
	memory                 int64
	heterogenous           bool
	excluded, wanted, gres string
}

// eligible lists the nodes (indices into the cluster's) on which Slurm may run a
// job: those of its partitions, narrowed by --constraint, --exclude, --nodelist,
// CPUs and memory per node, and gres, which it asks for on each. The error says in words what Evoslurm cannot plan. The
// list is shared and not to be changed.
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

// findEligible is O(nodes).
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
	hasGRES := map[string]bool{} // by what sinfo says of a node
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
