package slurmsim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var stepMgrModel = slurmsim.Options{Accounting: true, StepMgr: true}

// stepMgrCluster returns the real counterpart; a Slurm before 24.05 has no step managers and ignores the
// parameter.
func stepMgrCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{Accounting: true, PrologFlags: "Contain", ExtraConf: "SlurmctldParameters=enable_stepmgr"})
}

var stepMgrFeatures = []feature{
	{"steps keep to the nodes that a shrink has left, except those of a step manager", func(w *world) {
		cfg, err := w.Config(w.ctx)
		w.must(err)
		_, managed := slurmctl.StepMgr(cfg)
		id := w.start(slurmsim.Job{Nodes: 3})
		j := w.until(id, slurmctl.Running)
		r, err := w.Request(w.ctx, id, cfg)
		w.must(err)
		if r.StepMgr != managed {
			w.Errorf("Slurm %s with %q: the job has a step manager: %v, want %v", cfg.Version, cfg.Values["SlurmctldParameters"], r.StepMgr, managed)
		}
		kept, gone := j.NodeList[0], j.NodeList[2]
		w.must(w.Shrink(w.ctx, id, []string{kept}))
		w.sleep(2 * time.Second) // see Revoked; 24.11's step manager may keep a step that slurmd refuses
		if managed {
			w.eventually("a step on "+gone+", which was given back", func() error { return w.step(id, gone) })
		} else if w.step(id, gone) == nil {
			w.Errorf("a step runs on %s, which was given back", gone)
		}
		w.must(w.step(id, kept))
	}},
	{"no step of a companion runs on its nodes once it has ended", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 1})
		w.until(base, slurmctl.Running)
		k, err := w.Allocate(w.ctx, slurmctl.AllocateRequest{User: &w.user, Nodes: 2, Name: "companion", Exclusive: true})
		w.must(err)
		w.eventually("the companion, ready", func() error {
			jobs, err := w.Glance(w.ctx, k.ID)
			if err == nil && (len(jobs) != 1 || jobs[0].InProlog()) {
				err = fmt.Errorf("it is %+v", jobs)
			}
			return err
		})
		w.must(w.step(k.ID, k.NodeList[1]))
		w.must(w.Cancel(w.ctx, k.ID))
		for _, id := range []slurmctl.JobID{k.ID, base} {
			if err := w.step(id, k.NodeList[1]); err == nil {
				w.Errorf("job %d runs a step on %s", id, k.NodeList[1])
			}
		}
		if jobs, err := w.Jobs(w.ctx); err != nil || slices.ContainsFunc(jobs, func(j slurmctl.Job) bool { return j.ID == k.ID && j.State == slurmctl.Running }) {
			w.Errorf("the companion still runs: %v", err)
		}
	}},
}
