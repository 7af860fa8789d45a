package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job of several partitions runs in one of them, with all its nodes. It is planned in each partition that
// suits it, gets the plan that completes first, and is moved to that partition when it is released. The nodes
// of its plan show which partition that is.

// refusedFor is how long a job avoids a partition that Slurm refused to it.
const refusedFor = 10 * time.Minute

// partitions returns the partitions that the job was submitted to, or that others moved it to since.
func (j *job) partitions() []string {
	asked := strings.Split(j.Partition, ",")
	if r := j.record.Partition; r != "" && (strings.Contains(r, ",") || !slices.Contains(asked, r)) {
		return strings.Split(r, ",")
	}
	return asked
}

// unsuited returns why a job cannot run in one of its partitions, or "" if it can.
func (c *Core) unsuited(s *snapshot, j *job, name string) string {
	p, known := s.partitions[name]
	limit := j.record.TimeLimit
	switch {
	case !known:
		return "partition " + name + " is not known"
	case !p.Up:
		return "partition " + name + " is not up"
	case !c.driven(name):
		return "partition " + name + " has no evolving jobs here"
	case p.MaxTime > 0 && (limit == slurmctl.Unlimited || limit > p.MaxTime):
		return fmt.Sprintf("partition %s allows %v", name, p.MaxTime)
	case p.MaxNodes > 0 && j.Profile.Peak() > p.MaxNodes:
		return fmt.Sprintf("partition %s allows %d nodes", name, p.MaxNodes)
	case j.Profile[0].Nodes < p.MinNodes:
		return fmt.Sprintf("partition %s allows no fewer than %d nodes", name, p.MinNodes)
	case c.now.Before(j.refusedIn[name].until):
		return fmt.Sprintf("partition %s: %s", name, j.refusedIn[name].why)
	}
	return c.forbids(j, name)
}

// refusal holds what Slurm said when it refused to move a job to a partition.
type refusal struct {
	why   string
	until time.Time
}

// inPartition returns the job's record with one of its partitions.
func inPartition(r *slurmctl.Job, name string) *slurmctl.Job {
	one := *r
	one.Partition = name
	return &one
}

// choices returns the nodes that a job may have in each of its suitable partitions, in the order given.
func (c *Core) choices(s *snapshot, j *job) ([][]int, error) {
	var all [][]int
	var why []string
	for _, name := range j.partitions() {
		if text := c.unsuited(s, j, name); text != "" {
			why = append(why, text)
			continue
		}
		nodes, err := s.eligible(inPartition(&j.record, name), j.gres)
		switch {
		case err != nil:
			why = append(why, err.Error())
		case len(nodes) < j.Profile.Peak():
			why = append(why, fmt.Sprintf("partition %s has %d nodes for it", name, len(nodes)))
		default:
			all = append(all, nodes)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no partition suits it: " + strings.Join(why, "; "))
	}
	return all, nil
}

// placesOf returns the nodes that a queued job may have. If several partitions are still possible, it also
// returns the nodes of each.
func (c *Core) placesOf(s *snapshot, j *job) ([]int, [][]int, error) {
	if len(j.partitions()) == 1 {
		nodes, err := s.eligible(&j.record, j.gres)
		return nodes, nil, err
	}
	choices, err := c.choices(s, j)
	if err != nil || len(choices) == 1 {
		return union(choices), nil, err
	}
	return union(choices), choices, nil
}

// union joins ascending lists.
func union(lists [][]int) []int {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// partitionFor returns the partition of the job's plan, or "" if there is no choice.
func (c *Core) partitionFor(s *snapshot, j *job) string {
	names := j.partitions()
	if len(names) < 2 || s == nil || len(j.plan) == 0 {
		return ""
	}
	for _, name := range names {
		if c.unsuited(s, j, name) == "" && len(Without(j.planned(), s.partitions[name].Nodes)) == 0 {
			return name
		}
	}
	return ""
}

// recordFor returns the job's record with the chosen partition: the links of a chain must run in the partition
// of the first link.
func (c *Core) recordFor(s *snapshot, j *job) *slurmctl.Job {
	if strings.Contains(j.record.Partition, ",") {
		if name := c.partitionFor(s, j); name != "" {
			return inPartition(&j.record, name)
		}
	}
	return &j.record
}

// chosen returns the candidate in the partition of its current plan, or in the first one.
func (cand candidate) chosen(s *snapshot) candidate {
	if len(cand.choices) > 0 {
		cand.nodes = cand.choices[max(cand.present(s), 0)]
		cand.choices = nil
	}
	return cand
}

// present returns the choice that has all nodes of the candidate's plan, or -1 if none has.
func (cand candidate) present(s *snapshot) int {
	planned := cand.job.planned()
	return slices.IndexFunc(cand.choices, func(nodes []int) bool {
		return len(planned) > 0 && len(s.local(nodes, planned)) == len(planned)
	})
}

// partitionShown returns the partition that the job runs in or is planned in, or else all of its partitions.
func (c *Core) partitionShown(j *job) string {
	if j.runs() {
		return partitionOf(j)
	}
	if name := c.partitionFor(c.snapshot, j); name != "" {
		return name
	}
	return j.Partition
}
