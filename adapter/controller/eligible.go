package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// eligible lists the nodes (indices into the cluster's) on which Slurm may run a
// job: those of its partitions, narrowed by --constraint, --exclude, --nodelist,
// CPUs and memory per node. The error says in words what Evoslurm cannot plan.
func (s *snapshot) eligible(r *slurmctl.Job) ([]int, error) {
	if r.Heterogenous {
		return nil, fmt.Errorf("heterogeneous jobs cannot be planned yet")
	}
	matches, err := constraint(r.Features)
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
	var nodes []int
	for i, n := range s.nodes {
		if !member[i] || excluded[n.Name] || len(wanted) > 0 && !wanted[n.Name] || !matches(n.Features) ||
			n.CPUs < r.MinCPUs || r.MinMemory > 0 && n.Memory < r.MinMemory {
			continue
		}
		nodes = append(nodes, i)
	}
	return nodes, nil
}

// constraint reads --constraint as far as it names features joined by & or by |.
func constraint(text string) (func(features []string) bool, error) {
	if text == "" || text == "(null)" {
		return func([]string) bool { return true }, nil
	}
	if strings.ContainsAny(text, "[]()*") || strings.Contains(text, "&") && strings.Contains(text, "|") {
		return nil, fmt.Errorf("the constraint %q cannot be planned: only features joined by & or by | can", text)
	}
	if strings.Contains(text, "|") {
		any := strings.Split(text, "|")
		return func(features []string) bool {
			return slices.ContainsFunc(any, func(f string) bool { return slices.Contains(features, f) })
		}, nil
	}
	all := strings.FieldsFunc(text, func(r rune) bool { return r == '&' || r == ',' })
	return func(features []string) bool {
		return !slices.ContainsFunc(all, func(f string) bool { return !slices.Contains(features, f) })
	}, nil
}
