package state

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Snapshot holds the cluster as one observation shows it. A settled task changes the record of its Slurm job
// (see RecordOf); pace/observe.go has all other changes. Owner: pace.
type Snapshot struct {
	Taken        time.Time // before the first command: nothing in it is older
	NodesTaken   time.Time // when the last later poll of the nodes only was made
	Jobs         []slurmctl.Job
	Nodes        []slurmctl.Node
	Partitions   map[string]slurmctl.Partition
	Reservations map[string]slurmctl.Reservation
	Holds        map[string]OwnName      // our holds among the reservations, and whose they are
	Holders      map[slurmctl.JobID]bool // jobs that have holds
	LeftToSlurm  bool                    // Slurm switches nodes on: nodes that are off count as free

	ByID   map[slurmctl.JobID]*slurmctl.Job `codec:"-"`
	Marks  map[slurmctl.JobID]*msg.Mark
	Index  map[string]int `codec:"-"` // of a node's name in nodes
	Layout int            // number of the node list; another number means other nodes
	InUse  msg.Set        // nodes that some job holds, including completing ones
	Asked  msg.Set        // nodes that the sidecar had Slurm ask, and that have not answered; they count as responding
	Derived
}

// Derived holds what follows from a snapshot, worked out once at the first question. Owner: slurm.
type Derived struct {
	Fabric       []int                // per node, its fabric, see slurmctl.Topology.Fabrics; -1: none; nil: jobs may have any nodes together
	Switches     *planner.Switches    `codec:"-"` // of all nodes, see slurm.SwitchesOf
	Eligibles    map[Wish]Eligibility `codec:"-"`
	LicensesUsed map[string]int       `codec:"-"` // see slurm.LicensesInUse
	Watts        []config.Watts       `codec:"-"` // per node, see slurm.WattsOf
	Idle         *msg.Idle            `codec:"-"` // see slurm.IdleOf
}

// Has reports whether Slurm has a node of that name.
func (s *Snapshot) Has(name string) bool {
	_, has := s.Index[name]
	return has
}

// OwnRecords copies the records of jobs before they change, as an attempt may be reading the original ones.
func (s *Snapshot) OwnRecords() {
	s.Jobs = slices.Clone(s.Jobs)
	s.index()
}

// Copied returns a copy of a snapshot, which stores separately what changes.
func (s *Snapshot) Copied() *Snapshot {
	n := *s
	n.Reservations, n.InUse, n.Eligibles = maps.Clone(s.Reservations), maps.Clone(s.InUse), maps.Clone(s.Eligibles)
	return &n
}
