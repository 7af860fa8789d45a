package planner

import "fmt"

// NodeSet holds how many nodes are alike in what tells one node from another.
type NodeSet struct {
	Nodes    int
	Free     int      // of these, the nodes that no job uses now
	Switches []string // from the leaf switch or base block upwards; nil: none is known
	Weight   int      // Slurm takes nodes of less weight first
	Features []string // as Slurm shows them
	Power    Power
	Ready    int64 // of nodes that are not up: when the last of them could run a job; they count as busy until then
}

// Power is the power state of a node.
type Power int

// The power states.
const (
	PowerOn     Power = iota // up, or nothing is known
	PowerUp                  // powering up
	PoweredDown              // down; Slurm powers it up for a job
	PowerDown                // powering down
	PowerDrain               // will be powered down once no job uses it
)

// Bounds on node sets.
const (
	MaxNodeSets = 1024 // of a pool
	MaxSetNames = 64   // switches and features of a set
)

// CheckNodeSets reports what is wrong with the sets of a cluster of that many nodes. A node may be in no set.
func CheckNodeSets(sets []NodeSet, nodes int) error {
	if len(sets) > MaxNodeSets {
		return fmt.Errorf("%d sets of nodes; want %d or less", len(sets), MaxNodeSets)
	}
	for i, s := range sets {
		if s.Nodes < 1 || s.Nodes > nodes || s.Free < 0 || s.Free > s.Nodes || s.Power < PowerOn || s.Power > PowerDrain || len(s.Switches)+len(s.Features) > MaxSetNames {
			return fmt.Errorf("set %d of the nodes is invalid: %d nodes, %d free, power %d, %d switches, %d features", i+1, s.Nodes, s.Free, s.Power, len(s.Switches), len(s.Features))
		}
		nodes -= s.Nodes
	}
	return nil
}
