package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// shown returns the job as squeue shows it.
func shown(c *Cluster, j *job) slurmctl.Job {
	r := j.Job
	if r.Display == "" {
		r.Display = fmt.Sprint(r.ID)
	}
	r.NodeList = c.names(j.nodes)
	if len(j.nodes) > 0 && j.request.Script != "" {
		r.BatchHost = c.nodes[j.batchHost].Name
	}
	if r.State == slurmctl.Pending && !j.planned.IsZero() && !j.request.Begin.After(c.Now()) {
		r.StartTime = j.planned
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
		return c.second().Sub(j.StartTime) - j.stood - (c.now - j.resumed).Truncate(time.Second)
	case j.active():
		return c.second().Sub(j.StartTime) - j.stood
	}
	return j.EndTime.Sub(j.StartTime) - j.stood
}

// Queue returns what squeue shows now.
func (c *Cluster) Queue() []slurmctl.Job {
	c.watched = true
	all := slices.Concat(c.pending, c.active)
	all = append(all, c.leaving()...)
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
	jobs := make([]slurmctl.Job, len(all))
	for i, j := range all {
		jobs[i] = shown(c, j)
	}
	return jobs
}

// Record returns what slurmctld knows about a job, also for a while after its end.
func (c *Cluster) Record(id slurmctl.JobID) (slurmctl.Job, bool) {
	j := c.jobs[id]
	if j == nil {
		return slurmctl.Job{}, false
	}
	return shown(c, j), true
}

func byID(c *Cluster, ids []slurmctl.JobID) []slurmctl.Job {
	var jobs []slurmctl.Job
	for _, id := range ids {
		if j := c.jobs[id]; j != nil {
			jobs = append(jobs, shown(c, j))
		}
	}
	return jobs
}

// Sinfo returns what sinfo shows now.
func (c *Cluster) Sinfo() (nodes []slurmctl.Node, parts []slurmctl.Partition) {
	for _, p := range c.partitions {
		shown := p.Partition.Partition
		shown.Nodes = slices.Clone(shown.Nodes)
		parts = append(parts, shown)
	}
	held := newNodeSet(len(c.nodes)) // by reservations
	for _, r := range c.reservations {
		if r.overlaps(c.Now(), c.Now().Add(1)) {
			held.or(r.set)
		}
	}
	nodes = make([]slurmctl.Node, 0, len(c.nodes))
	for i := range c.nodes {
		n := &c.nodes[i]
		shown := n.Node
		shown.State, shown.CPUsAlloc = nodeState(c, i, held), int(c.usage.cpus[i])
		if shown.Flags = marks[n.power]; c.asked.has(i) {
			shown.Flags = "*"
		}
		shown.Partitions = slices.Clip(shown.Partitions)
		if n.leaked {
			shown.CPUsAlloc = n.CPUs
		}
		nodes = append(nodes, shown)
	}
	return nodes, parts
}

func nodeState(c *Cluster, i int, held nodeSet) string {
	n, used := &c.nodes[i], int(c.usage.cpus[i])
	switch {
	case n.down:
		return "down"
	case n.drained && used > 0:
		return "draining"
	case n.drained:
		return "drained"
	case n.freeing > 0:
		return "completing"
	case n.leaked, used >= n.CPUs, c.usage.sole.has(i):
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
	if j := p.cluster.jobs[p.job]; j != nil {
		return shown(p.cluster, j)
	}
	return slurmctl.Job{ID: p.job}
}

// Host returns the node that the script runs on, whatever slurmctld believes.
func (p *Process) Host() string {
	if j := p.cluster.jobs[p.job]; j != nil && len(j.nodes) > 0 {
		return p.cluster.nodes[j.script].Name
	}
	return ""
}

// Idle returns how many nodes a job of that length could have now: without the reservations of some names, and with
// them.
func (c *Cluster) Idle(lasts time.Duration, some func(name string) bool) (without, with int) {
	set := append(nodeSet(nil), c.usage.idle...)
	set.and(c.up)
	set.minus(c.completing)
	now := c.Now()
	reserved := func(named bool) {
		for _, r := range c.reservations {
			if some(r.Name) == named && r.Start.Before(now.Add(lasts)) && r.End.After(now) {
				set.minus(r.set)
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
	j := c.jobs[id]
	if j == nil || j.State != slurmctl.Pending || j.Reservation != "" {
		return 0, false
	}
	return j.TimeLimit, true
}

// KeptIdle returns how many nodes are idle and named by a current or future reservation.
func (c *Cluster) KeptIdle() int {
	if len(c.reservations) == 0 {
		return 0
	}
	kept := newNodeSet(len(c.nodes))
	for _, r := range c.reservations {
		for n := r.set.next(0); n >= 0; n = r.set.next(n + 1) {
			kept.add(n)
		}
	}
	kept.and(c.usage.idle)
	kept.and(c.up)
	kept.minus(c.completing)
	return kept.count()
}

// Revoked lists the nodes of a running job on which none of its steps can start now, because the
// nodes were taken from it within this second. slurmd refuses credentials up to that second
// (cred_context.c, cred_revoked). It assumes that clocks have not been set since.
func (c *Cluster) Revoked(id slurmctl.JobID) (names []string) {
	j := c.jobs[id]
	if j == nil {
		return nil
	}
	second := func(at time.Duration) int64 { return c.start.Add(at).Unix() }
	for _, n := range j.nodes {
		if at, was := j.gone[n]; was && second(at) >= second(c.now) {
			names = append(names, c.nodes[n].Name)
		}
	}
	return names
}

// Stray lists the nodes taken from a running job on which its steps still start, because its step
// manager does not know of the change (slurmctl.StepMgr).
func (c *Cluster) Stray(id slurmctl.JobID) (names []string) {
	j := c.jobs[id]
	if j == nil || !c.options.StepMgr || !j.active() {
		return nil
	}
	for n := range c.nodes {
		if at, was := j.gone[n]; was && !c.start.Add(at).Before(j.StartTime) && !slices.Contains(j.nodes, n) {
			names = append(names, c.nodes[n].Name)
		}
	}
	return names
}
