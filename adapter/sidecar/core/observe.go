package core

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// snapshot holds the cluster as one observation shows it.
type snapshot struct {
	taken        time.Time // before the first command: nothing in it is older
	nodesTaken   time.Time // when the last later poll of the nodes only was made
	jobs         []slurmctl.Job
	nodes        []slurmctl.Node
	partitions   map[string]slurmctl.Partition
	reservations map[string]slurmctl.Reservation
	holders      map[slurmctl.JobID]bool // nil: see heldFor

	byID   map[slurmctl.JobID]*slurmctl.Job
	marks  map[slurmctl.JobID]*Mark
	index  map[string]int // of a node's name in nodes
	layout int            // number of the node list; another number means other nodes
	inUse  set            // nodes that some job holds, including completing ones

	leftToSlurm bool // Slurm switches nodes on: nodes that are off count as free

	eligibles map[wish]eligibility // filled on demand
}

// observed processes a poll of Slurm.
func (c *Core) observed(in Observation) {
	p := &c.pace
	p.polling, p.begun, p.ended = false, in.Begun, c.now
	if in.Begun.Before(c.stepped) {
		c.nextCycle = c.now // the poll shows a time before the clock change
		return
	}
	c.nextCycle = in.Begun.Add(c.cfg.PollInterval)
	err := in.Err
	if err == nil && in.Config != nil {
		err = c.takeConfig(*in.Config)
	}
	if err == nil && len(in.Nodes) == 0 {
		err = errors.New("sinfo lists no nodes")
	}
	if err != nil {
		c.unobserved(err)
		return
	}
	c.mayUpdate(!in.UpdatesNeedAccount)
	c.calls, c.cycleCalls = in.Calls, int(in.Calls-c.calls)
	p.spare(&in, c.cfg.Slurm.Share, c.cfg.PollInterval)
	if c.skew != 0 {
		for i := range in.Jobs {
			c.jobIn(&in.Jobs[i])
		}
		for i := range in.Reservations {
			c.in(&in.Reservations[i].Start, &in.Reservations[i].End)
		}
	}
	s := newSnapshot(in, c.snapshot)
	if err := c.watchTwin(s); err != nil {
		c.lastErr, c.nextCycle = err, c.now.Add(max(c.cfg.PollInterval, time.Second))
		return
	}
	c.cycle(s)
}

// unobserved is called when a poll failed.
func (c *Core) unobserved(err error) {
	if c.lastErr == nil {
		c.log.WithError(err).Error("cannot poll Slurm; making no changes until a poll succeeds")
	}
	c.lastErr = err
	c.nextCycle = c.now.Add(max(c.cfg.PollInterval, time.Second))
}

// newSnapshot returns what an observation shows; before is the last snapshot, or nil.
func newSnapshot(in Observation, before *snapshot) *snapshot {
	s := &snapshot{taken: in.Begun, jobs: in.Jobs, byID: make(map[slurmctl.JobID]*slurmctl.Job, len(in.Jobs)),
		partitions: map[string]slurmctl.Partition{}, reservations: map[string]slurmctl.Reservation{}, inUse: make(set, len(in.Nodes))}
	if before != nil && slices.EqualFunc(in.Nodes, before.nodes, func(a, b slurmctl.Node) bool { return a.Name == b.Name }) {
		s.nodes, s.index, s.layout = in.Nodes, before.index, before.layout // the same nodes in order
	} else {
		if before != nil {
			s.layout = before.layout + 1
		}
		s.nodes, s.index = sortedNodes(in.Nodes), make(map[string]int, len(in.Nodes))
		for i, n := range s.nodes {
			s.index[n.Name] = i
		}
	}
	for _, p := range in.Partitions {
		s.partitions[p.Name] = p
	}
	for _, r := range in.Reservations {
		s.reservations[r.Name] = r
	}
	marks := in.Marks
	if marks == nil { // no poll has read them
		marks = ReadMarks(in.Jobs, nil)
	}
	s.marks = make(map[slurmctl.JobID]*Mark, len(marks))
	for i := range marks {
		s.marks[marks[i].Job] = &marks[i]
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		s.byID[j.ID] = j
		for _, n := range j.NodeList {
			s.inUse[n] = true
		}
	}
	return s
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

// local translates node names to their positions in a pool (ascending indices into the cluster's nodes). It
// leaves out names that are not in the pool.
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

// free reports whether no job holds any of these nodes and all are usable at once.
func (s *snapshot) free(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		i, ok := s.index[name]
		return !ok || !s.idle(i)
	})
}

// idle reports whether no job holds a node and it is usable at once.
func (s *snapshot) idle(i int) bool {
	n := &s.nodes[i]
	return !s.inUse[n.Name] && (n.Awake() || s.leftToSlurm && n.Usable() && n.Power() == slurmctl.PoweredDown)
}
