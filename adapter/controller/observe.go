package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// snapshot is the cluster as one observation shows it.
type snapshot struct {
	taken        time.Time // before the first command: nothing in it is older
	jobs         []slurmctl.Job
	nodes        []slurmctl.Node
	partitions   map[string]slurmctl.Partition
	reservations map[string]slurmctl.Reservation

	byID  map[slurmctl.JobID]*slurmctl.Job
	index map[string]int // of a node's name in nodes
	inUse set            // nodes that some job holds, completing ones included
}

// observe looks at the cluster: three commands, however many jobs there are.
func (c *Controller) observe(ctx context.Context) (*snapshot, error) {
	s := &snapshot{taken: time.Now(), byID: map[slurmctl.JobID]*slurmctl.Job{}, index: map[string]int{},
		partitions: map[string]slurmctl.Partition{}, reservations: map[string]slurmctl.Reservation{}, inUse: set{}}
	nodes, partitions, err := c.slurm.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, errors.New("sinfo lists no nodes")
	}
	// reservations before jobs: whoever is seen outside a hold entered before it stood
	reservations, err := c.slurm.Reservations(ctx)
	if err != nil {
		return nil, err
	}
	if s.jobs, err = c.slurm.Jobs(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b slurmctl.Node) int { return compareNatural(a.Name, b.Name) })
	s.nodes = nodes
	for i, n := range nodes {
		s.index[n.Name] = i
	}
	for _, p := range partitions {
		s.partitions[p.Name] = p
	}
	for _, r := range reservations {
		s.reservations[r.Name] = r
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		s.byID[j.ID] = j
		for _, n := range j.NodeList {
			s.inUse[n] = true
		}
	}
	return s, nil
}

// local translates node names to their positions in a pool (ascending indices into
// the cluster's nodes); names that are not in it are left out.
func (s *snapshot) local(pool []int, names []string) []int {
	var all []int
	for _, name := range names {
		if i, ok := s.index[name]; ok {
			if at, ok := slices.BinarySearch(pool, i); ok {
				all = append(all, at)
			}
		}
	}
	return all
}

// free says whether no job holds any of these nodes and all are usable.
func (s *snapshot) free(names []string) bool {
	for _, name := range names {
		i, ok := s.index[name]
		if !ok || s.inUse[name] || !usable(s.nodes[i]) {
			return false
		}
	}
	return true
}

// usable says whether Slurm would start a job on the node, now or once it is free.
func usable(n slurmctl.Node) bool {
	if strings.Contains(n.Flags, "*") { // not responding
		return false
	}
	switch n.State {
	case "idle", "mixed", "allocated", "completing", "planned", "reserved":
		return true
	}
	return false
}

// compareNatural orders names the way people count: n2 before n10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if order := strings.Compare(x, y); order != 0 {
				return order
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// digits is the length of the run of digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
