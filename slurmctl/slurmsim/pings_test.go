package slurmsim_test

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

var pingFeatures = []feature{
	{"a node that a job gave back is refused after a killed job, until it is contacted", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 2})
		w.until(base, slurmctl.Running)
		w.must(w.Shrink(w.ctx, base, []string{"n1"}))
		for range 5 {
			killed := w.start(slurmsim.Job{Nodes: 1, NodeList: []string{"n2"}})
			w.until(killed, slurmctl.Running)
			w.sleep(2 * time.Second)
			w.must(w.Cancel(w.ctx, killed))
			w.until(killed, slurmctl.Cancelled)
			next := w.start(slurmsim.Job{Nodes: 1, NodeList: []string{"n2"}})
			w.sleep(5 * time.Second)
			if w.job(next).State == slurmctl.Pending {
				for try := 0; try < 5 && w.job(next).State == slurmctl.Pending; try++ { // on a loaded machine the node may answer late
					w.must(w.Contact(w.ctx, []string{"n2"}))
					w.sleep(2 * time.Second)
					w.must(w.KeepUp(w.ctx, []string{"n2"}))
					w.sleep(5 * time.Second)
				}
				w.until(next, slurmctl.Running)
				return
			}
			w.must(w.Cancel(w.ctx, next)) // the node happened to answer late
			w.until(next, slurmctl.Cancelled)
		}
		w.Error("the node is never refused")
	}},
}
