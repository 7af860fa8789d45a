package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ruleBook holds the users' limits as last read.
type ruleBook struct {
	limits *slurmctl.Limits // nil: not read, or not readable
	read   time.Time        // when the read began
	took   time.Duration    // how long the read took
}

// limitsFor is how long the limits that were read may admit a job. They are read again before a job is
// refused, and to describe a limit that keeps something back.
const limitsFor = time.Minute

// rulesSince returns the limits as of time t or later, or starts to read them: then a later cycle has them.
// They are nil if they cannot be read.
func (c *Core) rulesSince(t time.Time) (limits *slurmctl.Limits, known bool) {
	if now := c.now; t.After(now) {
		t = now // the clock was set
	}
	if c.rules.read.After(t) {
		return c.rules.limits, true
	}
	if !c.work.room() {
		return nil, false
	}
	c.ask(nil, "limits", KindLimits, Task{Command: ReadLimits{c.slurmConfig}}, Args{Begun: c.now})
	return nil, false
}

// settleLimits records the users' limits.
func (c *Core) settleLimits(_ *job, p *Pending, o Outcome) {
	if transient(o.Err) {
		return // again, a little later
	}
	read, _ := o.Result.(*slurmctl.Limits)
	if o.Err != nil {
		c.log.WithError(o.Err).Warn("cannot read limits of accounts, QOS and partitions")
	}
	c.rules = ruleBook{limits: read, read: p.Args.Begun, took: c.now.Sub(p.Args.Begun)}
	c.nextCycle = c.now
}

// subject returns the subject whose limits count for a Slurm job in a partition.
func subject(r *slurmctl.Job, partition string) slurmctl.Subject {
	return slurmctl.Subject{User: r.User, UID: r.UID, Account: r.Account, QOS: r.QOS, Partition: partition}
}

// mayEver checks that limits do not exclude a parked job with its profile forever in all of its partitions. It
// returns the request without the alternatives that limits never let run. It reports false while that is not
// known.
func (c *Core) mayEver(r *slurmctl.Job, sp request.Request, chain bool, asked *slurmctl.JobRequest) (_ request.Request, err error, known bool) {
	if r.State != slurmctl.Pending || len(sp.Profile) == 0 {
		return sp, nil, true
	}
	// The cycle that follows the answer must find the answer recent enough, however slow Slurm is.
	limits, known := c.rulesSince(c.now.Add(-limitsFor - c.rules.took - c.now.Sub(c.snapshot.taken)))
	if !known || limits == nil {
		return sp, nil, known
	}
	may, never := c.neverOf(limits, r, sp, chain, asked)
	if len(never) == 0 && may.Same(sp) {
		return sp, nil, true
	}
	if limits, known = c.rulesSince(r.SubmitTime); !known || limits == nil {
		return sp, nil, known
	}
	if may, never = c.neverOf(limits, r, sp, chain, asked); len(never) == 0 {
		return may, nil, true
	}
	return sp, errors.New(strings.Join(never, "; ")), true
}

// neverOf returns which limits never let a job run, and for a moldable job the request with the remaining
// alternatives.
func (c *Core) neverOf(limits *slurmctl.Limits, r *slurmctl.Job, sp request.Request, chain bool, asked *slurmctl.JobRequest) (request.Request, []string) {
	never := func(sp request.Request) []string { return c.never(limits, r, sp.Claimed(), chain, asked) }
	if sp.Moldable == nil {
		return sp, never(sp)
	}
	return feasibleAlternatives(sp, never)
}

