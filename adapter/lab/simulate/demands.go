package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// demands are the nodes that best-effort jobs are to leave, and by when.
type demands struct {
	of   map[slurmctl.JobID]map[string]time.Duration
	life int // of the sidecar that made them
}

// checkBestEffort checks that best-effort jobs delay nobody: none starts on nodes that others have, or get within its grace, and
// demanded nodes are left by the demand's deadline, a poll, and a cycle. As in checkDelay, some time after a fault does not count,
// nor does a demand of a sidecar that has ended since.
func (h *checks) checkBestEffort(effects []msg.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Task:
			if start, is := e.Command.(msg.Start); is {
				h.checkParked(start.Job)
			}
		case msg.AddEvent:
			j := h.s.Database.Jobs[e.Job].Job
			if !isBestEffort(j) {
				continue
			}
			switch id := slurmctl.JobID(j.SlurmID); e.Kind {
			case "demanded":
				h.demanded(id, e.Detail.(map[string]any))
			case "offer withdrawn", "ended":
				delete(h.demands.of, id)
			}
		}
	}
	h.checkDemands()
}

// demanded notes a demand. Nodes that the job was to leave before keep their deadline.
func (h *checks) demanded(id slurmctl.JobID, detail map[string]any) {
	if d := &h.demands; d.of == nil || d.life != h.s.Life {
		d.of, d.life = map[slurmctl.JobID]map[string]time.Duration{}, h.s.Life
	}
	nodes, err := slurmctl.ExpandNodes(detail["list"].(string))
	h.blame(err)
	seconds := detail["seconds"].(int64)
	if h.demands.of[id] == nil {
		h.demands.of[id] = map[string]time.Duration{}
	}
	for _, name := range nodes {
		if _, before := h.demands.of[id][name]; !before {
			h.demands.of[id][name] = h.s.Cluster.Elapsed() + time.Duration(seconds)*time.Second
		}
	}
}

// isBestEffort reports whether not even a job's smallest size is promised.
func isBestEffort(j row.Job) bool { return j.Malleable != nil && j.Malleable.BestEffort != "" }

// checkParked checks the nodes on which a best-effort job is about to start. Slurm may have started it at its StartTime already.
func (h *checks) checkParked(id slurmctl.JobID) {
	written := h.s.core.Written(h.text)
	i := slices.IndexFunc(written, func(b msg.BookedJob) bool { return b.Job.SlurmID == uint32(id) })
	if i < 0 || !isBestEffort(written[i].Job) || len(written[i].Plan) == 0 || h.had != nil || h.s.Cluster.Elapsed() < h.calmFrom {
		return
	}
	nodes, err := slurmctl.ExpandNodes(written[i].Plan[0].NodeList)
	h.blame(err)
	for _, r := range h.s.Cluster.Queue() {
		if r.ID != id && r.State == slurmctl.Running && len(msg.Common(r.NodeList, nodes)) > 0 {
			h.blame(fmt.Errorf("best-effort job %d starts on %s, and job %d (%s) has %s", id, slurmctl.CompressNodes(nodes), r.ID, r.Name, slurmctl.CompressNodes(r.NodeList)))
		}
	}
	soon := h.s.Cluster.Now().Add(h.s.Config.Malleable.GraceOf(written[i].Job.Malleable.Grace))
	for _, b := range written {
		if b.Job.State != row.Ended && !isBestEffort(b.Job) {
			h.checkPlanned(id, nodes, b, soon)
		}
	}
}

// checkPlanned checks that another job is not planned soon on nodes on which a best-effort job is about to start. If a step of that
// job has ended, it keeps none of the step's nodes that Slurm shows as idle: those of a chain go at once.
func (h *checks) checkPlanned(id slurmctl.JobID, nodes []string, b msg.BookedJob, soon time.Time) {
	first := b.Job.Step
	if b.Job.State == row.Waiting {
		first++
	}
	for _, step := range b.Plan {
		others, _ := slurmctl.ExpandNodes(step.NodeList)
		if step.Step >= first && step.Start.Before(soon) && len(msg.Common(others, nodes)) > 0 {
			h.blame(fmt.Errorf("best-effort job %d starts on %s, and job %d is planned on %s from %s on", id, slurmctl.CompressNodes(nodes), b.Job.SlurmID, step.NodeList, stamp(step.Start.Sub(h.s.Base))))
		}
	}
}

// checkDemands checks that demanded nodes are left in time.
func (h *checks) checkDemands() {
	now, beyond := h.s.Cluster.Elapsed(), h.s.Config.PollInterval+aCycle+slowSteps*h.slow.most
	for id, nodes := range h.demands.of {
		has := msg.Set{}
		for _, r := range h.s.Cluster.Queue() {
			if r.State == slurmctl.Running && (r.ID == id || strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_", id)) && !h.tricks(r)) {
				has.Add(r.NodeList)
			}
		}
		for name, until := range nodes {
			switch {
			case !has[name] || h.demands.life != h.s.Life:
				delete(nodes, name)
			case h.had != nil || now < h.calmFrom:
				nodes[name] = max(until, h.calmFrom, now)
			case now > until+beyond:
				h.blame(fmt.Errorf("best-effort job %d still has %s, which it was to leave by %s", id, name, stamp(until)))
			}
		}
	}
}
