package simulate

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// An application may lack what it asked for in three cases, which no sidecar can avoid. First, a
// lost database has taken the record of past steps with it (over). Second, slurmctld has forgotten
// a change with its marker in a crash, and the database is also lost, or the job is just starting
// (before). Third, nodes failed, or slurmctld forgot them in a crash, after a step had begun and
// before the application knew (failed); regained counts nodes that slurmctld forgot were given
// back.

// follow learns from the core's effects how far the sidecar knows applications' steps, and when
// they begin.
func (h *history) follow(effects []msg.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case msg.AddJob: // adopted again if it was changed: from its marker, which says of some steps only that they are over
			if a := h.appOf(e.Job.SlurmID); a != nil {
				a.adopted(e.Job.Profile, e.Job.Changes, h.crashed)
			}
		case msg.AddEvent:
			if a := h.appOf(h.s.Database.Jobs[e.Job].Job.SlurmID); a != nil && e.Kind == "step begun" {
				a.Failed, a.Regained = 0, 0
			}
		}
	}
}

// crash is a crash of slurmctld.
func (h *history) crash() {
	h.hosts.mishap(time.Minute)
	h.lossy, h.crashed, h.had = true, true, map[string]int{}
	for _, name := range h.order {
		h.had[name] = h.has(name)
	}
	h.s.Cluster.StopController(true)
}

// boot starts slurmctld: it may have forgotten which nodes jobs were given or have given back.
func (h *history) boot() {
	h.hosts.mishap(time.Minute)
	h.s.Cluster.StartController()
	for name, had := range h.had {
		h.apps[name].Failed += max(had-h.has(name), 0)
		h.apps[name].Regained += max(h.has(name)-had, 0)
		h.apps[name].Booted = h.s.Cluster.Elapsed()
	}
	h.had = nil
	h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+10*time.Minute)
}

// lose deletes the sidecar's database. What its event log excuses stays excused.
func (h *history) lose() {
	h.s.Stop()
	h.keepExcuses()
	h.s.Database = NewDatabase()
}

// takeover is the time within which another sidecar acts.
const takeover = 30 * time.Second

// takeOver ends the sidecar; the next one, on another host, has the last copy of the database, if any.
func (h *history) takeOver() {
	shipped := h.shipped
	h.lose()
	h.s.Config.Takeover, h.s.Config.API = takeover, "host1,host2"
	if shipped != nil {
		h.s.Database = shipped.clone()
	}
}
