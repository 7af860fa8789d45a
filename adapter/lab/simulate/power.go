package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// soonestUp is how long a node takes at least to go off and to come up again in storms.
const soonestUp = 50 * time.Second

// checkPower checks what switches nodes off: no job has such a node, and none is planned to have it before it could be up
// again. With power.mode: off or advise, nothing does.
func (h *history) checkPower(effects []msg.Effect) {
	for _, e := range effects {
		t, is := e.(msg.Task)
		if !is {
			continue
		}
		off, is := t.Command.(msg.PowerDown)
		if !is {
			continue
		}
		if mode := h.s.Config.Power.Mode; mode != "act" {
			h.blame(fmt.Errorf("nodes go off with power.mode: %s", mode))
		}
		for _, b := range h.s.core.Written(h.checks.text) {
			h.checkGoesOff(b, off.Nodes)
		}
	}
	h.s.Cluster.Powers(func(_ int, p slurmctl.Power, busy bool) {
		if busy && (p == slurmctl.PowerDown || p == slurmctl.PowerDrain) {
			h.blame(errors.New("a node goes off that a job has"))
		}
	})
}

// checkGoesOff checks that a job is not planned soon on nodes that go off.
func (h *history) checkGoesOff(b msg.BookedJob, off []string) {
	now := h.s.Cluster.Now()
	r, known := h.s.Cluster.Record(slurmctl.JobID(b.Job.SlurmID))
	ended := known && r.Ended() // and the sidecar asks how
	for _, step := range b.Plan {
		if over := step.Step < b.Job.Step || step.Step == b.Job.Step && (b.Job.State == row.Waiting || ended); over { // perhaps early
			continue
		}
		nodes, _ := slurmctl.ExpandNodes(step.NodeList)
		if i := slices.IndexFunc(off, func(n string) bool { return slices.Contains(nodes, n) }); i >= 0 && step.Start.Before(now.Add(soonestUp)) && step.End.After(now.Add(time.Second)) {
			h.blame(fmt.Errorf("%s goes off, and job %d is planned there from %s on", off[i], b.Job.SlurmID, step.Start))
		}
	}
}
