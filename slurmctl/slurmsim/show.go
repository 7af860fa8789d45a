package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// shown returns the job as squeue shows it.
func shown(c *Cluster, j *job) slurmctl.Job {
	r := j.Job
	if r.Display == "" {
		r.Display = fmt.Sprint(r.ID)
	}
	r.NodeList = c.names(j.Nodes)
	if len(j.Nodes) > 0 && j.Request.Script != "" {
		r.BatchHost = c.Nodes[j.HostNode].Name
	}
	if r.State == slurmctl.Pending && !j.Planned.IsZero() && !j.Request.Begin.After(c.Now()) {
		r.StartTime = j.Planned
	}
	if r.State == slurmctl.Running && c.Now().Before(r.StartTime.Add(c.options.Prolog)) {
		r.Reason = "Prolog"
	}
	r.ReqNodes, r.ExcNodes = slices.Clone(r.ReqNodes), slices.Clone(r.ExcNodes)
	return r
}

// timeUsed returns how long a job has run.
func timeUsed(c *Cluster, j *job) time.Duration {
	switch {
	case j.StartTime.IsZero() || j.State == slurmctl.Pending:
		return 0
	case j.State == slurmctl.Suspended:
		return c.second().Sub(j.StartTime) - j.Stood - (c.Moment - j.Resumed).Truncate(time.Second)
	case j.active():
		return c.second().Sub(j.StartTime) - j.Stood
	}
	return j.EndTime.Sub(j.StartTime) - j.Stood
}

// Queue returns what squeue shows now.
func (c *Cluster) Queue() []slurmctl.Job {
	c.Watched = true
	all := slices.Concat(c.Pending, c.Active)
	all = append(all, c.leaving()...)
	all = joined(c, all)
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
	jobs := make([]slurmctl.Job, len(all))
	for i, j := range all {
		jobs[i] = shown(c, j)
	}
	return jobs
}

// Record returns what slurmctld knows about a job, also for a while after its end.
func (c *Cluster) Record(id slurmctl.JobID) (slurmctl.Job, bool) {
	j := c.Jobs[id]
	if j == nil {
		return slurmctl.Job{}, false
	}
	return shown(c, j), true
}

// NodesOf returns the numbers of an active job's nodes, which the caller must not change.
func (c *Cluster) NodesOf(id slurmctl.JobID) []int {
	if j := c.Jobs[id]; j != nil && j.active() {
		return j.Nodes
	}
	return nil
}

func byID(c *Cluster, ids []slurmctl.JobID) []slurmctl.Job {
	var jobs []slurmctl.Job
	for _, id := range ids {
		if j := c.Jobs[id]; j != nil {
			jobs = append(jobs, shown(c, j))
		}
	}
	return jobs
}

// Sinfo returns what sinfo shows now.
func (c *Cluster) Sinfo() (nodes []slurmctl.Node, parts []slurmctl.Partition) {
	for _, p := range c.Partitions {
		shown := p.Partition.Partition
		shown.Nodes = slices.DeleteFunc(slices.Clone(shown.Nodes), func(name string) bool { return c.Nodes[c.index[name]].Gone })
		parts = append(parts, shown)
	}
	held := newNodeSet(len(c.Nodes)) // by reservations
	for _, r := range c.Reservations {
		if r.overlaps(c.Now(), c.Now().Add(1)) {
			held.or(r.Set)
		}
	}
	nodes = make([]slurmctl.Node, 0, len(c.Nodes))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Gone {
			continue
		}
		shown := n.Node
		shown.State, shown.CPUsAlloc = nodeState(c, i, held), int(c.Usage.CPUs[i])
		if shown.Flags = marks[n.PowerState]; c.Asked.has(i) {
			shown.Flags = "*"
		}
		if n.Reboots {
			shown.Flags = map[bool]string{true: "^", false: "@"}[shown.State == "reboot"]
		}
		shown.Partitions = slices.Clip(shown.Partitions)
		if n.Leaked {
			shown.CPUsAlloc = n.CPUs
		}
		nodes = append(nodes, shown)
	}
	return nodes, parts
}

func nodeState(c *Cluster, i int, held nodeSet) string {
	n, used := &c.Nodes[i], int(c.Usage.CPUs[i])
	switch {
	case n.Down:
		return "down"
	case n.Drained && used > 0:
		return "draining"
	case n.Reboots:
		return "reboot"
	case n.Drained:
		return "drained"
	case n.Freeing > 0:
		return "completing"
	case n.Leaked, used >= n.CPUs, c.Usage.Sole.has(i):
		return "allocated"
	case used > 0:
		return "mixed"
	}
	if held.has(i) {
		return "reserved"
	}
	return "idle"
}

