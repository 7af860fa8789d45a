package strategy

import (
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// encodeAlternatives writes the columns of moldable jobs.
func encodeAlternatives(m *pb.PlanRequest, r Request) {
	m.JobAlternatives = make([]uint32, len(r.Pinned)+len(r.Jobs))
	m.JobPrefers = make([]uint32, len(m.JobAlternatives))
	for i, j := range r.Jobs {
		row := len(r.Pinned) + i
		m.JobAlternatives[row], m.JobPrefers[row] = uint32(len(j.Alternatives)), uint32(j.By)
		for _, a := range j.Alternatives {
			m.AlternativeSteps = append(m.AlternativeSteps, uint32(len(a)))
			for _, s := range a {
				m.AlternativeDuration = append(m.AlternativeDuration, s.Duration)
				m.AlternativeNodes = append(m.AlternativeNodes, uint32(s.Nodes))
			}
		}
	}
}

// decodeAlternatives reads the columns of moldable jobs.
func decodeAlternatives(m *pb.PlanRequest, r *Request, pinned []bool) error {
	if len(m.JobAlternatives) == 0 {
		return nil
	}
	if len(m.JobAlternatives) != len(pinned) || len(m.JobPrefers) != len(pinned) || len(m.AlternativeDuration) != len(m.AlternativeNodes) {
		return errors.New("the columns of the alternatives differ in length")
	}
	counts, at, job := m.AlternativeSteps, 0, 0
	for row, isPinned := range pinned {
		n := int(m.JobAlternatives[row])
		if isPinned {
			if n > 0 {
				return fmt.Errorf("pinned job %d has alternatives", row+1)
			}
			continue
		}
		j := &r.Jobs[job]
		job++
		if j.By = planner.Preference(m.JobPrefers[row]); n > len(counts) {
			return errors.New("there are fewer alternatives than the jobs have")
		}
		for _, count := range counts[:n] {
			if int(count) > len(m.AlternativeDuration)-at {
				return errors.New("there are fewer steps than the alternatives have")
			}
			a := make(planner.Profile, count)
			for k := range a {
				a[k] = planner.Step{Duration: m.AlternativeDuration[at], Nodes: int(m.AlternativeNodes[at])}
				at++
			}
			j.Alternatives = append(j.Alternatives, a)
		}
		counts = counts[n:]
	}
	if len(counts) > 0 || at < len(m.AlternativeDuration) {
		return errors.New("there are more alternatives than the jobs have")
	}
	return nil
}
