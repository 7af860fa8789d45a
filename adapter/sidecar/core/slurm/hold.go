package slurm

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Placed describes a waiting job with the place that it would get.
type Placed struct {
	Candidate
	Stock bool  // it is a stock job, or the first task of one
	Start int64 // Unix second; planner.Forever if none
	At    []int // nodes
}

// Keeps records the latest place of a job.
func Keeps(h *state.HeldUp, s *state.Snapshot, p Placed) {
	h.Nodes, h.From, h.End = nil, p.Start, p.Start+Seconds(p.Record.TimeLimit)
	for _, n := range p.At {
		h.Nodes = append(h.Nodes, s.Nodes[n].Name)
	}
}