// Job returns the record of the job whose script the process is, as squeue would show it.
func (p *Process) Job() slurmctl.Job {
	if j := p.cluster.Jobs[p.Script]; j != nil {
		return shown(p.cluster, j)
	}
	return slurmctl.Job{ID: p.Script}
}

// Host returns the node that the script runs on, whatever slurmctld believes.
func (p *Process) Host() string {
	if j := p.cluster.Jobs[p.Script]; j != nil && len(j.Nodes) > 0 {
		return p.cluster.Nodes[j.ScriptNode].Name
	}
	return ""
}

// Idle returns how many nodes a job of that length could have now: without the reservations of some names, and with
// them. Refused nodes do not count.
func (c *Cluster) Idle(lasts time.Duration, some func(name string) bool) (without, with int) {
	return c.open(append(nodeSet(nil), c.Usage.Idle...), lasts, some)
}

// Room does what Idle does for a pending job that may share nodes.
func (c *Cluster) Room(id slurmctl.JobID, some func(name string) bool) (without, with int) {
	j := c.Jobs[id]
	set := append(nodeSet(nil), c.Up...)
	c.keepSuitable(j, set)
	c.candidates(j, &c.Usage, set)
	return c.open(set, j.TimeLimit, some)
}

// open counts those nodes that a job of that length could have now, without the reservations of some names, and with them.
func (c *Cluster) open(set nodeSet, lasts time.Duration, some func(name string) bool) (without, with int) {
	set.and(c.Up)
	set.minus(c.Refused)
	set.minus(c.Completing)
	now := c.Now()
	reserved := func(named bool) {
		for _, r := range c.Reservations {
			if some(r.Name) == named && r.Start.Before(now.Add(lasts)) && r.End.After(now) {
				set.minus(r.Set)
			}
		}
	}
	reserved(false)
	without = set.count()
	reserved(true)
	return without, set.count()
}

// WaitsFor returns the time limit of a pending job that is in no reservation; false if there is no such job.
func (c *Cluster) WaitsFor(id slurmctl.JobID) (limit time.Duration, waits bool) {
	j := c.Jobs[id]
	if j == nil || j.State != slurmctl.Pending || j.Reservation != "" {
		return 0, false
	}
	return j.TimeLimit, true
}

// Refuses reports whether Slurm starts nothing on some idle nodes, since it counts their jobs wrong.
func (c *Cluster) Refuses() bool { return c.Refused.count() > 0 }

// Leaks reports whether nodes are allocated to a job that has ended.
func (c *Cluster) Leaks() bool {
	return slices.ContainsFunc(c.Nodes, func(n node) bool { return n.Leaked })
}

// KeptIdle returns the nodes that are idle and named by a current or future reservation.
func (c *Cluster) KeptIdle() (nodes []int) {
	if len(c.Reservations) == 0 {
		return nil
	}
	kept := newNodeSet(len(c.Nodes))
	for _, r := range c.Reservations {
		for n := r.Set.next(0); n >= 0; n = r.Set.next(n + 1) {
			kept.add(n)
		}
	}
	kept.and(c.Usage.Idle)
	kept.and(c.Up)
	kept.minus(c.Completing)
	for n := kept.next(0); n >= 0; n = kept.next(n + 1) {
		nodes = append(nodes, n)
	}
	return nodes
}

// Reserved returns how many nodes the reservations with a prefix have, added up.
func (c *Cluster) Reserved(prefix string) (nodes int) {
	for _, r := range c.Reservations {
		if strings.HasPrefix(r.Name, prefix) {
			nodes += r.Set.count()
		}
	}
	return nodes
}

// Revoked lists the nodes of a running job on which none of its steps can start now, because the
// nodes were taken from it within this second. slurmd refuses credentials up to that second
// (cred_context.c, cred_revoked). It assumes that clocks have not been set since.
func (c *Cluster) Revoked(id slurmctl.JobID) (names []string) {
	j := c.Jobs[id]
	if j == nil {
		return nil
	}
	second := func(at time.Duration) int64 { return c.start.Add(at).Unix() }
	for _, n := range j.Nodes {
		if at, was := j.Gone[n]; was && second(at) >= second(c.Moment) {
			names = append(names, c.Nodes[n].Name)
		}
	}
	return names
}

// Stray lists the nodes taken from a running job on which its steps still start, because its step
// manager does not know of the change (slurmctl.StepMgr).
func (c *Cluster) Stray(id slurmctl.JobID) (names []string) {
	j := c.Jobs[id]
	if j == nil || !c.options.StepMgr || !j.active() {
		return nil
	}
	for n := range c.Nodes {
		if at, was := j.Gone[n]; was && !c.start.Add(at).Before(j.StartTime) && !slices.Contains(j.Nodes, n) {
			names = append(names, c.Nodes[n].Name)
		}
	}
	return names
}
