package strategy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// maxSetText bounds the names of one set, in bytes.
const maxSetText = 4096

// encodeSets writes the sets of nodes. A set whose names are not for the wire is left out: its nodes are in none.
func encodeSets(m *pb.PlanRequest, sets []planner.NodeSet) {
	for _, s := range sets {
		if text := strings.Join(append(s.Switches[:len(s.Switches):len(s.Switches)], s.Features...), ""); len(text) > maxSetText || !utf8.ValidString(text) {
			continue
		}
		m.NodeSets = append(m.NodeSets, &pb.NodeSet{Nodes: uint32(s.Nodes), Free: uint32(s.Free), Switches: s.Switches, Weight: uint32(s.Weight), Features: s.Features, Power: pb.Power(s.Power), Ready: s.Ready})
	}
}

// decodeSets reads the sets of nodes.
func decodeSets(m *pb.PlanRequest, r *Request) error {
	for i, s := range m.NodeSets {
		if s == nil {
			return fmt.Errorf("set %d of the nodes is empty", i+1)
		}
		r.Sets = append(r.Sets, planner.NodeSet{Nodes: int(s.Nodes), Free: int(s.Free), Switches: s.Switches, Weight: int(s.Weight), Features: s.Features, Power: planner.Power(s.Power), Ready: s.Ready})
	}
	return planner.CheckNodeSets(r.Sets, r.Nodes)
}
