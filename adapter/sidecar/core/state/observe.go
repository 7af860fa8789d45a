package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Snapshot holds the cluster as one observation shows it.
type Snapshot struct {
	Taken        time.Time // before the first command: nothing in it is older
	NodesTaken   time.Time // when the last later poll of the nodes only was made
	Jobs         []slurmctl.Job
	Nodes        []slurmctl.Node
	Partitions   map[string]slurmctl.Partition
	Reservations map[string]slurmctl.Reservation
	Holders      map[slurmctl.JobID]bool // nil: see heldFor
	LeftToSlurm  bool                    // Slurm switches nodes on: nodes that are off count as free

	ByID   map[slurmctl.JobID]*slurmctl.Job `codec:"-"`
	Marks  map[slurmctl.JobID]*msg.Mark
	Index  map[string]int `codec:"-"` // of a node's name in nodes
	Layout int            // number of the node list; another number means other nodes
	InUse  msg.Set        // nodes that some job holds, including completing ones
	Fabric []int          // per node, its fabric, see slurmctl.Topology.Fabrics; -1: none; nil: jobs may have any nodes together
	Asked  msg.Set        // nodes that the sidecar had Slurm ask, and that have not answered; they count as responding

	Switches  *planner.Switches    `codec:"-"` // of all nodes; made on demand, see slurm.SwitchesOf
	Eligibles map[Wish]Eligibility `codec:"-"` // filled on demand

	LicensesUsed map[string]int `codec:"-"` // made on demand, see slurm.LicensesInUse
}

// Has reports whether Slurm has a node of that name.
func (s *Snapshot) Has(name string) bool {
	_, has := s.Index[name]
	return has
}
