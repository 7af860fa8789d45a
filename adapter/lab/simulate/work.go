package simulate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// ideal is n times as fast on n nodes.
const ideal = malleable.Amdahl(1)

// speedup returns how fast a malleable job is.
func (s *Submission) speedup() malleable.Speedup {
	if s.Speedup == nil {
		return ideal
	}
	return s.Speedup
}

// least returns a malleable job as promised: on its fewest nodes, for as long as its work takes
// there.
func (s *Submission) least() planner.Profile {
	up, rigid := s.speedup(), s.Profile[0]
	seconds := math.Ceil(float64(rigid.Duration)*up.At(rigid.Nodes)/up.At(s.Least) - 1e-6)
	return planner.Profile{{Duration: int64(min(seconds, planner.MaxDuration+1)), Nodes: s.Least}}
}

// neverMalleable returns why a malleable job cannot run; "" if it can.
func (t *trial) neverMalleable(s *Submission, size int) string {
	if s.Least > size {
		return fmt.Sprintf("it asks for at least %d nodes, the cluster has %d", s.Least, size)
	}
	p := s.least()
	asks := request.Request{Profile: p, Malleable: &request.Malleable{Max: []int{s.Most}}, Drive: t.Config.Drive}
	if err := cmp.Or(p.Validate(), asks.CheckMalleable()); err != nil {
		return err.Error()
	}
	return ""
}
