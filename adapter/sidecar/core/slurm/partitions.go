package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job of several partitions runs in one of them, with all its nodes. It is planned in each partition that
// suits it, gets the plan that completes first, and is moved to that partition when it is released. The nodes
// of its plan show which partition that is.

// RefusedFor is how long a job avoids a partition that Slurm refused to it.
const RefusedFor = 10 * time.Minute

// Partitions returns the partitions that the job was submitted to, or that others moved it to since.
func Partitions(j *state.Job) []string {
	asked := strings.Split(j.Partition, ",")
	if r := j.Record.Partition; r != "" && (strings.Contains(r, ",") || !slices.Contains(asked, r)) {
		return strings.Split(r, ",")
	}
	return asked
}

// Unsuited returns why a job cannot run in one of its partitions, or "" if it can.
func Unsuited(c *state.Core, s *state.Snapshot, j *state.Job, name string) string {
	p, known := s.Partitions[name]
	limit := j.Record.TimeLimit
	switch {
	case !known:
		return "partition " + name + " is not known"
	case !p.Up:
		return "partition " + name + " is not up"
	case !Driven(c, name):
		return "partition " + name + " has no evolving jobs here"
	case p.MaxTime > 0 && (limit == slurmctl.Unlimited || limit > p.MaxTime):
		return fmt.Sprintf("partition %s allows %v", name, p.MaxTime)
	case p.MaxNodes > 0 && j.Profile.Peak() > p.MaxNodes:
		return fmt.Sprintf("partition %s allows %d nodes", name, p.MaxNodes)
	case j.Profile[0].Nodes < p.MinNodes:
		return fmt.Sprintf("partition %s allows no fewer than %d nodes", name, p.MinNodes)
	case !c.Reached(c.Now, j.RefusedIn[name].Until):
		return fmt.Sprintf("partition %s: %s", name, j.RefusedIn[name].Why)
	}
	return forbids(c, j, name)
}

// InPartition returns the job's record with one of its partitions.
func InPartition(r *slurmctl.Job, name string) *slurmctl.Job {
	one := *r
	one.Partition = name
	return &one
}

// mostChoices bounds in how many places a job is planned.
const mostChoices = slurmctl.MostAlternatives

