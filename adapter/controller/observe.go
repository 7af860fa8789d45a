package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// snapshot is the cluster as one observation shows it.
type snapshot struct {
	taken        time.Time // before the first command: nothing in it is older
	nodesTaken   time.Time // when the nodes alone were looked at after that
	jobs         []slurmctl.Job
	nodes        []slurmctl.Node
	partitions   map[string]slurmctl.Partition
	reservations map[string]slurmctl.Reservation

	byID  map[slurmctl.JobID]*slurmctl.Job
	index map[string]int // of a node's name in nodes
	inUse set            // nodes that some job holds, completing ones included

	leftToSlurm bool // to switch nodes on: those that are off count as free

	eligibles map[string]eligibility // as far as asked for
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
	s.nodes = sortedNodes(nodes)
	for i, n := range s.nodes {
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
		j.ReqNodes = mayHave(j)
		for _, n := range j.NodeList {
			s.inUse[n] = true
		}
	}
	return s, nil
}

// mayHave is the nodes to which a job is bound: an evolving one has its --nodelist
// in the marker.
func mayHave(r *slurmctl.Job) []string {
	if !strings.Contains(r.Comment, ";n=") {
		return r.ReqNodes
	}
	sp, marked, err := spec.ParseMarker(r.Comment)
	if err != nil || !marked || sp.Nodes == "" {
		return r.ReqNodes
	}
	nodes, err := slurmctl.ExpandNodes(sp.Nodes)
	if err != nil { // ParseMarker has read it
		return r.ReqNodes
	}
	return nodes
}

// sortedNodes orders nodes by name: n2 before n10.
func sortedNodes(nodes []slurmctl.Node) []slurmctl.Node {
	names, byName := make([]string, len(nodes)), make(map[string]slurmctl.Node, len(nodes))
	for i, n := range nodes {
		names[i], byName[n.Name] = n.Name, n
	}
	slurmctl.SortNodes(names)
	sorted := make([]slurmctl.Node, len(names))
	for i, name := range names {
		sorted[i] = byName[name]
	}
	return sorted
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

// free says whether no job holds any of these nodes and all are usable at once.
func (s *snapshot) free(names []string) bool {
	for _, name := range names {
		i, ok := s.index[name]
		if !ok || s.inUse[name] {
			return false
		}
		n := s.nodes[i]
		if !n.Awake() && !(s.leftToSlurm && n.Usable() && n.Power() == slurmctl.PoweredDown) {
			return false
		}
	}
	return true
}
