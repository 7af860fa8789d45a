package slurm

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Eligible lists the nodes (indices into the cluster's nodes) on which Slurm may run a job. It
// takes the nodes of the job's partitions, narrowed by --constraint, --exclude, --nodelist, CPUs
// and memory per node, and the gres requested on each node. The error explains what Evoslurm
// cannot plan. Callers must not change the list, because it is shared.
func Eligible(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) ([]int, error) {
	key := state.Wish{r.Partition, r.Features, r.MinCPUs, r.MinMemory, r.Heterogenous, strings.Join(r.ExcNodes, " "), strings.Join(r.ReqNodes, " "), ""}
	if len(gres) > 0 {
		key.GRES = fmt.Sprint(gres)
	}
	known, ok := s.Eligibles[key]
	if !ok {
		known.Nodes, known.Err = findEligible(s, r, gres)
		if s.Eligibles == nil {
			s.Eligibles = map[state.Wish]state.Eligibility{}
		}
		s.Eligibles[key] = known
	}
	return known.Nodes, known.Err
}

// findEligible computes what eligible returns. O(nodes).
func findEligible(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) ([]int, error) {
	if r.Heterogenous {
		return nil, fmt.Errorf("heterogeneous jobs cannot be planned yet")
	}
	constraint, err := slurmctl.ParseConstraint(r.Features)
	if err != nil {
		return nil, err
	}
	excluded, wanted := msg.SetOf(r.ExcNodes), msg.SetOf(r.ReqNodes)
	member := members(s, r.Partition)
	hasGRES := map[string]bool{} // by the text that sinfo shows for a node
	var nodes []int
	for i, n := range s.Nodes {
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
func members(s *state.Snapshot, partitions string) []bool {
	member := make([]bool, len(s.Nodes))
	for _, name := range strings.Split(partitions, ",") {
		p, ok := s.Partitions[name]
		if !ok || !p.Up {
			continue
		}
		for _, n := range p.Nodes {
			if i, ok := s.Index[n]; ok {
				member[i] = true
			}
		}
	}
	return member
}
