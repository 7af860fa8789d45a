package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// An application may lack what it asked for in three cases, which no sidecar can avoid. First, a
// lost database has taken the record of past steps with it (over). Second, slurmctld has forgotten
// a change with its marker in a crash, and the database is also lost, or the job is just starting
// (before). Third, nodes failed, or slurmctld forgot them in a crash, after a step had begun and
// before the application knew (failed); regained counts nodes that slurmctld forgot were given
// back.

// follow learns from the core's effects how far the sidecar knows applications' steps, and when
// they begin.
func (h *history) follow(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.AddJob: // adopted again if it was changed: from its marker, which says of some steps only that they are over
			if a := h.appOf(e.Job.SlurmID); a != nil {
				a.adopted(e.Job.Profile, e.Job.Changes, h.crashed)
			}
		case core.AddEvent:
			if a := h.appOf(h.s.Database.jobs[e.Job].Job.SlurmID); a != nil && e.Kind == "step begun" {
				a.failed, a.regained = 0, 0
			}
		}
	}
}

// appOf returns the application of a job, or nil.
func (h *history) appOf(id uint32) *App {
	for name, a := range h.apps {
		if own, known := h.jobOf(name); known && uint32(own) == id {
			return a
		}
	}
	return nil
}

// fails counts the nodes that applications lose with a failed node: a companion on it ends as a
// whole, and a base job on it ends without any message.
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

// adopted learns what is known about a job that was adopted again.
func (a *App) adopted(p planner.Profile, changes []row.Change, crashed bool) {
	if len(changes) > 0 {
		a.over = max(a.over, changes[0].Step-1)
	}
	is := func(asked planner.Profile) bool {
		return len(p) == len(asked) && slices.Equal(p[min(a.over, len(p)):], asked[min(a.over, len(p)):])
	}
	if !crashed || is(a.Profile) {
		return
	}
	for i, r := range slices.Backward(a.before) {
		if is(r.Profile) { // what it asked for since is forgotten
			a.Profile, a.Malleable, a.before = r.Profile, r.Malleable, a.before[:i]
			return
		}
	}
}

// has returns how many nodes an application has in Slurm.
func (h *history) has(name string) (nodes int) {
	own := fmt.Sprintf("evo_%d_", h.jobs[name])
	for _, r := range h.s.Cluster.Queue() {
		if r.State == slurmctl.Running && (r.ID == h.jobs[name] || strings.HasPrefix(r.Name, own) && !h.tricks(r)) {
			nodes += len(r.NodeList)
		}
	}
	return nodes
}

// crash is a crash of slurmctld.
func (h *history) crash() {
	h.lossy, h.crashed, h.had = true, true, map[string]int{}
	for _, name := range h.order {
		h.had[name] = h.has(name)
	}
	h.s.Cluster.StopController(true)
}

// boot starts slurmctld: it may have forgotten which nodes jobs were given or have given back.
func (h *history) boot() {
	h.s.Cluster.StartController()
	for name, had := range h.had {
		h.apps[name].failed += max(had-h.has(name), 0)
		h.apps[name].regained += max(h.has(name)-had, 0)
		h.apps[name].booted = h.s.Cluster.Elapsed()
	}
	h.had = nil
	h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+10*time.Minute)
}

// lose deletes the sidecar's database. What its event log excuses stays excused.
func (h *history) lose() {
	h.s.Stop()
	for _, a := range h.order {
		if id, known := h.jobOf(a); known && h.excused(id) {
			h.told[id] = true
		}
	}
	h.s.Database = NewDatabase()
}

// beganAsBefore reports whether a job has begun on the nodes requested before a change. slurmctld
// forgot the change in a crash and started the job when it was back, before the sidecar could write
// the change again.
func (a *App) beganAsBefore(b Begun) bool {
	return b.Step == 1 && a.booted > 0 && b.At >= a.booted && b.At-a.booted < time.Minute &&
		slices.ContainsFunc(a.before, func(r request.Request) bool { return r.Profile[0].Nodes == b.Nodes })
}

// standsIn reports whether a step has more nodes than requested because the original request is
// unknown. The step was over when a change was written into the marker; the job was adopted again
// from the marker, requeued, and began the step again. It never has fewer nodes, nor more than any
// of the past steps.
func (a *App) standsIn(b Begun) bool {
	return a.first > 0 && b.Step <= a.over && b.Nodes >= a.Profile[b.Step-1].Nodes && b.Nodes <= a.Profile[:min(a.over, len(a.Profile))].Peak()
}

// withFailed reports whether an application had what it may have in a step, apart from nodes that
// have failed since or that it has regained.
func (a *App) withFailed(b Begun) bool {
	for n := b.Nodes - b.Regained; n <= b.Nodes+b.Failed; n++ {
		if a.within(b.Step, n) {
			return true
		}
	}
	return false
}
