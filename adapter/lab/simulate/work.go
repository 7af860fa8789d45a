package simulate

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// work is the work of a malleable application: the more nodes it has, the sooner it ends.
type work struct {
	total   float64 // seconds that it takes at the speed of one node
	speedup malleable.Speedup
	nodes   int
	changed func() // wakes it when it has other nodes
}

// on sets the number of nodes that it works on from now on.
func (w *work) on(nodes int) {
	if w == nil || w.nodes == nodes {
		return
	}
	w.nodes = nodes
	if w.changed != nil {
		w.changed()
	}
}

// work goes on until all is done.
func (s *Sidecar) work(p *slurmsim.Process, w *work, nodes int) {
	w.nodes = nodes
	for left := w.total; left > 0; {
		speed, since := w.speedup.At(w.nodes), s.Cluster.Elapsed()
		lasts := time.Duration(math.Ceil(left / speed * 1e9))
		s.appoint(lasts)
		p.Await(func(wake func()) {
			w.changed = wake
			s.Cluster.After(lasts, wake)
		})
		left -= (s.Cluster.Elapsed() - since).Seconds() * speed
	}
	w.changed = nil
}

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

// bend makes the application of a malleable job, on a cluster of so many nodes. It takes every offer.
func (a *App) bend(s *Submission, size int) {
	up, rigid := s.speedup(), s.Profile[0]
	a.Profile, a.Says = s.least(), []Says{{Nodes: -1}}
	a.Malleable = &request.Malleable{Max: []int{min(s.Most, size)}}
	if s.Speedup != nil {
		a.Malleable.Speedup = fmt.Sprint(s.Speedup)
	}
	a.work = &work{total: float64(rigid.Duration) * up.At(rigid.Nodes), speedup: up}
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