// choices returns the nodes that a job may have in each of its suitable partitions, in the order given, and there
// with each alternative of its constraint.
func choices(c *state.Core, s *state.Snapshot, j *state.Job) ([][]int, error) {
	var all [][]int
	var why []string
	for _, name := range Partitions(j) {
		if text := Unsuited(c, s, j, name); text != "" {
			why = append(why, text)
			continue
		}
		together, err := EligibleTogether(s, InPartition(inOwn(j), name), j.GRES)
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		most := 0
		for _, nodes := range together {
			if most = max(most, len(nodes)); len(nodes) >= j.Profile.Peak() && len(all) < mostChoices {
				all = append(all, nodes)
			}
		}
		if most < j.Profile.Peak() {
			why = append(why, fmt.Sprintf("partition %s has %d nodes for it", name, most))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no partition suits it: " + strings.Join(why, "; "))
	}
	return all, nil
}

// PlacesOf returns the nodes that a queued job may have. If several partitions or alternatives of its constraint are still
// possible, it also returns the nodes of each. Places with the features that the job prefers come before all others.
func PlacesOf(c *state.Core, s *state.Snapshot, j *state.Job) ([]int, [][]int, error) {
	nodes, choices, err := placesOf(c, s, j)
	if err != nil || j.Prefer == "" {
		return nodes, choices, err
	}
	if choices == nil {
		choices = [][]int{nodes}
	}
	var first [][]int
	for _, any := range choices {
		if some := Preferred(s, j, any); len(some) >= leastPeak(j) && len(some) < len(any) {
			first = append(first, some)
		}
	}
	if choices = append(first, choices...); len(choices) == 1 {
		return nodes, nil, nil
	}
	return nodes, choices, nil
}

func placesOf(c *state.Core, s *state.Snapshot, j *state.Job) ([]int, [][]int, error) {
	if len(Partitions(j)) == 1 {
		together, err := EligibleTogether(s, inOwn(j), j.GRES)
		if err != nil {
			return nil, nil, err
		}
		nodes, choices := choose(together, leastPeak(j))
		return oneIfClaimed(s, j, nodes, choices)
	}
	choices, err := choices(c, s, j)
	if err != nil || len(choices) == 1 {
		return union(choices), nil, err
	}
	return oneIfClaimed(s, j, union(choices), choices)
}

// oneIfClaimed leaves a job with a claim one choice: the one of its plan, or else the largest. Whether its claim is safe
// beside others depends on which nodes it may have.
func oneIfClaimed(s *state.Snapshot, j *state.Job, nodes []int, choices [][]int) ([]int, [][]int, error) {
	if j.Claim == 0 || choices == nil {
		return nodes, choices, nil
	}
	at := Candidate{Job: j, Choices: choices}.Present(s)
	if at < 0 || len(choices[at]) < j.Claim {
		at = 0
		for i := range choices {
			if len(choices[i]) > len(choices[at]) {
				at = i
			}
		}
	}
	return choices[at], nil, nil
}

// Nowhere returns why no node at all suits a queued job.
func Nowhere(c *state.Core, s *state.Snapshot, j *state.Job) string {
	for _, name := range Partitions(j) {
		if p, known := s.Partitions[name]; !known || !p.Up {
			return Unsuited(c, s, j, name)
		}
	}
	return "no node of its partition has what it asks for"
}

// choose returns all nodes that a job of a size may have in any of several lists, and the lists if there is a choice. If none is
// large enough, it returns the largest.
func choose(together [][]int, size int) (nodes []int, choices [][]int) {
	for _, one := range together {
		if len(one) >= size {
			choices = append(choices, one)
		}
		if len(one) > len(nodes) {
			nodes = one
		}
	}
	if len(choices) > 1 {
		return union(choices), choices
	}
	if len(choices) == 1 {
		nodes = choices[0]
	}
	return nodes, nil
}

// leastPeak returns the size of a job, or of the smallest alternative of a moldable job.
func leastPeak(j *state.Job) int {
	least := j.Profile.Peak()
	if j.Moldable != nil && !j.Runs() {
		for _, p := range j.Moldable.Alternatives {
			least = min(least, p.Peak())
		}
	}
	return least
}

// StockPlaces returns the nodes that a stock job may have, and the alternatives of its constraint if it has a choice. Slurm has accepted
// the job, so the nodes of a constraint that cannot be planned are those that it may have at all.
func StockPlaces(s *state.Snapshot, r *slurmctl.Job) ([]int, [][]int) {
	together, _ := EligibleTogether(s, r, nil)
	return choose(together, max(r.NumNodes, 1))
}

// StockParts returns how many nodes a stock job gets, and the parts of these if its constraint has numbers of nodes by feature. There are no
// parts if nodes could be in several, or if the job gets others, too.
func StockParts(s *state.Snapshot, r *slurmctl.Job, nodes []int) (count int, parts []Part) {
	if !strings.Contains(r.Features, "*") {
		return r.NumNodes, nil
	}
	_, counts := slurmctl.LooseConstraint(r.Features)
	sum, distinct, in := 0, true, make([]bool, len(s.Nodes))
	for _, one := range counts {
		part := Part{Count: one.Nodes}
		for _, n := range nodes {
			if slices.Contains(s.Nodes[n].Features, one.Feature) {
				part.Nodes = append(part.Nodes, n)
				distinct, in[n] = distinct && !in[n], true
			}
		}
		distinct = distinct && part.Count <= len(part.Nodes)
		parts, sum = append(parts, part), sum+part.Count
	}
	if !distinct || r.NumNodes > sum {
		parts = nil
	}
	return max(r.NumNodes, sum), parts
}

// union joins ascending lists.
func union(lists [][]int) []int {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// PartitionFor returns the partition of the job's plan, or "" if there is no choice.
func PartitionFor(c *state.Core, s *state.Snapshot, j *state.Job) string {
	names := Partitions(j)
	if len(names) < 2 || s == nil || len(j.Plan) == 0 {
		return ""
	}
	for _, name := range names {
		if Unsuited(c, s, j, name) == "" && len(msg.Without(j.Planned(), s.Partitions[name].Nodes)) == 0 {
			return name
		}
	}
	return ""
}

// RecordFor returns the job's record with the chosen partition: the links of a chain must run in the partition
// of the first link. It also has the job's own reservation.
func RecordFor(c *state.Core, s *state.Snapshot, j *state.Job) *slurmctl.Job {
	if strings.Contains(j.Record.Partition, ",") {
		if name := PartitionFor(c, s, j); name != "" {
			return InPartition(inOwn(j), name)
		}
	}
	return inOwn(j)
}

// Chosen returns the candidate in the place of its current plan, or in the first one.
func (cand Candidate) Chosen(s *state.Snapshot) Candidate {
	if len(cand.Choices) > 0 {
		cand.Nodes = cand.Choices[max(cand.Present(s), 0)]
		cand.Choices = nil
	}
	return cand
}

// Present returns the choice that has all nodes of the candidate's plan, or -1 if none has.
func (cand Candidate) Present(s *state.Snapshot) int {
	if cand.Job == nil {
		return -1
	}
	planned := cand.Job.Planned()
	at := slices.IndexFunc(cand.Choices, func(nodes []int) bool {
		return len(planned) > 0 && len(Local(s, nodes, planned)) == len(planned)
	})
	if at >= 0 && len(Preferred(s, cand.Job, cand.Choices[at])) < len(cand.Choices[at]) && cand.Job.Prefer != "" {
		return -1 // nodes that it prefers come first, even for a plan that is as late
	}
	return at
}

// PartitionShown returns the partition that the job runs in or is planned in, or else all of its partitions.
func PartitionShown(c *state.Core, j *state.Job) string {
	if j.Runs() {
		return PartitionOf(j)
	}
	if name := PartitionFor(c, c.Snapshot, j); name != "" {
		return name
	}
	return j.Partition
}

// PartitionOf returns the partition in which the base job runs.
func PartitionOf(j *state.Job) string {
	if j.Record.Partition != "" {
		return j.Record.Partition
	}
	return j.Partition
}

// Driven reports whether the site allows evolving jobs in any of these partitions. The sidecar
// adopts jobs in no other partition.
func Driven(c *state.Core, partitions string) bool {
	return len(c.Config.Partitions) == 0 || slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool {
		return slices.Contains(c.Config.Partitions, p)
	})
}
