package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Eligible lists the nodes (indices into the cluster's nodes) on which Slurm may run a job. It
// takes the nodes of the job's partitions, narrowed by --constraint, --exclude, --nodelist, CPUs,
// memory, sockets, cores, and threads per node, the nodes of the reservation of the site that it asks for, and the gres requested on each node. The error explains what Evoslurm
// cannot plan. Callers must not change the list, because it is shared.
func Eligible(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) ([]int, error) {
	known := eligibility(s, r, gres)
	return known.Nodes, known.Err
}

// EligibleTogether returns the lists of nodes that Eligible finds, if a constraint has alternatives in brackets: Slurm
// takes all nodes of a job from one of the lists. Without brackets it returns one list. Callers must not change them.
func EligibleTogether(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) ([][]int, error) {
	known := eligibility(s, r, gres)
	if known.Choices == nil {
		return [][]int{known.Nodes}, known.Err
	}
	return known.Choices, known.Err
}

// EligibleBeside returns the nodes that a job may have beside those that it has. With alternatives in brackets, these
// are the nodes of the alternative of its nodes, or of its plan if it has no nodes.
func EligibleBeside(c *state.Core, s *state.Snapshot, j *state.Job) ([]int, error) {
	all, err := EligibleTogether(s, RecordFor(c, s, j), j.GRES)
	if err != nil || len(all) == 1 {
		return all[0], err
	}
	has := j.Nodes()
	if len(has) == 0 {
		has = j.Planned()
	}
	best, most := 0, -1
	for i, nodes := range all {
		if n := len(Local(s, nodes, has)); n > most || n == most && len(nodes) > len(all[best]) {
			best, most = i, n
		}
	}
	return all[best], nil
}

// Preferred returns those of some nodes that have the features that a job prefers, or nil if it prefers none.
func Preferred(s *state.Snapshot, j *state.Job, nodes []int) (all []int) {
	if j.Prefer == "" {
		return nil
	}
	wish, err := slurmctl.ParsePrefer(j.Prefer)
	if err != nil { // it was checked at adoption
		return nil
	}
	for _, n := range nodes {
		if wish.Met(s.Nodes[n].Features) {
			all = append(all, n)
		}
	}
	return all
}

// MostTogether returns the length of the longest list of EligibleTogether.
func MostTogether(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) (most int) {
	all, err := EligibleTogether(s, r, gres)
	if err != nil {
		return 0
	}
	for _, nodes := range all {
		most = max(most, len(nodes))
	}
	return most
}

func eligibility(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) state.Eligibility {
	key := state.Wish{r.Partition, r.Features, r.MinCPUs, r.MinMemory, r.Layout, r.Heterogenous, strings.Join(r.ExcNodes, " "), strings.Join(r.ReqNodes, " "), "", state.OwnReservation(r.Reservation)}
	if len(gres) > 0 {
		key.GRES = fmt.Sprint(gres)
	}
	known, ok := s.Eligibles[key]
	if !ok {
		known = findEligible(s, r, gres)
		if s.Eligibles == nil {
			s.Eligibles = map[state.Wish]state.Eligibility{}
		}
		s.Eligibles[key] = known
	}
	return known
}

// findEligible computes what eligibility returns. O(nodes × alternatives).
func findEligible(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES) state.Eligibility {
	if r.Heterogenous {
		return state.Eligibility{Err: errors.New("heterogeneous jobs cannot be planned yet")}
	}
	constraint, err := slurmctl.ParseConstraint(r.Features)
	if err != nil { // the nodes are for StockPlaces
		constraint, _ = slurmctl.LooseConstraint(r.Features)
	}
	nodes := inBlocks(s, suitable(s, r, gres, constraint))
	choices := alternatives(s, nodes, constraint.Alternatives())
	if s.Fabric != nil {
		nodes, choices = onFabrics(s, nodes, choices)
	}
	return state.Eligibility{Nodes: nodes, Choices: choices, Err: err}
}

// suitable returns the nodes with what a job wants, of its partitions or of the site's reservation that it asks for.
func suitable(s *state.Snapshot, r *slurmctl.Job, gres []slurmctl.GRES, constraint slurmctl.Constraint) (nodes []int) {
	excluded, wanted := msg.SetOf(r.ExcNodes), msg.SetOf(r.ReqNodes)
	member := members(s, r.Partition)
	if own := state.OwnReservation(r.Reservation); own != "" {
		keepIn(s, member, s.Reservations[own].Nodes)
	}
	hasGRES := map[string]bool{} // by the text that sinfo shows for a node
	for i, n := range s.Nodes {
		if !member[i] || excluded[n.Name] || len(wanted) > 0 && !wanted[n.Name] || !constraint.Met(n.Features) || tooSmall(&n, r) {
			continue
		}
		if _, known := hasGRES[n.GRES]; !known && len(gres) > 0 {
			of, err := slurmctl.ParseGRES(n.GRES)
			hasGRES[n.GRES] = err == nil && slurmctl.HasGRES(of, gres)
		}
		if len(gres) == 0 || hasGRES[n.GRES] {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// alternatives returns the nodes with each of some features, in the order of the features; nil if there are none. It leaves out
// lists without nodes, and those within another one, which is never worse. At least one list remains.
func alternatives(s *state.Snapshot, nodes []int, features []string) (all [][]int) {
	if len(features) == 0 {
		return nil
	}
	for _, f := range features {
		var one []int
		for _, n := range nodes {
			if slices.Contains(s.Nodes[n].Features, f) {
				one = append(one, n)
			}
		}
		if slices.ContainsFunc(all, func(other []int) bool { return within(one, other) }) {
			continue
		}
		all = append(slices.DeleteFunc(all, func(other []int) bool { return within(other, one) }), one)
	}
	return all
}

// within reports whether an ascending list has no member that another one lacks.
func within(part, whole []int) bool {
	if len(part) > len(whole) {
		return false
	}
	for _, n := range part {
		at, ok := slices.BinarySearch(whole, n)
		if !ok {
			return false
		}
		whole = whole[at+1:]
	}
	return true
}

// keepIn takes all but some nodes out of a set.
func keepIn(s *state.Snapshot, member []bool, names []string) {
	in := msg.SetOf(names)
	for i := range member {
		member[i] = member[i] && in[s.Nodes[i].Name]
	}
}

// tooSmall reports whether a node has fewer CPUs, sockets, cores, or threads, or less memory than a job asks for.
func tooSmall(n *slurmctl.Node, r *slurmctl.Job) bool {
	return n.CPUs < r.MinCPUs || r.MinMemory > 0 && n.Memory < r.MinMemory || !n.Layout.Has(r.Layout)
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
