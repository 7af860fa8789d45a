package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// soonestUp is how long a node takes at least to go off and to come up again in storms.
const soonestUp = 50 * time.Second

const (
	// powerCycle is how often slurmctld checks the nodes' power.
	powerCycle = 10 * time.Second
	// powerLead is how much earlier than necessary the sidecar switches nodes on.
	powerLead = 15 * time.Second
)

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

// awakeIn is how long before its use the sidecar must know that a node is held for a growth: by then, it may have
// begun to go off. It goes off, is seen to be off, and comes up, with what SwitchNodes allows for polls.
func (h *history) awakeIn() time.Duration {
	p := h.s.Cluster.PowerSaving()
	return p.SuspendTimeout + p.ResumeTimeout + 2*powerCycle + powerLead + 2*h.s.Config.PollInterval + aCycle
}

// growing is a node that a job's next growth is planned on, and held.
type growing struct {
	job  int64 // row
	step int
	node string
}

// awaits says when the growth is planned, when its node must be up, and since when the sidecar knows that.
type awaits struct {
	start, due time.Time
	since      time.Duration
}

// checkAwake checks that no growth is late because nodes are off: when a growth is due, all nodes that are held for it are
// on, if the sidecar could know early enough that it must switch them on. It could not:
//   - before the node was held for the growth, or while the growth was planned later;
//   - while it did not run, and for some time after a fault, a start, or a change of the clock (calmFrom);
//   - while slurmctld was away, or slow to answer: a command may come late;
//   - while the node was down, drained, or did not come up although it was powered up (SetBoots).
//
// It cannot do anything as an operator, whom Slurm denies to switch nodes.
func (h *history) checkAwake() {
	p, c := h.s.Cluster.PowerSaving(), h.s.Cluster
	if p.SuspendTime == 0 || h.s.Operator || h.hosts != nil || h.had != nil || !h.s.Running() || c.Elapsed() < h.calmFrom || h.slow.most > 0 {
		h.awaited = nil
		return
	}
	held := map[string][]string{} // by the hold's prefix
	for _, r := range c.Reservations {
		if last := strings.LastIndex(r.Name, "_"); last > 0 && strings.HasPrefix(r.Name, "evo_") {
			held[r.Name[:last]] = append(held[r.Name[:last]], r.Nodes...)
		}
	}
	now, before := h.s.now().Add(h.s.Skew), h.awaited
	h.awaited = map[growing]awaits{}
	for _, b := range h.s.core.Written(h.checks.text) {
		for _, step := range b.Plan {
			if step.Step <= max(b.Job.Step, 1) {
				continue
			}
			nodes, _ := slurmctl.ExpandNodes(step.NodeList)
			for _, node := range msg.Common(nodes, held[fmt.Sprintf("evo_%d_%d", b.Job.SlurmID, step.Step)]) {
				h.awaitNode(growing{b.Job.ID, step.Step, node}, awaits{step.Start, step.Start, c.Elapsed()}, before, now)
			}
		}
	}
}

// awaitNode checks a node of a growth. The plan counts a node that is off as free only after a boot, so a growth whose node
// comes up too late is planned later and later. So it does not count that a growth is put off, by about a boot, when its node must
// have been switched on already: by then, less than Up and half of PowerLead is left.
func (h *history) awaitNode(g growing, a awaits, before map[growing]awaits, now time.Time) {
	saving := h.s.Cluster.PowerSaving()
	power, well := h.s.Cluster.PowerOf(g.node)
	if was, known := before[g]; known && well && !a.start.Before(was.start) {
		a.since = was.since
		if left := was.due.Sub(now); left <= saving.ResumeTimeout+powerCycle+powerLead/2 && a.start.Sub(now) <= h.awakeIn() {
			a.due = was.due
		}
	}
	if !now.Before(a.due) {
		if known := h.s.Cluster.Elapsed() - a.since; power != slurmctl.PowerOn && known > h.awakeIn() {
			h.blame(fmt.Errorf("step %d of job %d is due, and its node %s is not on: it was held and planned for %v", g.step, h.s.Database.Jobs[g.job].Job.SlurmID, g.node, known.Round(time.Second)))
			a.since = h.s.Cluster.Elapsed() // once
		}
		a.due = a.start
	}
	h.awaited[g] = a
}