// never lists what permanently keeps a job out of all of its partitions, for the first one.
func (c *Core) never(limits *slurmctl.Limits, r *slurmctl.Job, p planner.Profile, chain bool, asked *slurmctl.JobRequest) (first []string) {
	for _, partition := range strings.Split(r.Partition, ",") {
		never := c.neverIn(limits, r, p, chain, asked, partition)
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
func (c *Core) neverIn(limits *slurmctl.Limits, r *slurmctl.Job, p planner.Profile, chain bool, asked *slurmctl.JobRequest, partition string) []string {
	need := needOf(p, chain)
	nodes := c.shownIn(partition)
	need.From = c.site.Host
	if need.CPUs, need.Most = slurmctl.CPUsOf(nodes); len(nodes) == 0 {
		need.CPUs = limits.NodeCPUs(partition)
	}
	if asked == nil {
		return limits.Never(subject(r, partition), need)
	}
	need.GRES, _ = asked.GRESPerNode(p[0].Nodes)
	least, enough := int64(0), math.MaxInt
	if c.snapshot != nil {
		least, enough = memoryOf(nodes, asked)
	}
	need.Memory, need.PerCPU = limits.NodeMemoryOf(*asked, need.CPUs, least)
	never := limits.Never(subject(r, partition), need)
	if wants := max(asked.MemoryPerNode, asked.MemoryPerCPU); wants > 0 && enough < need.Peak && len(never) == 0 {
		never = append(never, fmt.Sprintf("the profile goes up to %d nodes, but partition %s has %d with %d MB of memory: ask for less with --mem, or for fewer nodes",
			need.Peak, partition, enough, wants))
	}
	return never
}

// shownIn returns the nodes of a partition, without nodes that Slurm does not show at present.
func (c *Core) shownIn(partition string) (nodes []slurmctl.Node) {
	if c.snapshot == nil {
		return nil
	}
	for _, name := range c.snapshot.partitions[partition].Nodes {
		if i, ok := c.snapshot.index[name]; ok {
			nodes = append(nodes, c.snapshot.nodes[i])
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

// forbidden holds why limits permanently keep a job out of a partition, and when the limits were read.
type forbidden struct {
	why  string
	read time.Time
}

// forbids returns which limit permanently keeps a job out of one of its partitions, or "" if none is known.
func (c *Core) forbids(j *job, partition string) string {
	if c.rules.limits == nil {
		return ""
	}
	f, known := j.forbidden[partition]
	if !known || !f.read.Equal(c.rules.read) {
		never := c.neverIn(c.rules.limits, &j.record, request.Request{Profile: j.Profile, MaxNodes: j.Claim}.Claimed(), j.mode.stepsAreJobs, j.asked, partition)
		f = forbidden{strings.Join(never, "; "), c.rules.read}
		if j.forbidden == nil {
			j.forbidden = map[string]forbidden{}
		}
		j.forbidden[partition] = f
	}
	return f.why
}

func needOf(p planner.Profile, chain bool) slurmctl.Need {
	return slurmctl.NeedOf(request.Sizes(p), (p.Duration()+59)/60, chain)
}

// explain describes a limit that keeps something back, with its owner and its usage, as soon as these are
// known. If there is room, the next attempt follows. If the limit is known to be full, the attempt is
// postponed, so that no nodes are held for nothing.
func (c *Core) explain(j *job, now time.Time) {
	k := j.kept
	if !k.look && slurmctl.KindOf(k.limit) == slurmctl.LimitReason && now.After(k.looked.Add(explainAgain)) {
		k.look, k.fresh = true, now
	}
	if !k.look {
		return
	}
	limits, known := c.rulesSince(k.fresh)
	if !known {
		return
	}
	k.look, k.looked = false, now
	if limits == nil {
		return
	}
	nodes := j.Profile[0].Nodes
	if k.to > 0 {
		nodes = k.to - len(j.nodes())
	}
	words, room, sure := limits.Explain(k.limit, subject(&j.record, partitionOf(j)), nodes, nodes*limits.NodeCPUs(partitionOf(j)))
	k.say(words)
	j.reason = saying(whyKeptBack, k.text)
	switch {
	case !sure || room:
	case now.Add(explainAgain).After(k.again):
		k.again = now.Add(explainAgain + explainAgain/2)
	}
}

// explainAgain is how often the figures of a limit that keeps something back are read.
const explainAgain = 20 * time.Second

// goThrough lets a companion run in another partition with the same nodes if the job's own partition accepts
// no job as small as the growth (MinNodes).
func (c *Core) goThrough(j *job, g *Grow) {
	limits, own := c.rules.limits, g.Request.Partition
	if limits == nil || g.Merge || !limits.TooSmall(subject(&j.record, own), len(g.Nodes)) {
		return
	}
	minutes := int64(g.Request.TimeLimit / time.Minute)
	if other, ok := limits.Through(subject(&j.record, own), g.Nodes, len(g.Nodes), minutes); ok {
		g.Request.Partition = other
	}
}

// noMerge returns why limits rule out merging for a job, or "" if they do not. Either its partition accepts no
// expander as small as a growth, or a limit counts its user's jobs. In all Slurm versions so far, every merged
// expander continues to count until slurmctld restarts or rereads its configuration.
func (c *Core) noMerge(r *slurmctl.Job, p planner.Profile) string {
	limits := c.rules.limits
	need := needOf(p, false)
	if limits == nil || len(need.Growths) == 0 {
		return ""
	}
	for _, partition := range strings.Split(r.Partition, ",") {
		s := subject(r, partition)
		if limits.TooSmall(s, slices.Min(need.Growths)) {
			return "partition " + partition + " takes no expander as small as a growth (MinNodes)"
		}
		if which, counts := limits.CountsJobs(s); counts {
			return which + ", and Slurm goes on counting merged expanders"
		}
	}
	return ""
}
