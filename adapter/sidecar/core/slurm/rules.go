package slurm

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// LimitsFor is how long the limits that were read may admit a job. They are read again before a job is
// refused, and to describe a limit that keeps something back.
const LimitsFor = time.Minute

// RulesSince returns the limits as of time t or later, or starts to read them: then a later cycle has them.
// They are nil if they cannot be read.
func RulesSince(c *state.Core, t time.Time) (limits *slurmctl.Limits, known bool) {
	if now := c.Now; t.After(now) {
		t = now // the clock was set
	}
	if c.Rules.Read.After(t) {
		return c.Rules.Limits, true
	}
	if !c.Work.Room() {
		return nil, false
	}
	c.Ask(nil, "limits", state.KindLimits, msg.Task{Command: msg.ReadLimits{c.SlurmConfig}}, state.Args{Begun: c.Now})
	return nil, false
}

// SettleLimits records the users' limits.
func SettleLimits(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if state.Transient(o.Err) {
		return // again, a little later
	}
	read, _ := o.Result.(*slurmctl.Limits)
	if o.Err != nil {
		c.Log.WithError(o.Err).Warn("cannot read limits of accounts, QOS and partitions")
	}
	c.Rules = state.RuleBook{Limits: read, Read: p.Args.Begun, Took: c.Now.Sub(p.Args.Begun)}
	c.NextCycle = c.Now
}

// Never lists what permanently keeps a job out of all of its partitions, for the first one.
func Never(c *state.Core, limits *slurmctl.Limits, r *slurmctl.Job, p planner.Profile, chain bool, asked *slurmctl.JobRequest) (first []string) {
	for _, partition := range strings.Split(r.Partition, ",") {
		never := neverIn(c, limits, r, p, chain, asked, partition)
		if len(never) == 0 {
			return nil
		}
		if first == nil {
			first = never
		}
	}
	return first
}

// neverIn does what never does, for one partition.
func neverIn(c *state.Core, limits *slurmctl.Limits, r *slurmctl.Job, p planner.Profile, chain bool, asked *slurmctl.JobRequest, partition string) []string {
	need := state.NeedOf(p, chain)
	nodes := shownIn(c, partition)
	need.From = c.Site.Host
	if need.CPUs, need.Most = slurmctl.CPUsOf(nodes); len(nodes) == 0 {
		need.CPUs = limits.NodeCPUs(partition)
	}
	if asked == nil {
		return limits.Never(state.Subject(r, partition), need)
	}
	need.GRES, _ = asked.GRESPerNode(p[0].Nodes)
	least, enough := int64(0), math.MaxInt
	if c.Snapshot != nil {
		least, enough = memoryOf(nodes, asked)
	}
	need.Memory, need.PerCPU = limits.NodeMemoryOf(*asked, need.CPUs, least)
	never := limits.Never(state.Subject(r, partition), need)
	if wants := max(asked.MemoryPerNode, asked.MemoryPerCPU); wants > 0 && enough < need.Peak && len(never) == 0 {
		never = append(never, fmt.Sprintf("the profile goes up to %d nodes, but partition %s has %d with %d MB of memory: ask for less with --mem, or for fewer nodes",
			need.Peak, partition, enough, wants))
	}
	return never
}

// shownIn returns the nodes of a partition, without nodes that Slurm does not show at present.
func shownIn(c *state.Core, partition string) (nodes []slurmctl.Node) {
	if c.Snapshot == nil {
		return nil
	}
	for _, name := range c.Snapshot.Partitions[partition].Nodes {
		if i, ok := c.Snapshot.Index[name]; ok {
			nodes = append(nodes, c.Snapshot.Nodes[i])
		}
	}
	return nodes
}

// memoryOf returns the least memory of the nodes, and how many nodes have as much as a job asks for.
func memoryOf(nodes []slurmctl.Node, asked *slurmctl.JobRequest) (least int64, enough int) {
	for _, n := range nodes {
		if least == 0 || n.Memory < least {
			least = n.Memory
		}
		if n.Memory >= max(asked.MemoryPerNode, asked.MemoryPerCPU) {
			enough++
		}
	}
	return least, enough
}

// forbids returns which limit permanently keeps a job out of one of its partitions, or "" if none is known.
func forbids(c *state.Core, j *state.Job, partition string) string {
	if c.Rules.Limits == nil {
		return ""
	}
	f, known := j.Forbidden[partition]
	if !known || !f.Read.Equal(c.Rules.Read) {
		never := neverIn(c, c.Rules.Limits, &j.Record, request.Request{Profile: j.Profile, MaxNodes: j.Claim}.Claimed(), j.Mode.StepsAreJobs, j.Asked, partition)
		f = state.Forbidden{strings.Join(never, "; "), c.Rules.Read}
		if j.Forbidden == nil {
			j.Forbidden = map[string]state.Forbidden{}
		}
		j.Forbidden[partition] = f
	}
	return f.Why
}

// Explain describes a limit that keeps something back, with its owner and its usage, as soon as these are
// known. If there is room, the next attempt follows. If the limit is known to be full, the attempt is
// postponed, so that no nodes are held for nothing.
func Explain(c *state.Core, j *state.Job, now time.Time) {
	k := j.Kept
	if !k.Look && slurmctl.KindOf(k.Limit) == slurmctl.LimitReason && c.Passed(now, k.Looked.Add(explainAgain)) {
		k.Look, k.Fresh = true, now
	}
	if !k.Look {
		return
	}
	limits, known := RulesSince(c, k.Fresh)
	if !known {
		return
	}
	k.Look, k.Looked = false, now
	if limits == nil {
		return
	}
	nodes := j.Profile[0].Nodes
	if k.To > 0 {
		nodes = k.To - len(j.Nodes())
	}
	words, room, sure := limits.Explain(k.Limit, state.Subject(&j.Record, PartitionOf(j)), nodes, nodes*limits.NodeCPUs(PartitionOf(j)))
	k.Say(words)
	switch {
	case !sure || room:
	case now.Add(explainAgain).After(k.Again):
		k.Again = now.Add(explainAgain + explainAgain/2)
	}
}

// explainAgain is how often the figures of a limit that keeps something back are read.
const explainAgain = 20 * time.Second

// GoThrough lets a companion run in another partition with the same nodes if the job's own partition accepts
// no job as small as the growth (MinNodes).
func GoThrough(c *state.Core, j *state.Job, g *msg.Grow) {
	limits, own := c.Rules.Limits, g.Request.Partition
	if limits == nil || g.Merge || !limits.TooSmall(state.Subject(&j.Record, own), len(g.Nodes)) {
		return
	}
	minutes := int64(g.Request.TimeLimit / time.Minute)
	if other, ok := limits.Through(state.Subject(&j.Record, own), g.Nodes, len(g.Nodes), minutes); ok {
		g.Request.Partition = other
	}
}

// Placed describes a waiting job with the place that it would get.
type Placed struct {
	Candidate
	Stock bool  // it is a stock job, or the first task of one
	Start int64 // Unix second; planner.Forever if none
	At    []int // nodes
}

// Keeps records the latest place of a job.
func Keeps(h *state.HeldUp, s *state.Snapshot, p Placed) {
	h.Nodes, h.From, h.End = nil, p.Start, p.Start+Seconds(p.Record.TimeLimit)
	for _, n := range p.At {
		h.Nodes = append(h.Nodes, s.Nodes[n].Name)
	}
}
