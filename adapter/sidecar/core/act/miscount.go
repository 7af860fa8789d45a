package act

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm counts the exclusive jobs on each node, and forgets to count down when a job is made smaller. From then on, it
// refuses the node after each exclusive job that is killed there, until the node answers a ping
// (docs/slurm-bugs.md, 5). So the sidecar has Slurm ask such a node as soon as it is idle again.

// miscounted notes the nodes that left a job without the end of the Slurm job that had them.
func miscounted(c *state.Core, j *state.Job, do msg.Shrink) {
	for _, p := range do.Held {
		if left := msg.Common(p.Nodes, do.Surplus); j.Record.Exclusive && len(left) < len(p.Nodes) {
			for _, n := range left {
				m := c.Shrunk[n]
				m.Used = false
				c.Shrunk[n] = m
			}
		}
	}
}

// startPatience is how long Slurm may leave a released job waiting for idle nodes until their counts are doubted. The
// sidecar may have been restarted since it shrank a job there.
const startPatience = 5 * time.Second

// doubtCounts has the nodes contacted on which Slurm does not start a job. See ContactIdle.
func doubtCounts(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) {
	if len(j.Plan) == 0 || slurmctl.KindOf(j.Record.Reason) != slurmctl.NodesReason || !slurm.Free(s, j.Plan[0].Nodes) || !c.Passed(now, j.Touched.Add(startPatience)) {
		return
	}
	for _, n := range j.Plan[0].Nodes {
		if c.Shrunk[n].Asked.Before(j.Touched) {
			slurm.Used(c, n)
		}
	}
}

// ContactIdle contacts the idle nodes on which a job has ended since a job was shrunk from them.
func ContactIdle(c *state.Core, s *state.Snapshot) {
	idle := idleAfterUse(c, s)
	if len(idle) == 0 || c.ReadsSlowly() || !c.Reached(s.Taken, c.ContactAgain) || !c.Work.Room() ||
		!c.Ask(nil, "contact", state.KindContact, msg.Task{Command: msg.Contact{Nodes: idle}}, state.Args{}) {
		return
	}
	for _, n := range idle {
		c.Shrunk[n] = state.Miscount{Asked: c.Now, Told: c.Shrunk[n].Told}
	}
}

// idleAfterUse notes which nodes with a wrong count are in use, and returns those that no longer are.
func idleAfterUse(c *state.Core, s *state.Snapshot) (idle []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Shrunk)) {
		i, known := s.Index[name]
		if !known {
			continue
		}
		n, m := s.Nodes[i], c.Shrunk[name]
		switch {
		case s.InUse[name] || n.CPUsAlloc > 0:
			slurm.Used(c, name)
		case m.Used && n.Awake() && strings.Trim(n.Flags, "-") == "" && (n.State == "idle" || n.State == "reserved"):
			idle = append(idle, name)
		}
	}
	return idle
}

// answered reports whether nodes that were contacted have answered. Until then, a job waits for them.
func answered(c *state.Core, s *state.Snapshot, j *state.Job, nodes []string) bool {
	if slurm.Answered(c, s, nodes) {
		return true
	}
	j.WaitsFor(state.Saying(state.WhyNodesAwaited, hold.Awaited(s, nodes, "waits for nodes that Slurm contacts")))
	awaitNodes(c, c.Now.Unix(), true)
	return false
}

// SettleContact is called when nodes were contacted, or when that failed.
func SettleContact(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	nodes := state.CommandOf[msg.Contact](p).Nodes
	for _, n := range nodes {
		slurm.Told(c, n)
	}
	c.ContactAgain = time.Time{}
	if o.Err != nil {
		c.ContactAgain = c.Now.Add(healPause)
		c.Log.WithError(o.Err).WithField("nodes", slurmctl.CompressNodes(nodes)).
			Warn("cannot have idle nodes answer Slurm; for up to a third of SlurmdTimeout, it may start nothing on them")
	}
}
