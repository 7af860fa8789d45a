package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/core"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Two things are excused where an application does not have what it asked for, since nobody could do better:
// what a lost database has taken with it of steps that were over (over), and nodes that failed after a step
// had begun and before the application was told of it (failed).

// follow takes over from what the core does how far the sidecar knows applications' steps, and when they begin.
func (h *history) follow(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.AddJob: // anew, where it was changed: by its marker, which says of some steps no more than that they are over
			if a := h.appOf(e.Job.SlurmID); a != nil && len(e.Job.Changes) > 0 {
				a.over = max(a.over, e.Job.Changes[0].Step-1)
			}
		case core.AddEvent:
			if a := h.appOf(h.s.Database.jobs[e.Job].Job.SlurmID); a != nil && e.Kind == "step begun" {
				a.failed = 0
			}
		}
	}
}

// appOf is the application of a job; nil: it has none.
func (h *history) appOf(id uint32) *App {
	for name, a := range h.apps {
		if own, known := h.jobOf(name); known && uint32(own) == id {
			return a
		}
	}
	return nil
}

// fails counts the nodes that applications lose with one that fails: a companion on it ends as a whole. Of a base
// job on it nothing is left to be told.
func (h *history) fails(node string) {
	for _, r := range h.s.Cluster.Queue() {
		if r.State != slurmctl.Running || !slices.Contains(r.NodeList, node) || h.tricks(r) {
			continue
		}
		for name, a := range h.apps {
			if strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_", h.jobs[name])) {
				a.failed += len(r.NodeList)
			}
		}
	}
}

// standsIn reports whether a step has more nodes than asked for since nobody can know what it was: it was over
// as a change was written into the marker, from which the job was adopted anew, and was begun once more, after it
// was requeued. It never has fewer, nor more than any of those that were over.
func (a *App) standsIn(b Begun) bool {
	return a.first > 0 && b.Step <= a.over && b.Nodes >= a.Profile[b.Step-1].Nodes && b.Nodes <= a.Profile[:min(a.over, len(a.Profile))].Peak()
}

// withFailed reports whether an application had what it may have in a step, but for nodes that have failed since.
func (a *App) withFailed(b Begun) bool {
	for n := range b.Failed {
		if a.within(b.Step, b.Nodes+n+1) {
			return true
		}
	}
	return false
}
